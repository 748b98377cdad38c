/**
 * Starts what is measured: for each number of rows the four floor programs, and Comity where it can start. Everything
 * stays up for the whole run, so that rounds can interleave all of them.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { seedFloor } from './floor/store.ts';
import type { RequestKind } from './load/plan.ts';
import type { Pinning } from './pin.ts';
import { seed } from './seed.ts';
import { type ServerProcess, startServer } from './server-process.ts';

export const adminKey = 'sk_benchBENCHbenchBENCHbenchBENCHbench42';

const idleAfterMs = 3000;

export type Subject = {
  readonly server: ServerProcess;
  readonly idleMemoryBytes: number | undefined;
};

export type FloorKind = 'read' | 'not-modified' | 'list' | 'create';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Which floor program answers a kind of request. */
export function floorKindOf(kind: RequestKind): FloorKind {
  if (kind === 'query' || kind === 'list' || kind === 'query-new' || kind === 'list-new') return 'list';
  return kind === 'create' || kind === 'not-modified' ? kind : 'read';
}

/** Seeds one database for reading and a copy for writing, and returns a starter of floor programs over them. */
export function prepareFloor(
  pinning: Pinning,
  folder: string,
  rows: number,
): (kind: FloorKind, copy?: string) => Promise<Subject> {
  mkdirSync(folder, { recursive: true });
  const seeded = join(folder, 'floor.db');
  seedFloor(seeded, rows);
  return async (kind, copy = '') => {
    const file = kind === 'create' ? join(folder, `floor-create${copy}.db`) : seeded;
    if (kind === 'create') copyFileSync(seeded, file);
    const server = await startServer(pinning, [join(root, 'bench', 'floor', `${kind}.ts`), file]);
    return { server, idleMemoryBytes: server.memoryBytes() };
  };
}

/** Seeds and starts Comity; rejects with the reason where it cannot. */
export async function startComity(pinning: Pinning, folder: string, rows: number): Promise<Subject> {
  mkdirSync(folder, { recursive: true });
  if (rows > 0) seed(folder, rows);
  const server = await startServer(pinning, [join(root, 'src', 'main.ts'), 'serve'], {
    COMITY_CONFIG: join(root, 'bench', 'comity.config.ts'),
    COMITY_HOST: '127.0.0.1',
    COMITY_PORT: '0',
    COMITY_DATA: folder,
    COMITY_ADMIN_KEY: adminKey,
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_RATE_LIMIT_WRITES: '0',
    NODE_ENV: 'production',
  });
  // Idle is what it is when nothing has happened for a while.
  if (rows > 0) await setTimeout(idleAfterMs);
  return { server, idleMemoryBytes: server.memoryBytes() };
}
