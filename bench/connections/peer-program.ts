/**
 * A proxy that is not written in Node, as a child process on the processor of servers: started with a configuration in a folder of its own,
 * known ready when its port takes connections, ended by its process id.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Pinning } from '../pin.ts';

const readyPollMs = 50;
const stopMsMax = 5000;
const wordsKeptMax = 2000;

export type PeerProgram = { readonly pid: number; readonly port: number; stop(): Promise<void> };

/** Where it runs, and how long it may take until its port is open: ten seconds unless given. */
type Starting = Pinning & { readonly readyMsMax?: number };

/** @throws with the program's own words where it ends or its port stays closed */
export async function startPeer(
  { pinned, readyMsMax = 10_000 }: Starting,
  port: number,
  command: string,
  args: readonly string[],
): Promise<PeerProgram> {
  const [first = '', ...rest] = [...(pinned ? ['taskset', '-c', '0'] : []), command, ...args];
  const child = spawn(first, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  let words = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-wordsKeptMax);
    });
  child.once('error', (error) => {
    words += error.message;
  });
  const untilMs = performance.now() + readyMsMax;
  while (!(await takesConnections(port))) {
    if (hasEnded(child) || performance.now() > untilMs) {
      await stop(child);
      throw new Error(`${command} does not listen: ${words}`);
    }
    await wait(readyPollMs);
  }
  return { pid: child.pid ?? 0, port, stop: () => stop(child) };
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (hasEnded(child)) {
      resolve();
      return;
    }
    const bound = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    child.once('exit', () => {
      clearTimeout(bound);
      resolve();
    });
    child.kill('SIGTERM');
  });
}
