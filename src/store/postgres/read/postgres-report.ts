/**
 * Reports on the store's tables and indexes in PostgreSQL (`Store.report`). Small tables are counted; of a larger one the server's own
 * estimate is taken, so that the cost does not grow with it. Sizes include indexes and long values.
 */
import { reportIndexes, wantedIndexes } from '../../declared-indexes.ts';
import { quoteName } from '../../quote-name.ts';
import type { Table } from '../../store.ts';
import { countedRowsMax, type IndexReport, type StoreReport, type TableReport } from '../../store-report.ts';
import { pendingSql } from '../compile/words.ts';
import type { Cell } from '../connection/call.ts';
import type { ScanLane } from '../connection/scan-lane.ts';
import { physicalName } from '../schema/physical-name.ts';
import type { Layout } from '../schema/schema-layout.ts';

type Sources = {
  readonly scan: Pick<ScanLane, 'read'>;
  readonly schema: string;
  readonly layoutOf: (table: string) => Layout;
  readonly tables: readonly Table[];
};

type Ask = (sql: string, ...values: readonly string[]) => Promise<readonly (readonly Cell[])[]>;

export async function reportStore(
  { scan, schema, layoutOf, tables }: Sources,
  names: readonly string[],
): Promise<StoreReport> {
  const ask: Ask = (sql, ...values) => scan.read({ sql, values, prepared: values.length > 0 });
  const [[version = 0] = []] = await ask(`SELECT max(number) FROM ${quoteName(schema)}.comity_migrations`);
  const sizes = new Map(
    (await ask(sizesSql, schema)).map(([name, bytes, live]) => [
      String(name),
      [Number(bytes), Number(live)] as const,
    ]),
  );
  const standing = new Set((await ask(indexesSql, schema)).map(([name]) => String(name)));
  const reports: TableReport[] = [];
  for (const name of names) {
    const layout = layoutOf(name);
    const [bytes, live] = sizes.get(name) ?? [0, 0];
    const rows = await rowsOf(ask, layout.name, live);
    reports.push({ name, ...rows, bytes, indexes: await indexesOf(ask, layout, tables, standing) });
  }
  const bytes = [...sizes.values()].reduce((sum, [size]) => sum + size, 0);
  return { bytes, schemaVersion: Number(version), tables: reports };
}

/** A table that was never analysed has -1 tuples, and a count of its own in the statistics. */
const sizesSql = `
SELECT c.relname, pg_total_relation_size(c.oid),
  CASE WHEN c.reltuples >= 0 THEN c.reltuples ELSE pg_stat_get_live_tuples(c.oid) END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'm')`;

const indexesSql = `
SELECT i.relname FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
WHERE n.nspname = $1::text AND x.indisvalid AND x.indisready AND x.indislive`;

async function rowsOf(
  ask: Ask,
  name: string,
  live: number,
): Promise<Pick<TableReport, 'rows' | 'isEstimate'>> {
  const [[seen, undeleted] = []] = await ask(
    `SELECT count(*), count(*) FILTER (WHERE deleted_at IS NULL) FROM (SELECT deleted_at FROM ${name} LIMIT ${countedRowsMax + 1}) AS first`,
  );
  if (Number(seen) <= countedRowsMax) return { rows: Number(undeleted), isEstimate: false };
  return { rows: Math.max(Math.round(live), countedRowsMax + 1), isEstimate: true };
}

async function indexesOf(
  ask: Ask,
  { table, name, search }: Layout,
  tables: readonly Table[],
  standing: ReadonlySet<string>,
): Promise<readonly IndexReport[]> {
  const wanted = wantedIndexes(table, tables);
  const indexes = reportIndexes(wanted, (label) => standing.has(physicalName(label)));
  const { words } = table;
  if (search === undefined || words === undefined) return indexes;
  const isMade = standing.has(search.words.name) && standing.has(search.pending.name);
  const stands =
    isMade &&
    (await ask(`SELECT EXISTS (SELECT FROM ${name} WHERE ${pendingSql(words.mark)})`))[0]?.[0] === false;
  return [...indexes, { kind: 'search', fields: words.fields, stands }];
}
