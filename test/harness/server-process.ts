/** The server as a process of its own, for tests whose subject is a process: signals, kills, exit codes, memory, several processes. */
import type { ChildProcess } from 'node:child_process';
import { type CommandProcess, type SpawnOptions, spawnCommand } from './command-line.ts';
import { forgetServer, send } from './exchange.ts';
import {
  environmentOf,
  linesWith,
  listAt,
  placeOf,
  type RunningServer,
  type StartOptions,
} from './running-server.ts';

/** How long the program may take to be ready before the test gives up. */
const patienceMs = 20_000;

export type ServerProcess = Omit<RunningServer, 'stop'> &
  CommandProcess & {
    /** SIGTERM; resolves with the exit code. */
    stop(): Promise<number | null>;
    /** SIGKILL; resolves when the process is gone. */
    kill(): Promise<void>;
  };

export type ServerOptions = StartOptions &
  Pick<SpawnOptions, 'wrap'> & {
    /** Arguments of `comity serve`. */
    readonly args?: readonly string[];
  };

export async function spawnServer(options: ServerOptions = {}): Promise<ServerProcess> {
  const { args = [], wrap } = options;
  const place = await placeOf(options);
  const command = spawnCommand(['serve', ...args], environmentOf(options, place), {
    boundMs: 0,
    ...(wrap === undefined ? {} : { wrap }),
  });
  const { process: child, stdout, stderr } = command;
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const url = await ready(child, () => `${stdout()}\n${stderr()}`);
  const port = Number(new URL(url).port);
  return {
    ...command,
    url,
    port,
    folder: place.folder,
    send: (method, path, requestOptions) => send(port, method, path, requestOptions),
    list: (path, requestOptions) => listAt(port, path, requestOptions),
    logOf: (answer) => linesWith(stderr(), String(answer.json().requestId)).join('\n'),
    async stop() {
      child.kill('SIGTERM');
      const code = await exited;
      forgetServer(port);
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
