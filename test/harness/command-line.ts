/**
 * The command line: `runCommand` runs one in the process of the test, through the function that the program itself calls, with an environment
 * and streams of its own. `spawnCommand` runs it as a process, for tests whose subject is a process: signals, exit codes, several processes.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { runProgram } from '../../src/cli/program.ts';
import { type Output, openTerminal } from '../../src/cli/terminal.ts';
import { repositoryRoot } from './running-server.ts';
import { until } from './until.ts';

type Environment = Readonly<Record<string, string>>;

export type Outcome = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type CommandOptions = {
  /** What stdin holds; nothing unless given. */
  readonly input?: string;
  /** Takes what goes to stdout in place of the outcome. */
  readonly stdout?: Output;
  /** Whether stdin and stdout are a terminal, where a person is asked before what cannot be taken back. */
  readonly isTerminal?: boolean;
};

/** Runs a command line to its end, in this process, with the environment given and nothing of the tester's own. */
export async function runCommand(
  args: readonly string[],
  environment: Environment = {},
  { input = '', stdout: given, isTerminal = false }: CommandOptions = {},
): Promise<Outcome> {
  const texts = { stdout: '', stderr: '' };
  const streams = {
    stdin: Object.assign(Readable.from([Buffer.from(input)]), { isTTY: isTerminal }),
    stdout: Object.assign(given ?? collecting(texts, 'stdout'), { isTTY: isTerminal }),
    stderr: collecting(texts, 'stderr'),
  };
  const code = await runProgram(args, openTerminal({ ...environment }, streams, streams.stderr));
  return { code, ...texts };
}

/** Adds what is written to a text before `write` returns, as a process does whose streams are files. */
function collecting<Name extends string>(texts: Record<Name, string>, name: Name): Output {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      texts[name] += String(chunk);
      done();
    },
  });
}

export type SpawnOptions = {
  readonly cwd?: string;
  /** How long it may take before it is killed; 120 s unless given, 0 for ever. */
  readonly boundMs?: number;
  /** What runs the program's command in its place, such as a shell that enters a control group first. */
  readonly wrap?: (command: string, args: readonly string[]) => readonly [string, readonly string[]];
};

export type CommandProcess = {
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves when stderr holds the text. @throws Error where the process ends without it */
  readonly told: (text: string) => Promise<void>;
  /** Resolves when the process is gone and its output is read. */
  readonly ended: Promise<Outcome>;
};

const boundMsDefault = 120_000;

/** Starts a command line as a process. It goes with the process of the test at the latest. */
export function spawnCommand(
  args: readonly string[],
  environment: Environment = {},
  { cwd = repositoryRoot, boundMs = boundMsDefault, wrap }: SpawnOptions = {},
): CommandProcess {
  const programArgs = [programFile(), ...args];
  const [command, commandArgs] = wrap?.(process.execPath, programArgs) ?? [process.execPath, programArgs];
  const child = spawn(command, commandArgs, {
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
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const ended = new Promise<Outcome>((resolve) => {
    child.once('close', (code) => {
      process.off('exit', end);
      resolve({ code, ...texts });
    });
  });
  return {
    process: child,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    async told(text) {
      const isOver = () => child.exitCode !== null || child.signalCode !== null;
      await until(() => texts.stderr.includes(text) || isOver(), `stderr has ${text}`);
      if (isOver()) await ended;
      if (!texts.stderr.includes(text)) throw new Error(`ended without ${text}:\n${texts.stderr}`);
    },
    ended,
  };
}

let isFresh = false;

/** The program as it is bundled from the sources of this moment, even in a test that was not started by `npm test`. */
export function programFile(): string {
  if (!isFresh) {
    const { status, stderr } = spawnSync(process.execPath, [join(repositoryRoot, 'scripts/setup.mjs')], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    isFresh = true;
  }
  return join(repositoryRoot, 'dist/main.js');
}

/** The variables that any program needs, and those given. */
export function plainEnvironment(given: Environment = {}): Environment {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, ...given };
}
