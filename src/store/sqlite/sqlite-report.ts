/**
 * Reports on the tables and indexes of the embedded store (`Store.report`), read by a reader thread. Small tables are counted; a larger one
 * is estimated from parts of the range of its rowids, so that the cost does not grow with it (5 ms for 10^6 rows).
 */
import { statSync } from 'node:fs';
import { reportIndexes, wantedIndexes } from '../declared-indexes.ts';
import { quoteName } from '../quote-name.ts';
import type { Table } from '../store.ts';
import { countedRowsMax, type IndexReport, type StoreReport, type TableReport } from '../store-report.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { TableDirectory } from './reconcile.ts';
import type { Layout } from './table-layout.ts';
import { pendingName } from './word-index.ts';

const samples = 32;
const rowidsPerSample = 128;

type Sources = {
  readonly readers: Pick<ReaderPool, 'read'>;
  readonly tableOf: TableDirectory;
  /** Size of the file in octets. */
  readonly path: string;
  readonly tables: readonly Table[];
};

type Ask = (sql: string, parameters?: readonly number[]) => Promise<readonly unknown[]>;

export async function reportStore(sources: Sources, names: readonly string[]): Promise<StoreReport> {
  const { readers, tableOf, path, tables } = sources;
  const { tableNumber } = tableOf(names[0] ?? 'events');
  const ask: Ask = async (sql, parameters = []) =>
    (await readers.read(sql, parameters, tableNumber)).rows[0] ?? [];
  const [version] = await ask('SELECT user_version FROM pragma_user_version()');
  const { rows: objects } = await readers.read('SELECT name FROM sqlite_schema', [], tableNumber);
  const standing = new Set(objects.map(([name]) => String(name)));
  const reports: TableReport[] = [];
  for (const name of names) {
    const { layout } = tableOf(name);
    reports.push({
      name,
      ...(await rowsOf(ask, layout.name)),
      bytes: null,
      indexes: await indexesOf(ask, layout, tables, standing),
    });
  }
  const files = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  return {
    bytes: files.reduce((sum, size) => sum + size, 0),
    schemaVersion: Number(version),
    tables: reports,
  };
}

async function rowsOf(ask: Ask, name: string): Promise<Pick<TableReport, 'rows' | 'isEstimate'>> {
  const [seen, live] = await ask(
    `SELECT count(*), total(deleted_at IS NULL) FROM (SELECT deleted_at FROM ${name} LIMIT ${countedRowsMax + 1})`,
  );
  if (Number(seen) <= countedRowsMax) return { rows: Number(live), isEstimate: false };
  const [least, most] = (
    await ask(`SELECT (SELECT min(rowid) FROM ${name}), (SELECT max(rowid) FROM ${name})`)
  ).map(Number);
  const first = least ?? 0;
  const span = (most ?? 0) - first + 1;
  const starts = Array.from({ length: samples }, (_, index) => first + Math.floor((span * index) / samples));
  const [found] = await ask(
    `WITH part (start) AS (VALUES ${starts.map(() => '(?)').join(', ')})
    SELECT count(*) FROM part CROSS JOIN ${name} AS t
    WHERE t.rowid >= start AND t.rowid < start + ${rowidsPerSample} AND t.deleted_at IS NULL`,
    starts,
  );
  return { rows: Math.round((Number(found) / (samples * rowidsPerSample)) * span), isEstimate: true };
}

async function indexesOf(
  ask: Ask,
  { table, name, words }: Layout,
  tables: readonly Table[],
  standing: ReadonlySet<string>,
): Promise<readonly IndexReport[]> {
  const indexes = reportIndexes(wantedIndexes(table, tables), (label) => standing.has(label));
  if (words === undefined) return indexes;
  const pending = pendingName(table);
  const stands =
    words.objects.every((object) => standing.has(object.name)) &&
    standing.has(pending) &&
    Number(
      (
        await ask(
          `SELECT EXISTS (SELECT 1 FROM ${name} INDEXED BY ${quoteName(pending)} WHERE ${words.pendingSql})`,
        )
      )[0],
    ) === 0;
  return [...indexes, { kind: 'search', fields: words.words.fields, stands }];
}
