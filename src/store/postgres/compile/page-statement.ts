/**
 * The common parts of page statements. Each reads one page with the table's version, in one snapshot: rows come as (doc, sort keys unless
 * the document holds them, the head if asked for, `more` if octets cut the page, version), an empty page as one row without a document. A statement for whole rows
 * returns only the contract's columns.
 */
import type { Field } from '../../../model/field.ts';
import type { Sort } from '../../../model/filter.ts';
import { rankedMax } from '../../../model/search/search-index.ts';
import { isNeverNull, keyParameter } from '../../field-value.ts';
import { type Shape, searchIn } from '../../filter-shape.ts';
import {
  anyRangeSql,
  type Bound,
  boundSql,
  isKeyInDocument,
  type OrderKey,
  omittedDocument,
  pageOrder,
  rangesBeyond,
} from '../../page-of-rows.ts';
import { rankSql } from '../../rank-sql.ts';
import { quoteName } from '../../sql-text.ts';
import { headColumns, type Position, rowColumns, StoreUnavailable } from '../../store.ts';
import type { Bindable, Call } from '../connection/connection.ts';
import type { Index, Layout } from '../schema/schema-layout.ts';
import { isSlot, type Parameter, Parameters, pendingInIndex, quoteText, valueSql } from './expressions.ts';
import { compileFilter, typeOf } from './filter.ts';

export type Selection = {
  readonly layout: Layout;
  /** Not quoted. */
  readonly schema: string;
  /** The table's number in the counters, which hold its version. */
  readonly tableNumber: number;
  /** Those of the other tables that the filter looks at. */
  readonly relatedNumbers: readonly number[];
  readonly filter: Shape;
  readonly sort: readonly Sort[];
  /** Rows to read: one row beyond the page shows whether rows remain. */
  readonly rows: number;
  /** Select the heads of the rows as well. */
  readonly heads: boolean;
  /** Select whole rows instead of documents with their sort keys; the call gives their number, within `rows`. */
  readonly whole: boolean;
  /** How octets end a page; undefined: they do not (page-of-rows.ts). */
  readonly octets: OctetBound | undefined;
};

export type OctetBound =
  /** Omits longer documents. */
  | { readonly kind: 'capped'; readonly docBytesMax: number }
  /** Ends the page once its documents have this many octets. */
  | { readonly kind: 'cut'; readonly bytesMax: number };

/** One text serves every query and position of the same shape; `bind` adds the values. */
export type PageStatement = {
  readonly sql: string;
  readonly parameters: readonly Parameter[];
  readonly prepared: boolean;
};

/** Slot of the position's offset. */
export const offsetSlot = -1;
/** Slot of the number of whole rows. */
export const limitSlot = -2;

type Arguments = {
  readonly values: readonly Bindable[];
  readonly position: Position;
  /** Whole rows wanted; pages have their limit in the text. */
  readonly limit?: number;
};

/** The call that reads the page at this position, or `limit` whole rows from it on. */
export function bind(
  { sql, parameters, prepared }: PageStatement,
  sort: readonly Sort[],
  { values, position, limit }: Arguments,
): Call {
  const bound = parameters.map((parameter): Bindable => {
    if (!isSlot(parameter)) return parameter;
    if ('value' in parameter) return values[parameter.value] ?? null;
    if (parameter.slot === limitSlot) return limit ?? null;
    if (position.from === 'offset') return position.offset;
    const field = sort[parameter.slot]?.field;
    if (position.from === 'start' || field === undefined) return null;
    return keyParameter(field, position.key[parameter.slot] ?? null);
  });
  return { sql, values: bound, prepared };
}

/** Tables that the statement begins with, and the number of their rows, which each row has before the version. */
export type Beginning = { readonly tables: string; readonly count: string };

/** @param page undefined if no row can be on it */
export function pageStatement(
  selection: Selection,
  page: string | undefined,
  parameters: Parameters,
  prepared: boolean,
  beginning?: Beginning,
): PageStatement {
  const { sort, rows, whole, heads, octets } = selection;
  if (whole) {
    const sql = page === undefined ? 'SELECT NULL LIMIT 0' : `SELECT * FROM (${page}) p LIMIT ${rows}`;
    return { sql, parameters: parameters.list, prepared };
  }
  const counters = versionSql(selection);
  const keys = isKeyInDocument(sort) ? '' : sort.map((_, at) => `, p.k${at}`).join('');
  const names = `${keys}${headColumns(heads, 'p.')}`;
  // The limit around the join equals the page's; it exists for its estimate (expressions.ts).
  const isCut = octets?.kind === 'cut';
  const doc =
    octets?.kind === 'capped'
      ? `CASE WHEN octet_length(p.doc) > ${octets.docBytesMax} THEN '${omittedDocument}' ELSE p.doc END`
      : 'p.doc';
  const cut = page === undefined || !isCut ? page : cutSql(page, octets.bytesMax);
  const [begun, count] =
    beginning === undefined ? ['', ''] : [`WITH ${beginning.tables} `, `${beginning.count}, `];
  const columns = `${doc}${names}${isCut ? ', p.more' : ''}, ${count}c.rev`;
  const sql =
    cut === undefined
      ? `SELECT NULL, ${isCut ? 'NULL, ' : ''}${count}c.rev FROM ${counters}`
      : `SELECT ${columns} FROM ${counters} LEFT JOIN (${cut}) p ON TRUE LIMIT ${rows}`;
  return { sql: `${begun}${sql}`, parameters: parameters.list, prepared };
}

/**
 * One row with the latest revision of the tables of a page; for a search whose texts are not those of this process's declaration, -1, which no
 * version is (`ofReadyTexts`).
 */
export function versionSql({
  layout,
  schema,
  tableNumber,
  relatedNumbers,
  filter,
}: Pick<Selection, 'layout' | 'schema' | 'tableNumber' | 'relatedNumbers' | 'filter'>): string {
  const counters = countersSql(schema, [tableNumber, ...relatedNumbers]);
  const unready = searchIn(filter) === undefined ? undefined : unreadySql(layout, schema);
  return unready === undefined
    ? counters
    : `(SELECT CASE WHEN ${unready} THEN -1 ELSE c.rev END AS rev FROM ${counters}) c`;
}

/** @param number of a statement of a search; -1: texts are not ready @throws StoreUnavailable */
export function ofReadyTexts(number: number, table: string, onUnready: () => void): number {
  if (number >= 0) return number;
  onUnready();
  throw new StoreUnavailable(`the search texts of ${table} are being made; repeat the request later`);
}

/**
 * True if an undeleted row has no search text of the declaration of this layout. While the store records another declaration, whose
 * processes make the texts, every row counts as such.
 */
export function unreadySql({ name, search, table: { words } }: Layout, schema: string): string | undefined {
  if (search === undefined || words === undefined) return undefined;
  return `(NOT ${isRecordedSql(search.pending, schema)} OR EXISTS (SELECT FROM ${name} WHERE ${pendingInIndex(words.mark, schema)}))`;
}

/** True if the store records the index as this process declares it. */
export function isRecordedSql(index: Index, schema: string): string {
  return `EXISTS (SELECT FROM ${quoteName(schema)}.comity_indexes WHERE name = ${quoteText(index.name)} AND definition = ${quoteText(index.definition)})`;
}

/** One row with the latest revision of the tables. */
export function countersSql(schema: string, tables: readonly number[]): string {
  const counters = `${quoteName(schema)}.comity_counters`;
  if (tables.length === 1) return `(SELECT rev FROM ${counters} WHERE n = ${tables[0]}) c`;
  return `(SELECT max(rev) AS rev FROM ${counters} WHERE n IN (${tables.join(', ')})) c`;
}

/**
 * The rows of a statement until their documents reach the bound, each with `more`, which is null for the last of all rows. The server
 * counts without reading the omitted documents (`octet_length` reads no content), in the order of the statement, which a window without an
 * order keeps.
 */
export function cutSql(rows: string, bytesMax: number): string {
  const before = 'sum(octet_length(q.doc)) OVER w - octet_length(q.doc)';
  return `SELECT * FROM (SELECT q.*, ${before} AS before, lead(1) OVER w AS more FROM (${rows}) q
    WINDOW w AS (ROWS UNBOUNDED PRECEDING)) b WHERE b.before < ${bytesMax}`;
}

export function columnsSql({ sort, whole, heads }: Pick<Selection, 'sort' | 'whole' | 'heads'>): string {
  if (whole) return rowColumns;
  return `doc${isKeyInDocument(sort) ? '' : keyColumnsSql(sort)}${headColumns(heads)}`;
}

/** The keys of the sort, each after a comma. */
export function keyColumnsSql(sort: readonly Sort[]): string {
  return sort.map(({ field }, at) => `, ${valueSql(field)} AS k${at}`).join('');
}

/** The order of rows that have their keys as columns. */
export function keyOrderSql(order: readonly OrderKey[]): string {
  const terms = order.map(({ field, direction, slot }) => `k${slot}${directionSql(field, direction)}`);
  return ` ORDER BY ${terms.join(', ')}`;
}

/** Null sorts first ascending. For a column that is never null the clause is omitted, as in its indexes. */
export function orderSql(order: readonly Pick<OrderKey, 'field' | 'direction'>[]): string {
  const terms = order.map(({ field, direction }) => `${valueSql(field)}${directionSql(field, direction)}`);
  return terms.length === 0 ? '' : ` ORDER BY ${terms.join(', ')}`;
}

function directionSql(field: Field, direction: Sort['direction']): string {
  const ascending = direction === 'asc';
  const nulls = isNeverNull(field) ? '' : ascending ? ' NULLS FIRST' : ' NULLS LAST';
  return `${ascending ? '' : ' DESC'}${nulls}`;
}

/*
 * The statement of a page in an order by rank (src/model/search/search-index.ts). Innermost it reads the candidates, at most `rankedMax`, those
 * created last; then it computes their sort keys, and then sorts and cuts them. Long documents stay outside of the sort, as references to
 * TOAST. It shows its values to the server, whose statistics tell whether the index of words or the primary key finds the candidates sooner.
 */

export function compileRanked(selection: Selection, position: Position): PageStatement {
  const { layout, schema, filter } = selection;
  const parameters = new Parameters(false);
  const level = { name: layout.name, schema, steered: false };
  const condition = compileFilter(filter, parameters, level);
  const candidates = `SELECT * FROM ${layout.name} WHERE deleted_at IS NULL AND ${condition} ORDER BY id DESC LIMIT ${rankedMax}`;
  return rankedStatement(selection, position, { candidates, parameters });
}

type Candidates = {
  /** A statement for them, with whole rows. */
  readonly candidates: string;
  readonly parameters: Parameters;
  /** The tables that `candidates` reads, in a statement that is prepared. */
  readonly begun?: Beginning;
};

/** @throws RangeError for a filter that requires no search by an index of words */
export function rankedStatement(
  selection: Selection,
  position: Position,
  { candidates, parameters, begun }: Candidates,
): PageStatement {
  const { filter, sort, rows, heads } = selection;
  const search = searchIn(filter);
  if (search === undefined) throw new RangeError('a sort by rank needs a search by an index of words');
  const rank = rankSql(search.terms, {
    ...{ place: 'strpos', least: 'least', greatest: 'greatest' },
    term: (at) => parameters.addValue(at + 2, 'text'),
  });
  const keys = sort.map(
    ({ field }, slot) => `${field.column === 'rank' ? rank : valueSql(field)} AS k${slot}`,
  );
  // OFFSET 0 keeps the planner from merging the levels, which would compute each rank several times.
  let page = `SELECT * FROM (SELECT doc, ${keys.join(', ')}${headColumns(heads)} FROM (${candidates}) c OFFSET 0) r`;
  const order = pageOrder(sort, position);
  const ranges = rangesBeyond(order, position);
  if (ranges?.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
  if (ranges !== undefined) {
    const mark = ({ slot, field }: Bound) => parameters.addSlot(slot, typeOf(field, true));
    page += ` WHERE ${anyRangeSql(ranges, (bound) => boundSql(bound, `k${bound.slot}`, () => mark(bound)))}`;
  }
  page += `${keyOrderSql(order)} LIMIT ${rows}`;
  if (position.from === 'offset') page += ` OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  return pageStatement(selection, page, parameters, begun !== undefined, begun);
}
