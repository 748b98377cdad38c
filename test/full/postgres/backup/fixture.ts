/** Stores to move about: an embedded one with awkward rows, its backup, and a schema of its own in PostgreSQL. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import pg from 'pg';
import { columnNamesOf } from '../../../../src/store/backup-file/file-format.ts';
import { type Restored, readFile } from '../../../../src/store/backup-file/read-file.ts';
import { type OnRestore, restore } from '../../../../src/store/postgres/postgres-restore.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import type { Store, Table } from '../../../../src/store/store.ts';
import { tables } from '../../../contract/fixture.ts';
import { emptyDatabase } from '../../../harness/postgres-database.ts';
import { temporaryFolder } from '../../../harness/temporary-folder.ts';

export type Place = { readonly url: string; readonly schema: string; readonly connectTimeoutMs: number };

/** An empty database that is gone when the test is over, and a connection to look at it. */
export async function freshPlace(context: TestContext): Promise<Place & { readonly look: pg.Client }> {
  const server = await emptyDatabase();
  const look = new pg.Client({ connectionString: server.url });
  look.on('error', () => undefined);
  await look.connect();
  context.after(async () => {
    await look.end();
    await server.dispose();
  });
  return { url: server.url, schema: 'moved', connectTimeoutMs: 10_000, look };
}

/** A session that holds the locks of one statement until it ends: looking at others from within would show them as they were. */
export async function holdLocks(context: TestContext, { url }: Place, sql: string): Promise<pg.Client> {
  const holder = new pg.Client({ connectionString: url });
  // The database is dropped with whoever is connected to it.
  holder.on('error', () => undefined);
  await holder.connect();
  context.after(() => holder.end());
  await holder.query(`BEGIN; ${sql}`);
  return holder;
}

/** A folder that is gone when the tests of the file are over. */
export function freshFolder(): string {
  const folder = temporaryFolder();
  return folder;
}

/** The backup of an embedded store that `fill` has filled. */
export async function backupOf(
  fill: (store: Store) => Promise<void>,
  declared: readonly Table[] = tables,
): Promise<string> {
  const folder = freshFolder();
  const store = await openSqliteStore({ folder: join(folder, 'data'), tables: declared });
  await fill(store);
  const file = join(folder, 'backup.db');
  await store.backup(file, () => undefined);
  await store.close();
  return file;
}

export type RestoreOptions = {
  readonly declared?: readonly Table[];
  readonly onProgress?: OnRestore;
  readonly signal?: AbortSignal;
  readonly lockTimeoutMs?: number;
};

export function restoreInto(place: Place, file: string, options: RestoreOptions = {}): Promise<Restored> {
  const { url, schema, connectTimeoutMs } = place;
  const target = {
    url,
    schema,
    connectTimeoutMs,
    tables: options.declared ?? tables,
    observe: () => undefined,
    program: '0.0.0',
    ...(options.lockTimeoutMs !== undefined && { lockTimeoutMs: options.lockTimeoutMs }),
  };
  const { onProgress = () => undefined, signal = new AbortController().signal } = options;
  return restore(target, file, onProgress, signal);
}

/** Everything that a file holds but the order of its rows. */
export function contentOf(file: string): Readonly<Record<string, unknown>> {
  const source = readFile(file);
  const content: Record<string, unknown> = { rev: source.rev };
  for (const table of source.tables) {
    const rows = [...source.rows(table, columnNamesOf(table))].map((row) => [...row]);
    rows.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    content[table.name] = { rev: table.rev, searched: table.searched, rows };
  }
  source.close();
  return content;
}

/** Fails with the first row that differs: all of them at once would take minutes to print. */
export function sameContent(actual: string, expected: string): void {
  const [got, wanted] = [contentOf(actual), contentOf(expected)];
  assert.deepEqual(Object.keys(got).sort(), Object.keys(wanted).sort());
  for (const name of Object.keys(wanted)) {
    const [is, should] = [got[name], wanted[name]] as readonly { readonly rows?: readonly unknown[] }[];
    for (const [at, row] of (should?.rows ?? []).entries()) assert.deepEqual(is?.rows?.[at], row);
    assert.deepEqual(is, should);
  }
}

/** Definitions of the indexes that stand in the schema, which a restore must leave as they were. */
export async function indexesOf({ look, schema }: Place & { readonly look: pg.Client }): Promise<unknown> {
  const { rows } = await look.query(
    'SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1',
    [schema],
  );
  return rows;
}

/** How many rows each table of the schema has, by its name. */
export async function rowCounts({ look, schema }: Place & { readonly look: pg.Client }) {
  const counts: Record<string, number> = {};
  const counters = await look.query(`SELECT name FROM ${schema}.comity_counters WHERE n > 0`);
  for (const { name } of counters.rows) {
    const { rows } = await look.query(`SELECT count(*)::int AS rows FROM ${schema}."${name}"`);
    counts[String(name)] = rows[0].rows;
  }
  return counts;
}

/** Whether the session of that name waits for a lock. */
export async function isWaiting(look: pg.Client, name: string): Promise<boolean> {
  const { rows } = await look.query(
    `SELECT FROM pg_stat_activity
     WHERE application_name = $1 AND wait_event_type = 'Lock' AND datname = current_database()`,
    [name],
  );
  return rows.length > 0;
}
