/** Runs the true program for the tests of the command line, in an environment that has nothing of the tester's own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after } from 'node:test';

export const shop: string = resolve('examples/shop/comity.config.ts');

const main = resolve('src/main.ts');
const boundMs = 120_000;

type Environment = Readonly<Record<string, string>>;

export type Outcome = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type Server = {
  readonly url: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly send: (signal: NodeJS.Signals) => void;
  /** Resolves when stderr holds the text. */
  readonly told: (text: string) => Promise<void>;
  readonly ended: Promise<Outcome>;
};

/** A folder that is gone when the tests of the file are over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'comity-cli-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The variables that any program needs, and those given. */
export function plainEnvironment(given: Environment = {}): Environment {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, ...given };
}

/** Runs a command line to its end. */
export async function runProgram(
  args: readonly string[],
  environment: Environment = {},
  cwd = '.',
): Promise<Outcome> {
  return begin(args, environment, cwd).ended;
}

/** Starts `serve` on a free port and resolves once it says that it listens; the test's end ends it. */
export async function startServer(environment: Environment, args: readonly string[] = []): Promise<Server> {
  const server = begin(['serve', ...args], { COMITY_CONFIG: shop, COMITY_PORT: '0', ...environment }, '.');
  const listening = /^comity listening on (\S+)$/m;
  await Promise.race([server.saidOnStdout(listening), server.ended]);
  const url = listening.exec(server.stdout())?.[1];
  if (url === undefined) throw new Error(`did not start: ${server.stderr()}`);
  return { ...server, url };
}

function begin(args: readonly string[], environment: Environment, cwd: string) {
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: plainEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: boundMs,
    killSignal: 'SIGKILL',
  });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk;
    });
  }
  const ended = once(child, 'close').then(([code]) => {
    process.off('exit', end);
    return { code: code as number | null, ...texts };
  });
  const said = async (name: 'stdout' | 'stderr', holds: (text: string) => boolean): Promise<void> => {
    while (!holds(texts[name])) await once(child[name], 'data');
  };
  return {
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    saidOnStdout: (pattern: RegExp) => said('stdout', (text) => pattern.test(text)),
    told: (text: string) => said('stderr', (all) => all.includes(text)),
    send: (signal: NodeJS.Signals) => void child.kill(signal),
    ended,
  };
}
