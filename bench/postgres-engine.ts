/**
 * Comity and the floors over one PostgreSQL server of the benchmark's own, with its defaults but for shared memory. Servers under
 * measurement have the first processor, PostgreSQL and the load generator the other: what a machine with two can
 * tell is how much of its own processor a server needs, not how far the database goes.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ownCluster } from '../test/harness/postgres-server/own-cluster.ts';
import { comityEnvironment, type Engine, programOf, type Subject } from './engine.ts';
import { connectFloor, query } from './floor/postgres/client.ts';
import { seedFloorTables } from './floor/postgres/store.ts';
import type { Pinning } from './pin.ts';
import type { ProcessorShare } from './processor-share.ts';
import { seedPostgres } from './seed-postgres.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const idleAfterMs = 3000;
const root = fileURLToPath(new URL('..', import.meta.url));

export async function postgresEngine(pinning: Pinning, folder: string): Promise<Engine> {
  const cluster = await ownCluster({ shared_buffers: '512MB', max_connections: '200' });
  const { url } = cluster;
  const version = await settle(url, pinning);
  let schemas = 0;
  let empty = '';

  const nextSchema = (): string => {
    schemas += 1;
    return `bench_${schemas}`;
  };

  function startOn(
    schema: string,
    pinned: Pinning,
    wrap?: ProcessorShare['wrap'],
    tree = root,
  ): Promise<ServerProcess> {
    const environment = {
      ...comityEnvironment,
      COMITY_CONFIG: join(tree, 'bench', 'comity.config.ts'),
      COMITY_DATA: folder,
      COMITY_DATABASE_URL: url,
      COMITY_DATABASE_SCHEMA: schema,
    };
    return startServer(pinned, [programOf(tree), 'serve'], environment, wrap);
  }

  async function startIn(schema: string, rows: number, pinned: Pinning, tree?: string): Promise<Subject> {
    if (rows > 0) await seedPostgres(url, schema, rows);
    const server = await startOn(schema, pinned, undefined, tree);
    if (rows > 0) await setTimeout(idleAfterMs);
    return { server, idleMemoryBytes: server.memoryBytes() };
  }

  const startAgain = () => startIn(empty, 0, { ...pinning, pinned: false });
  return {
    words: `PostgreSQL ${version} beside the load generator, \`fsync\` and \`synchronous_commit\` on`,
    async prepareFloor(rows) {
      const seeded = nextSchema();
      await seedFloorTables(url, seeded, rows);
      return async (kind) => {
        const schema = kind === 'create' ? nextSchema() : seeded;
        if (kind === 'create') await seedFloorTables(url, schema, rows);
        const program = kind === 'not-modified' ? 'read' : kind;
        const file = join(root, 'bench', 'floor', 'postgres', `${program}.ts`);
        const server = await startServer(pinning, [file, url, schema]);
        return { server, idleMemoryBytes: server.memoryBytes() };
      };
    },
    startComity: (rows, tree) => startIn(nextSchema(), rows, pinning, tree),
    startEmpty() {
      empty = nextSchema();
      return startAgain();
    },
    startAgain,
    async startScaled(rows, shareOf) {
      const schema = nextSchema();
      await seedPostgres(url, schema, rows);
      const start = async (): Promise<Subject> => {
        const server = await startOn(schema, { ...pinning, pinned: false }, shareOf(1).wrap);
        return { server, idleMemoryBytes: undefined };
      };
      const one = await start();
      return { words: 'two processes against one', one, two: [one, await start()] };
    },
    newPlace: () => ({ store: 'postgres', url, schema: nextSchema(), folder }),
    close: () => cluster.dispose(),
  };
}

/** @returns the version; every process that the server starts from here on has the second processor */
async function settle(url: string, pinning: Pinning): Promise<string> {
  const client = await connectFloor(url);
  try {
    const [row] = await query(
      client,
      '',
      `SELECT current_setting('server_version'), pg_read_file('postmaster.pid')`,
      [],
    );
    const pid = String(row?.[1]).split('\n', 1)[0] ?? '';
    if (pinning.pinned) spawnSync('taskset', ['-a', '-c', '-p', '1', pid], { stdio: 'ignore' });
    return String(row?.[0]);
  } finally {
    await client.end();
  }
}
