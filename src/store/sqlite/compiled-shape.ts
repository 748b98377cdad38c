/** The compiled form of list queries, cached by their shape: the ways to read pages, and the statements of each way and kind of position. */
import type { OctetCache } from '../../memory/octet-cache.ts';
import type { Party } from '../../model/fair-queue.ts';
import { idField } from '../../model/field.ts';
import { rankedMax, wordsOfTerm } from '../../model/search/search-index.ts';
import type { SqlValue } from '../field-value.ts';
import {
  always,
  compiledStatement,
  conjuncts,
  isRanked,
  type Shape,
  searchIn,
  type ValueSlot,
} from '../filter-shape.ts';
import {
  anyRangeSql,
  boundSql,
  pageOrder,
  rangesBeyond,
  type Slot,
  shapeOf,
  slotsOf,
} from '../page-of-rows.ts';
import { rankSql } from '../rank-sql.ts';
import { type Drive, driveOf, looksInside, type Source, serve } from '../serve.ts';
import { quoteName } from '../sql-text.ts';
import { type ListQuery, type Position, StoreUnavailable } from '../store.ts';
import { compileFilter, matchOf, tickSql } from './compile/filter.ts';
import {
  compilePage,
  type Found,
  foundSlot,
  isFound,
  limitSlot,
  namedBy,
  namedSql,
  type PageStatement,
  referringSql,
  type Selection,
  source,
} from './compile/select.ts';
import { valueSql } from './compile/value.ts';
import type { Cells } from './connection.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Snapshot } from './snapshot.ts';
import { type Layout, pendingName } from './sqlite-schema.ts';

export type PlanSources = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly layout: Layout;
  readonly layoutOf: (table: string) => Layout;
  readonly tableNumber: number;
  /** Those of the other tables that the filter looks at. */
  readonly relatedNumbers: readonly number[];
  readonly shapes: OctetCache<CompiledShape>;
};

/** Shared by queries that differ only in values and limit. */
export type CompiledShape = {
  readonly key: string;
  /** Reads pages on a reader thread. */
  readonly scan: Selection;
  /** Reads pages on the calling thread; undefined if no index serves them. */
  readonly walk: Selection | undefined;
  /** Set if an index of words finds the rows: how few and how many found rows are read. */
  readonly search: Search | undefined;
  /** Set if indexes lead from the rows that references name to those of the list. */
  readonly related?: RelatedSearch | undefined;
  /** A condition for all rows of a walk: one value, 1 if it holds. */
  readonly gate?: { readonly sql: string; readonly parameters: readonly ValueSlot[] } | undefined;
  /** No row can match. */
  readonly empty: boolean;
  readonly statements: Map<string, readonly PageStatement[]>;
};

/** One query of a shape. */
export type Run = {
  readonly sources: PlanSources;
  readonly query: ListQuery;
  readonly shape: CompiledShape;
  readonly values: readonly SqlValue[];
};

/** The statements of a page, compiled at the first position of their kind. */
export function statementsOf(
  { sources: { shapes }, shape }: Run,
  selection: Selection,
  position: Position,
  way = kindOf(selection),
  compile = () =>
    selection.ranked === undefined ? compilePage(selection, position) : compileRanked(selection, position),
): readonly PageStatement[] {
  return compiledStatement(shapes, shape, `${way}${shapeOf(selection.sort, position)}`, compile);
}

function kindOf({ whole, found, drive, timed, capped }: Selection): string {
  if (whole) return 'whole ';
  if (found !== undefined) return `found ${found.by} `;
  if (drive !== undefined) return 'driven ';
  if (timed) return 'timed ';
  return capped ? 'capped ' : '';
}

// The statement of a page in an order by rank (src/model/search/search-index.ts). Innermost it reads the candidates, at most `rankedMax`, and
// computes their sort keys; then it sorts and cuts the keys, and reads only the documents of the page. The limit of the candidates also
// keeps SQLite from merging the levels, which would compute each rank several times.

function compileRanked(selection: Selection, position: Position): readonly PageStatement[] {
  const order = pageOrder(selection.sort, position);
  const ranges = rangesBeyond(order, position);
  if (ranges?.length === 0) return [];
  const parameters: (ValueSlot | Slot)[] = [];
  const keys = selection.sort.map((_, slot) => `k${slot}`).join(', ');
  const from = `(${candidatesSql(selection, parameters)})`;
  let sql = `SELECT n, ${keys} FROM ${from}`;
  if (ranges !== undefined) {
    sql += ` WHERE ${anyRangeSql(ranges, (bound) => boundSql(bound, `k${bound.slot}`, () => '?'))}`;
    parameters.push(...ranges.flatMap(({ bounds }) => slotsOf(bounds)));
  }
  const sorted = order.map(({ slot, direction }) => `k${slot} ${direction === 'asc' ? 'ASC' : 'DESC'}`);
  sql += ` ORDER BY ${sorted.join(', ')} LIMIT ?`;
  parameters.push(limitSlot);
  if (position.from === 'offset') {
    sql += ' OFFSET ?';
    parameters.push({ slot: 0 });
  }
  const ofRow = (column: string) => `(SELECT ${column} FROM ${selection.layout.name} WHERE rowid = p.n)`;
  const heads = selection.heads ? `, ${ofRow('owner')}, ${ofRow('rev')}` : '';
  return [{ sql: `SELECT ${ofRow('doc')}, ${keys}${heads} FROM (${sql}) AS p`, parameters }];
}

/**
 * With `found`: what the index of words finds, the rows stored last before others. Without: rows along the index of the service, those
 * created last before others, each asked for the words.
 */
function candidatesSql(
  { layout, filter, sort, found, service, ranked = [] }: Selection,
  parameters: (ValueSlot | Slot)[],
): string {
  const rank = rankSql(ranked, {
    ...{ place: 'instr', least: 'min', greatest: 'max' },
    term(at) {
      parameters.push({ value: at + 1 });
      return '?';
    },
  });
  const { name } = layout;
  const keys = sort.map(
    ({ field }, slot) => `${field.column === 'rank' ? rank : valueSql(field, `${name}.`)} AS k${slot}`,
  );
  const conditions = [tickSql, 'deleted_at IS NULL'];
  let from = name;
  let order = 'id';
  if (found === undefined) from += service === undefined ? '' : ` INDEXED BY ${quoteName(service.index)}`;
  else {
    from = source(layout, found);
    parameters.push(foundSlot(found));
    order = 'found.n';
  }
  for (const part of conjuncts(filter)) {
    if (part.op === 'always' || isFound(part, found)) continue;
    conditions.push(compileFilter(part, parameters, name));
  }
  return `SELECT ${name}.rowid AS n, ${keys.join(', ')} FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY ${order} DESC LIMIT ${rankedMax}`;
}

/*
 * Pages and counts of searches that an index of words serves. A probe counts what the index finds, up to a bound, and so chooses between
 * two ways whose costs do not grow with the table: few rows are fetched and sorted; of many, an index over the sort is walked, and each row
 * is asked for the words, because a page is then full soon.
 */

/** Rows that are fetched and sorted for one page: some 15 ms. */
export const foundMax = 4096;

/** Rows whose numbers are passed to the statement of the page, which then does not ask the index of words again. */
export const listedMax = 512;

/** Rows with one word of several whose texts are asked for the others, which costs less than to find these rows in long lists of the index. */
export const candidatesMax = 64;

type WordSearch = {
  readonly found: Found;
  /** Where the values of the terms are. */
  readonly terms: readonly number[];
  /** One value, the query of the index: how many rows it finds, up to `foundMax` and one more, and 1 if the index is incomplete. */
  readonly probeSql: string;
  /** Two values, the query of the index and a limit. As `probeSql`, up to the limit, with the numbers of the rows as JSON. */
  readonly listSql: string;
};

export function wordSearchOf(layout: Layout, filter: Shape): WordSearch | undefined {
  const words = searchIn(filter);
  if (words === undefined || layout.words?.words.mark !== words.mark) return undefined;
  const { name, pendingSql } = layout.words;
  const first = (limit: string): string =>
    `(SELECT rowid AS n FROM ${name} WHERE ${name} MATCH ? LIMIT ${limit})`;
  const isPending = `EXISTS (SELECT 1 FROM ${layout.name} INDEXED BY ${quoteName(pendingName(layout.table))} WHERE ${pendingSql})`;
  return {
    found: { name, at: words.at, by: 'query' },
    terms: words.terms,
    probeSql: `SELECT count(*), ${isPending} FROM ${first(String(foundMax + 1))}`,
    listSql: `SELECT count(*), ${isPending}, json_group_array(n) FROM ${first('?')}`,
  };
}

export type Search = {
  readonly words: WordSearch;
  /** As `few`, of rows whose numbers are listed. */
  readonly listed: Selection;
  readonly candidates: Selection;
  readonly few: Selection;
  readonly many: Selection;
};

/** @param scan walks the index over the sort, if there is one, and asks each row for the words */
export function searchOf(scan: Selection, words: WordSearch): Search {
  const few: Selection = {
    ...{ ...scan, service: undefined, found: words.found },
    ...(isRanked(scan.sort) ? { ranked: words.terms } : {}),
  };
  const by = (way: Found['by']): Selection => ({ ...few, found: { ...words.found, by: way } });
  const many = few.ranked === undefined ? scan : manyRanked(few);
  return { words, listed: by('rows'), candidates: by('candidates'), few, many };
}

/** The queries of the index for each word of several. Phrases are left out, and prefixes, for which FTS5 gathers all rows before the first. */
export function singleWords({ terms }: WordSearch, values: readonly SqlValue[]): readonly string[] {
  if (terms.length < 2) return [];
  return terms.flatMap((at) => {
    const term = String(values[at + 1]);
    const { words, isPrefix } = wordsOfTerm(term);
    return isPrefix || words.length > 1 ? [] : [matchOf([term])];
  });
}

/** If the search finds many rows and the filter has an index of its own, it reads the rows of that index, which may be much fewer. */
function manyRanked(few: Selection): Selection {
  const own = serve(few.layout, withoutSearch(few.filter), newestFirst);
  if (typeof own !== 'object' || own.index === few.layout.primaryKey) return few;
  return { ...few, found: undefined, service: own };
}

const newestFirst: ListQuery['sort'] = [{ field: idField, direction: 'desc' }];

/** The rest of a conjunction, which decides if an index serves the sort. */
export function withoutSearch(filter: Shape): Shape {
  return { op: 'and', parts: conjuncts(filter).filter(({ op }) => op !== 'search') };
}

/** @returns the number of rows that the index finds, up to `foundMax` and one more @throws StoreUnavailable while it is incomplete */
export async function probe(
  { found, probeSql }: WordSearch,
  values: readonly SqlValue[],
  { readers, layout, tableNumber }: { readers: ReaderPool; layout: Layout; tableNumber: number },
  party: Party | undefined,
): Promise<number> {
  const { rows } = await readers.read(probeSql, [values[found.at] ?? null], tableNumber, { party });
  const [count, isPending] = rows[0] ?? [];
  if (isPending === 1) throw beingBuilt(layout);
  return Number(count);
}

export function beingBuilt({ table }: Layout): StoreUnavailable {
  return new StoreUnavailable(`the search index of ${table.name} is being built; repeat the request later`);
}

/*
 * Pages of lists under a condition on rows that references name, begun with those rows (store/serve.ts). Four ways, by how many
 * there are:
 *
 * - few: the calling thread finds the named rows, then those that refer to them, all in indexes, and sorts them;
 * - so many that the first rows of the list fill a page: the calling thread walks some of these, and finds the row that each names in an
 *   index; if they do not fill the page, or documents would have to be read, a reader thread walks more of them;
 * - some thousands: a reader thread begins with the named rows in one statement;
 * - more: a reader thread walks on, because a page is then full soon.
 */

/** Rows of another table with which the calling thread begins, and rows that it sorts. */
const namedOnCallerMax = 64;
const rowsOnCallerMax = 512;

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
