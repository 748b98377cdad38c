/**
 * The page of a search by the index of words, as one bounded statement whose plan no statistics decide. Those of the server say of a rare
 * word only that it is rarer than all that they list: among 1,000,000 documents it walked the whole list, for 3.3 s, to find 20.
 *
 * Some rows beyond the position are asked first: a word of many documents fills the page with them. If it does not, the index finds the
 * rows with all words, up to a bound and one more, and these are filtered and sorted. Each row says how many were found: beyond the bound
 * the page may lack rows, and then a statement that the server plans by its statistics reads it, which know a frequent word.
 */
import { idField } from '../../../model/field.ts';
import { rankedMax } from '../../../model/search/rank.ts';
import { always, conjuncts, isRanked, type Shape } from '../../filter-shape.ts';
import { type OrderKey, rangesBeyond, reversed } from '../../keyset.ts';
import { serve } from '../../serve.ts';
import type { Position } from '../../store.ts';
import { compileFilter } from './filter.ts';
import {
  type Beginning,
  keyColumnsSql,
  keyOrderSql,
  nullsOf,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';
import { rankedStatement } from './ranked.ts';
import { liveInTable, passedOver } from './steering.ts';
import { anyRangeSql, walkSql } from './walk.ts';

/** Found rows that are sorted for a page: some 8 ms. */
export const foundMax = 1024;

/** Rows asked before the index of words, for each that the page wants, and in all: some 0.3 ms for a page of 20. */
const firstPerRow = 6;
const firstMax = 256;
/** Search texts of these rows, in octets. */
const firstOctetsMax = 256 * 1024;

const firstName = 'comity_first';
const foundName = 'comity_found';

/** The parts of the filter: the searches that the index of words serves, and the others. */
export type Searched = { readonly searches: readonly Shape[]; readonly rest: readonly Shape[] };

/** @returns undefined if the filter requires no search by an index of words */
export function searchedBy(filter: Shape): Searched | undefined {
  const isSearch = (part: Shape): boolean => part.op === 'search' && part.words !== undefined;
  const parts = conjuncts(filter);
  if (!parts.some(isSearch)) return undefined;
  return { searches: parts.filter(isSearch), rest: parts.filter((part) => !isSearch(part)) };
}

/** The places of the queries of the index of words among the values of the filter. */
export function wordsIn({ searches }: Searched): readonly number[] {
  return searches.flatMap((part) =>
    part.op === 'search' && part.words !== undefined ? [part.words.at] : [],
  );
}

/** @throws RangeError for a position by offset in an order without rank */
export function compileFound(selection: Selection, searched: Searched, position: Position): PageStatement {
  const compile = isRanked(selection.sort) ? compileRankedFound : compileOrderedFound;
  return compile(selection, searched, position);
}

/** The number of found rows up to which the page is whole. */
export function foundMostFor(sort: Selection['sort']): number {
  return isRanked(sort) ? rankedMax : foundMax;
}

function compileOrderedFound(selection: Selection, searched: Searched, position: Position): PageStatement {
  if (position.from === 'offset') throw new RangeError('found rows are not passed over');
  const { sort, rows, owners } = selection;
  const parameters = new Parameters(true);
  const columns = `doc${keyColumnsSql(sort)}${owners ? ', owner' : ''}`;
  const order = pageOrder(sort, position);
  const ranges = 'key' in position ? rangesBeyond(order, nullsOf(position)) : undefined;
  if (ranges?.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
  const first = firstRows(selection, searched, position, parameters);
  const keyNames = sort.map((_, slot) => `, k${slot}`).join('');
  const matching =
    first === undefined
      ? undefined
      : `SELECT doc${keyNames}${owners ? ', owner' : ''} ${first}${keyOrderSql(order)}`;
  const begun = foundRows(selection, searched, parameters, { max: foundMax, enough: rows, first: matching });
  const conditions = restOf(selection, searched, parameters, foundMax);
  if (ranges !== undefined) conditions.push(anyRangeSql(ranges, parameters));
  const found = `SELECT ${columns} FROM ${foundName} WHERE ${conditions.join(' AND ')}${keyOrderSql(order)} LIMIT ${rows}`;
  // Each arm is in order, and one of them has no rows.
  const page =
    matching === undefined
      ? found
      : `(SELECT * FROM ${firstName} WHERE ${countSql(firstName)} = ${rows}) UNION ALL (${found})`;
  return pageStatement(selection, page, parameters, true, begun);
}

/** A word that so many of the first rows have is looked for along the primary key before a ranking, and not in the index. */
const frequentFrom = 16;

/** In an order by rank every found row counts, the newest first, so the first rows tell only whether a word is frequent. */
function compileRankedFound(selection: Selection, searched: Searched, position: Position): PageStatement {
  const { layout, schema, filter } = selection;
  const parameters = new Parameters(true);
  const newest = { ...selection, sort: newestFirst };
  const first = firstRows(newest, { ...searched, rest: [] }, { from: 'start' }, parameters);
  const begun = foundRows(selection, searched, parameters, {
    ...{ max: rankedMax, enough: frequentFrom },
    first: first === undefined ? undefined : `SELECT id ${first}`,
  });
  const conditions = restOf(selection, searched, parameters, rankedMax);
  const found = `SELECT * FROM ${foundName} WHERE ${conditions.join(' AND ')}`;
  if (first === undefined)
    return rankedStatement(selection, position, { candidates: found, parameters, begun });
  const level = { name: layout.name, schema, steered: true };
  const matching = passedOver(compileFilter(filter, parameters, level));
  const walked = `SELECT * FROM ${layout.name} WHERE ${liveInTable(schema)} AND ${matching} AND ${countSql(firstName)} = ${frequentFrom} ORDER BY id DESC LIMIT ${rankedMax}`;
  const candidates = `(${found}) UNION ALL (${walked})`;
  return rankedStatement(selection, position, { candidates, parameters, begun });
}

const newestFirst: Selection['sort'] = [{ field: idField, direction: 'desc' }];

type Found = {
  readonly max: number;
  /** So many rows of `first` tell that the index need not be asked. */
  readonly enough: number;
  readonly first: string | undefined;
};

/** The tables of the first rows that match and of those found, with the number of the latter. */
function foundRows(
  { layout, schema }: Selection,
  { searches }: Searched,
  parameters: Parameters,
  { max, enough, first }: Found,
): Beginning {
  // The planner takes the values for unknown, and each row that another way than the index touches for dear (steering.ts).
  const level = { name: layout.name, schema, steered: true };
  const conditions = [liveInTable(schema), ...searches.map((part) => compileFilter(part, parameters, level))];
  const tables: string[] = [];
  if (first !== undefined) {
    tables.push(`${firstName} AS MATERIALIZED (${first} LIMIT ${enough})`);
    conditions.push(`${countSql(firstName)} < ${enough}`);
  }
  const rows = `SELECT * FROM ${layout.name} WHERE ${conditions.join(' AND ')} LIMIT ${max + 1}`;
  tables.push(`${foundName} AS MATERIALIZED (${rows})`);
  return { tables: tables.join(', '), count: countSql(foundName) };
}

function restOf({ schema }: Selection, { rest }: Searched, parameters: Parameters, max: number): string[] {
  const level = { name: foundName, schema, steered: true };
  return [`${countSql(foundName)} <= ${max}`, ...rest.map((part) => compileFilter(part, parameters, level))];
}

/** The order of the page, or against it. */
function pageOrder(sort: Selection['sort'], position: Position): readonly OrderKey[] {
  const keys = sort.map((key, slot): OrderKey => ({ ...key, slot }));
  return position.from === 'before' ? reversed(keys) : keys;
}

function countSql(table: string): string {
  return `(SELECT count(*) FROM ${table})`;
}

/**
 * The rows that match among the first ones beyond the position, from FROM on: along an index that serves the other conditions, or one over the sort.
 * @returns undefined if there is none, or no row beyond the position
 */
function firstRows(
  selection: Selection,
  { searches, rest }: Searched,
  position: Position,
  parameters: Parameters,
): string | undefined {
  const { layout, schema, sort } = selection;
  const asked = Math.min(firstMax, firstPerRow * selection.rows);
  const others: Shape = { op: 'and', parts: rest };
  const served = serve(layout, others, sort);
  const filter = typeof served === 'object' ? others : always;
  const service = typeof served === 'object' ? served : serve(layout, always, sort);
  if (typeof service !== 'object') return undefined;
  const rows = walkSql({ ...selection, filter, rows: asked }, service, position, {
    parameters,
    columns: `*${keyColumnsSql(sort)}`,
  });
  if (rows === undefined) return undefined;
  const level = { name: 'first', schema, steered: true };
  const conditions = [...searches, ...(filter === others ? [] : rest)].map((part) =>
    compileFilter(part, parameters, level),
  );
  const read = `SELECT walked.*, sum(octet_length(search)) OVER (ROWS UNBOUNDED PRECEDING) AS octets FROM (${rows}) AS walked${keyOrderSql(pageOrder(sort, position))}`;
  // Without the order the planner would not know that they are in it.
  return `FROM (${read} LIMIT ${asked}) AS first WHERE octets <= ${firstOctetsMax} AND ${conditions.join(' AND ')}`;
}
