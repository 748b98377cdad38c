/**
 * Fills a closed store with rows for benchmarks and fixtures, through the real schema and the writer's statements, in large transactions
 * with one fsync at the end. Not for restoring data: it does not check references, and a crash leaves it incomplete.
 */
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { migrate } from '../../src/store/backup-file/file-format.ts';
import { connect, inTransaction } from '../../src/store/sqlite/connection.ts';
import { lockFolder } from '../../src/store/sqlite/home.ts';
import { type Layout, layoutsOf, reconcile } from '../../src/store/sqlite/sqlite-schema.ts';
import { prepareStatements } from '../../src/store/sqlite/writer/apply.ts';
import type { NextRow, Table } from '../../src/store/store.ts';

const rowsPerTransaction = 20_000;

export type SeedRow = { readonly id: string; readonly row: Omit<NextRow, 'references'> };

/**
 * Adds rows to one table and creates its indexes after the last row. Each transaction has one revision.
 * @returns the number of rows added
 */
export function seedTable(
  folder: string,
  tables: readonly Table[],
  name: string,
  rows: Iterable<SeedRow>,
): number {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(folder);
  const path = join(folder, 'comity.db');
  closeSync(openSync(path, 'a', 0o600));
  const database = connect(path, 'writer', { cacheKibibytes: 262_144, busyTimeoutMs: 0, mappedBytesMax: 0 });
  try {
    migrate(database, path, ignore);
    const layouts = layoutsOf(tables);
    const bare = layouts.map(
      (layout): Layout => (layout.table.name === name ? { ...layout, indexes: [] } : layout),
    );
    const numbers = reconcile(database, bare, ignore);
    database.exec('PRAGMA synchronous = OFF');
    const statements = prepareStatements(database, layouts, numbers);
    const table = statements.of(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    let rev = Number(database.prepare('SELECT rev FROM comity_counters WHERE n = 0').get()?.rev);
    let added = 0;
    for (const batch of inBatches(rows, rowsPerTransaction)) {
      rev += 1;
      inTransaction(database, () => {
        statements.setCounter.run(rev, 0);
        statements.setCounter.run(rev, table.number);
        for (const { id, row } of batch) {
          const values = [row.doc, row.owner, row.createdAt, row.updatedAt, row.deletedAt, rev];
          if (table.searched) values.push(row.search);
          table.insert.run(...values, id);
        }
      });
      added += batch.length;
    }
    reconcile(database, layouts, ignore);
    database.exec('PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)');
    return added;
  } finally {
    database.close();
    release();
  }
}

/** The rows in order, `size` at a time, the last of them in a shorter batch. */
export function* inBatches(rows: Iterable<SeedRow>, size: number): Generator<readonly SeedRow[]> {
  let batch: SeedRow[] = [];
  for (const row of rows) {
    batch.push(row);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function ignore(): void {
  // No observer was given.
}
