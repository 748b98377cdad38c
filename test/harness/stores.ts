/**
 * Stores over data of their own, closed and removed when their test ends, or the tests of their file.
 *
 * `engines`: stores that two processes share, as two handles on the same data. With SQLite both are the one store, told that it is
 * shared; with PostgreSQL each has connections, caches and a committer of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openSqliteStore, type SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Commit, type Store, StoreUnavailable, type Table, type Unit } from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import { type EngineName, engineNames } from './engine-names.ts';
import type { Ending } from './listening.ts';
import { databaseWith } from './postgres-database.ts';
import { patienceMs } from './until.ts';

export type Handles = readonly [one: Store, other: Store];

const tables: readonly Table[] = [
  ...storeTables({ collections: new Map() }),
  { name: 'things', fields: [], indexes: [], unique: [], references: [], searched: false },
];

type Engine = readonly [name: EngineName, open: (context: TestContext) => Promise<Handles>];

const allEngines: readonly Engine[] = [
  [
    'SQLite',
    async (context) => {
      const store = { ...(await openEmbedded(context)), shared: true };
      return [store, { ...store }];
    },
  ],
  [
    'PostgreSQL',
    async (context) => {
      const database = await databaseWith(tables);
      const opened: Store[] = [];
      context.after(async () => {
        for (const store of opened) await store.close();
        await database.dispose();
      });
      for (let at = 0; at < 2; at += 1) opened.push(await openPostgresStore({ url: database.url, tables }));
      return opened as [Store, Store];
    },
  ],
];

export const engines: readonly Engine[] = allEngines.filter(([name]) => engineNames.includes(name));

/**
 * The one engine of a test that has one handle and makes one change after another: test/contract shows that such a test goes the same way
 * on the other.
 */
export const embeddedOnly: typeof engines = engines.slice(0, 1);

/** The embedded store as it is: of one process alone. */
export async function openEmbedded(context: Ending = { after }, declared = tables): Promise<SqliteStore> {
  const folder = mkdtempSync(join(tmpdir(), 'comity-store-'));
  const store = await openSqliteStore({ folder, tables: declared, scanTimeoutMs: patienceMs });
  context.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return store;
}

/** What a failing store does with the units it is given: loses them, or the next one, or makes them and loses the answer. */
export type Fault = 'none' | 'lost' | 'lost-once' | 'answer-lost';

export type Failing = Store & {
  fault: Fault;
  /** Commits that have ended, well or not. */
  commits: number;
};

/** A handle whose commits fail as told: the network that breaks on the way there or on the way back. */
export function failing(store: Store): Failing {
  async function commitWith(fault: Fault, unit: Unit): Promise<Commit> {
    const unavailable = new StoreUnavailable('the test cut the connection', { retryAfterSeconds: 1 });
    if (fault === 'lost' || fault === 'lost-once') throw unavailable;
    const commit = await store.commit(unit);
    if (fault === 'answer-lost') throw unavailable;
    return commit;
  }
  const handle: Failing = {
    ...store,
    fault: 'none',
    commits: 0,
    async commit(unit) {
      const { fault } = handle;
      if (fault === 'lost-once') handle.fault = 'none';
      try {
        return await commitWith(fault, unit);
      } finally {
        handle.commits += 1;
      }
    },
  };
  return handle;
}
