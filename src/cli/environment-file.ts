/**
 * Files of variables, in the form of `node --env-file`. Every command but `serve` reads `.env` of the working directory, so that the commands of
 * a project speak of the same store as `comity dev`; in production variables come from the supervisor, and a file only where it is named.
 * Variables that are set already win. The option is not `--env-file`, because Node takes that one from the arguments of a program too.
 */
import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { Command } from 'commander';
import type { Environment } from '../config/load-settings.ts';
import { usageFailure } from './failure.ts';
import type { Terminal } from './terminal.ts';

export const environmentFile = '.env';

/**
 * @param given the path on the command line; undefined: `.env`, where it exists
 * @throws CommandFailure if the file cannot be read
 */
export function readEnvironmentFile(given: string | undefined): Environment {
  const path = given ?? environmentFile;
  if (given === undefined && !existsSync(path)) return {};
  try {
    return parseEnv(readFileSync(path, 'utf8')) as Environment;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read: ${code}`;
    throw usageFailure(reason, error);
  }
}

/** Adds the options to every command that uses settings, and sets the variables before it runs. */
export function declareEnvironmentFiles(program: Command, terminal: Terminal): void {
  for (const command of commandsIn(program)) {
    if (command.name() === 'init') continue;
    if (command.name() === 'serve') {
      command
        .option('--env <path>', 'file of variables, such as .env, which is not read without it')
        .option('--env-if-exists <path>', 'the same, where the file exists');
    } else command.option('--env <path>', 'file of variables (./.env, where it exists)');
  }
  program.hook('preAction', (_program, command) => {
    const options: { env?: string; envIfExists?: string } = command.opts();
    const { env, envIfExists } = options;
    // It reads the file for each process that it starts.
    if (command.name() === 'init' || command.name() === 'dev') return;
    delete options.env;
    delete options.envIfExists;
    if (command.name() !== 'serve') setVariables(terminal, readEnvironmentFile(env));
    else if (env !== undefined) setVariables(terminal, readEnvironmentFile(env));
    else if (envIfExists === undefined) warnOfFile(terminal);
    else if (existsSync(envIfExists)) setVariables(terminal, readEnvironmentFile(envIfExists));
  });
}

function commandsIn({ commands }: Command): readonly Command[] {
  return commands.flatMap((command) => (command.commands.length === 0 ? [command] : commandsIn(command)));
}

/** In place, for the configuration reads `process.env` too. */
function setVariables({ environment }: Terminal, variables: Environment): void {
  const set = environment as Record<string, string | undefined>;
  for (const [name, value] of Object.entries(variables)) set[name] ??= value;
}

function warnOfFile({ environment, err }: Terminal): void {
  const names = Object.keys(readEnvironmentFile(undefined)).filter((name) => environment[name] === undefined);
  if (names.length === 0) return;
  err(
    `comity: warning: ${environmentFile} sets ${names.join(', ')}, which "comity serve" does not read: --env ${environmentFile} reads it`,
  );
}
