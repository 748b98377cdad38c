/** The server as a process of its own, for tests whose subject is a process: signals, kills, exit codes, memory, several processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { forgetConnection, send } from './exchange.ts';
import {
  environmentOf,
  placeOf,
  type RunningServer,
  repositoryRoot,
  type StartOptions,
} from './running-server.ts';

/** How long the program may take to be ready before the test gives up. */
const patienceMs = 20_000;

export type ServerProcess = Omit<RunningServer, 'stop'> & {
  readonly process: ChildProcess;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
};

export type SpawnOptions = StartOptions & {
  /** What runs the program's command in its place, such as a shell that enters a control group first. */
  readonly wrap?: (command: string, args: readonly string[]) => readonly [string, readonly string[]];
};

export async function spawnServer(options: SpawnOptions = {}): Promise<ServerProcess> {
  const place = await placeOf(options);
  const args = [join(repositoryRoot, 'src/main.ts'), 'serve'];
  const [command, commandArgs] = options.wrap?.(process.execPath, args) ?? [process.execPath, args];
  const child = spawn(command, commandArgs, {
    cwd: repositoryRoot,
    env: { PATH: process.env.PATH, ...environmentOf(options, place) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const url = await ready(child, () => `${stdout}\n${stderr}`);
  const port = Number(new URL(url).port);
  return {
    url,
    port,
    folder: place.folder,
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    send: (method, path, requestOptions) => send(port, method, path, requestOptions),
    async stop() {
      child.kill('SIGTERM');
      const code = await exited;
      forgetConnection(port);
      await place.remove();
      return code;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function ready(child: ChildProcess, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the program was not ready in time:\n${output()}`));
    }, patienceMs);
    const look = () => {
      const line = /^comity listening on (http:\/\/\S+)$/m.exec(output());
      if (line?.[1] === undefined) return;
      clearTimeout(timer);
      child.stdout?.off('data', look);
      resolve(line[1]);
    };
    child.stdout?.on('data', look);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the program ended with ${code} before it was ready:\n${output()}`));
    });
  });
}
