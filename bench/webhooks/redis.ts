/** A Redis server of the benchmark's own, in a folder of its own: an append-only file that is synced before each answer. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Pinning } from '../pin.ts';

const readyTries = 100;
const readyPollMs = 50;

export type OwnRedis = { readonly port: number; readonly version: string; stop(): Promise<void> };

/** Undefined where no `redis-server` is installed. */
export async function startRedis(pinning: Pinning, folder: string): Promise<OwnRedis | undefined> {
  const asked = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  if (asked.status !== 0) return undefined;
  const version = /v=(\S+)/.exec(asked.stdout)?.[1] ?? 'unknown';
  const port = await freePort();
  const data = join(folder, 'redis');
  mkdirSync(data, { recursive: true });
  const server = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', data, '--save', ''];
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--daemonize', 'no'];
  const [command = '', ...args] = [...(pinning.pinned ? ['taskset', '-c', '1'] : []), ...server, ...durable];
  const child = spawn(command, args, { stdio: 'ignore' });
  const client = new Redis({
    port,
    host: '127.0.0.1',
    retryStrategy: () => readyPollMs,
    maxRetriesPerRequest: readyTries,
  });
  client.on('error', () => undefined);
  await client.ping();
  await client.quit();
  return {
    port,
    version,
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) {
          resolve();
          return;
        }
        child.once('exit', () => resolve());
        child.kill('SIGTERM');
        setTimeout(() => child.kill('SIGKILL'), 5000).unref();
      }),
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
