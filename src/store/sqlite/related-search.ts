/**
 * Pages of lists under a condition on rows that references name, begun with those rows (store/related-drive.ts). Four ways, by how many
 * there are:
 *
 * - few: the calling thread finds the named rows, then those that refer to them, all in indexes, and sorts them;
 * - so many that the first rows of the list fill a page: the calling thread walks some of these, and finds the row that each names in an
 *   index; if they do not fill the page, or documents would have to be read, a reader thread walks more of them;
 * - some thousands: a reader thread begins with the named rows in one statement;
 * - more: a reader thread walks on, because a page is then full soon.
 */
import type { Party } from '../../model/fair-queue.ts';
import type { SqlValue } from '../field-value.ts';
import { always, type Shape, type ValueSlot } from '../filter-shape.ts';
import { quoteName } from '../quote-name.ts';
import { type Drive, driveOf, type Source } from '../related-drive.ts';
import { looksInside, serve } from '../serve.ts';
import type { ListQuery } from '../store.ts';
import type { Cells } from './cells.ts';
import { namedBy, namedSql, referringSql } from './compile/named-rows.ts';
import { valueSql } from './compile/value.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Snapshot } from './snapshot.ts';
import type { Layout } from './table-layout.ts';
import { foundMax } from './word-search.ts';

/** Rows of another table with which the calling thread begins, and rows that it sorts. */
export const namedOnCallerMax = 64;
export const rowsOnCallerMax = 512;

type Statement = { readonly sql: string; readonly parameters: readonly ValueSlot[] };

export type RelatedSearch = {
  readonly drive: Drive<Layout>;
  /** Finds the named rows of one table after the other; undefined if values of documents would have to be read. */
  readonly steps: readonly Statement[] | undefined;
  /** Counts the rows that refer to those of a parameter, up to the bound and one more. */
  readonly countSql: string;
  /** The index over the sort, whose first rows may fill a page; undefined: there is none. */
  readonly walked: string | undefined;
  /** Set if the calling thread may ask some of them: the value by which an index finds the named rows. */
  readonly named: ValueSlot | undefined;
  /** The numbers of named rows and of rows that refer to them, up to `foundMax` and one more. */
  readonly probe: Statement;
};

export function relatedSearchOf(
  layout: Layout,
  layoutOf: (table: string) => Layout,
  filter: Shape,
  sort: ListQuery['sort'],
): RelatedSearch | undefined {
  const drive = driveOf(layout, layoutOf, filter);
  if (drive === undefined) return undefined;
  const isPlain = drive.rest.every(readsColumns) && sort.every(({ field }) => field.column !== undefined);
  const { source } = drive;
  const isNamedByIndex = source.rest.length === 0 && drive.rest.every(readsOneRow);
  const rows = referringSql(layout, drive, namedBy);
  const ordered = serve(layout, always, sort);
  return {
    drive,
    walked: typeof ordered === 'object' ? ordered.index : undefined,
    named: isNamedByIndex && 'value' in source.by ? source.by : undefined,
    steps: isPlain ? stepsOf(source) : undefined,
    countSql: `SELECT count(*) FROM (SELECT 1 ${rows} LIMIT ${rowsOnCallerMax + 1})`,
    probe: probeOf(layout, drive),
  };
}

/** The ids of the named rows as JSON, if they and the rows that refer to them are few; only within `Snapshot.run`. */
export function findFew(
  { steps, countSql }: RelatedSearch,
  values: readonly SqlValue[],
  snapshot: Snapshot,
): string | undefined {
  if (steps === undefined) return undefined;
  let ids = '[]';
  for (const { sql, parameters } of steps) {
    const bound = parameters.length === 0 ? [ids] : parameters.map(({ value }) => values[value] ?? null);
    const rows = snapshot.prepare(sql).all(...bound) as unknown as readonly Cells[];
    if (rows.length > namedOnCallerMax) return undefined;
    ids = JSON.stringify(rows.map(([id]) => id));
    if (rows.length === 0) return ids;
  }
  const [count] = snapshot.prepare(countSql).get(ids) as unknown as readonly [number];
  return count > rowsOnCallerMax ? undefined : ids;
}

/** True if a read may begin with the named rows, because they and the rows that refer to them are some thousands at most. */
export async function areSomeThousands(
  { probe }: RelatedSearch,
  values: readonly SqlValue[],
  { readers, tableNumber }: { readonly readers: ReaderPool; readonly tableNumber: number },
  party: Party | undefined,
): Promise<boolean> {
  const bound = probe.parameters.map(({ value }) => values[value] ?? null);
  const { rows } = await readers.read(probe.sql, bound, tableNumber, { party });
  return (rows[0] ?? []).every((count) => Number(count) <= foundMax);
}

/** A statement for each table, from the last one of the path on. */
function stepsOf({ layout, index, field, by, rest }: Source<Layout>): readonly Statement[] | undefined {
  if (rest.length > 0) return undefined;
  const before = 'source' in by ? stepsOf(by.source) : [];
  if (before === undefined) return undefined;
  const condition = 'source' in by ? `IN ${namedBy}` : '= ?';
  const sql = `SELECT id FROM ${layout.name} INDEXED BY ${quoteName(index)} WHERE deleted_at IS NULL AND ${valueSql(field)} ${condition} LIMIT ${namedOnCallerMax + 1}`;
  return [...before, { sql, parameters: 'source' in by ? [] : [by] }];
}

function probeOf(layout: Layout, drive: Drive<Layout>): Statement {
  const parameters: ValueSlot[] = [];
  const limit = `LIMIT ${foundMax + 1}`;
  const counted = `${namedSql(drive.source, parameters, layout.name)} ${limit}`;
  const named = `${namedSql(drive.source, parameters, layout.name)} ${limit}`;
  const rows = `SELECT 1 ${referringSql(layout, drive, `(${named})`)} ${limit}`;
  return {
    sql: `SELECT (SELECT count(*) FROM (${counted})), (SELECT count(*) FROM (${rows}))`,
    parameters,
  };
}

/** True if a short document decides the condition soon. */
function readsOneRow(part: Shape): boolean {
  if ('parts' in part) return part.parts.every(readsOneRow);
  if (part.op === 'not') return readsOneRow(part.part);
  return part.op !== 'related' && !looksInside(part);
}

/** True if the condition reads only columns: a long document takes milliseconds to parse. */
function readsColumns(part: Shape): boolean {
  if ('parts' in part) return part.parts.every(readsColumns);
  if (part.op === 'not') return readsColumns(part.part);
  if (part.op === 'search' || part.op === 'related' || part.op === 'like') return false;
  return !('field' in part) || part.field.column !== undefined;
}
