/**
 * The page of a search by the index of words, as one bounded statement whose plan no statistics decide. Those of the server say of a rare
 * word only that it is rarer than all that they list: among 1,000,000 documents it walked the whole list, for 3.3 s, to find 20.
 *
 * Some rows beyond the position are asked first: a word of many documents fills the page with them. Of a rarer one, the index finds the
 * rows with all words, up to a bound and one more, and these are filtered and sorted. Each row says how many were found: beyond the bound
 * the page may lack rows, as it may where a frequent word meets a rare condition, and then a statement that the server plans by its
 * statistics reads it.
 */
import { idField } from '../../../model/field.ts';
import { rankedMax } from '../../../model/search/search-index.ts';
import { always, conjuncts, isRanked, type Shape, type WordsShape } from '../../filter-shape.ts';
import { anyRangeSql, pageOrder, rangesBeyond } from '../../page-of-rows.ts';
import { serve } from '../../serve.ts';
import { headColumns, type Position } from '../../store.ts';
import { isMarkedSql, liveInTable, Parameters, passedOver } from './expressions.ts';
import { compileFilter, type Level } from './filter.ts';
import {
  type Beginning,
  keyColumnsSql,
  keyOrderSql,
  type PageStatement,
  pageStatement,
  rankedStatement,
  type Selection,
} from './page-statement.ts';
import { boundBy, walkSql } from './walk.ts';

/** Found rows that are sorted for a page: some 8 ms. */
export const foundMax = 1024;

/** Rows asked before the index of words, for each that the page wants, and in all: some 0.3 ms for a page of 20. */
const firstPerRow = 6;
const firstMax = 256;
/** Search texts of these rows, in octets. */
const firstOctetsMax = 256 * 1024;
/** The part of these from which on a word is too frequent to be found by the index. */
const frequentFrom = 1 / 8;

/** The first rows; those of them with the words; what these say; the rows that the index of words finds. */
const tables = {
  walked: 'comity_walked',
  first: 'comity_first',
  said: 'comity_said',
  found: 'comity_found',
} as const;

type WordSearch = Extract<Shape, { readonly op: 'search' }> & { readonly words: WordsShape };

/** The parts of the filter: the searches that the index of words serves, and the others. */
export type Searched = { readonly searches: readonly WordSearch[]; readonly rest: readonly Shape[] };

/** @returns undefined if the filter requires no search by an index of words */
export function searchedBy(filter: Shape): Searched | undefined {
  const parts = conjuncts(filter);
  const searches = parts.filter(isByWords);
  return searches.length === 0 ? undefined : { searches, rest: parts.filter((part) => !isByWords(part)) };
}

function isByWords(part: Shape): part is WordSearch {
  return part.op === 'search' && part.words !== undefined;
}

/** The places of the queries of the index of words among the values of the filter. */
export function wordsIn({ searches }: Searched): readonly number[] {
  return searches.map(({ words }) => words.at);
}

/**
 * @param asksIndex false if all words are known to be frequent: the first rows fill the page, or the planner chooses
 * @throws RangeError for a position by offset in an order without rank
 */
export function compileFound(
  selection: Selection,
  searched: Searched,
  position: Position,
  asksIndex = true,
): PageStatement {
  if (isRanked(selection.sort)) return compileRankedFound(selection, searched, position);
  return compileOrderedFound(selection, searched, position, asksIndex);
}

/** The number of found rows up to which the page is whole. */
export function foundMostFor(sort: Selection['sort']): number {
  return isRanked(sort) ? rankedMax : foundMax;
}

function compileOrderedFound(
  selection: Selection,
  searched: Searched,
  position: Position,
  asksIndex: boolean,
): PageStatement {
  if (position.from === 'offset') throw new RangeError('found rows are not passed over');
  const { sort, rows, heads } = selection;
  const parameters = new Parameters(true);
  const keyOrder = pageOrder(sort, position);
  const order = keyOrderSql(keyOrder);
  const ranges = rangesBeyond(keyOrder, position);
  if (ranges?.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
  const first = firstRows(selection, searched, position, parameters);
  const begun = foundRows(selection, searched, parameters, { max: foundMax, first, asksIndex });
  const conditions = restOf(selection, searched, parameters, foundMax);
  if (ranges !== undefined) conditions.push(anyRangeSql(ranges, boundBy(parameters)));
  const columns = `doc${keyColumnsSql(sort)}${headColumns(heads)}`;
  const found = `SELECT ${columns} FROM ${tables.found} WHERE ${conditions.join(' AND ')}${order} LIMIT ${rows}`;
  if (first === undefined) return pageStatement(selection, found, parameters, true, begun);
  const keys = sort.map((_, slot) => `, k${slot}`).join('');
  const filling = `SELECT doc${keys}${headColumns(heads)} FROM ${tables.first} WHERE fits AND ${saidSql('known')}${order} LIMIT ${rows}`;
  // Each arm is in order, and one of them has no rows.
  return pageStatement(selection, `(${filling}) UNION ALL (${found})`, parameters, true, begun);
}

/**
 * In an order by rank every found row counts, the newest first. The first rows tell only whether the index is asked, or the newest rows: of a
 * frequent word, if the other conditions leave many of them.
 */
function compileRankedFound(selection: Selection, searched: Searched, position: Position): PageStatement {
  const { layout, schema } = selection;
  const parameters = new Parameters(true);
  const first = firstRows({ ...selection, sort: newestFirst }, searched, { from: 'start' }, parameters);
  const begun = foundRows(selection, searched, parameters, { max: rankedMax, first, isRanked: true });
  const conditions = restOf(selection, searched, parameters, rankedMax);
  const found = `SELECT * FROM ${tables.found} WHERE ${conditions.join(' AND ')}`;
  if (first === undefined)
    return rankedStatement(selection, position, { candidates: found, parameters, begun });
  const level = { name: layout.name, schema, steered: true };
  const matching = [
    ...searched.searches.map((part) => passedOver(termsSql(part, parameters, level))),
    ...searched.rest.map((part) => passedOver(compileFilter(part, parameters, level))),
  ].join(' AND ');
  const walked = `SELECT * FROM ${layout.name} WHERE ${liveInTable(schema)} AND ${matching} AND ${saidSql('known')} ORDER BY id DESC LIMIT ${rankedMax}`;
  const candidates = `(${found}) UNION ALL (${walked})`;
  return rankedStatement(selection, position, { candidates, parameters, begun });
}

const newestFirst: Selection['sort'] = [{ field: idField, direction: 'desc' }];

type Found = {
  readonly max: number;
  readonly first: FirstRows | undefined;
  readonly isRanked?: boolean;
  readonly asksIndex?: boolean;
};

/** The tables, with the number of found rows, or more than `max` if the index was not asked and the page is not known either. */
function foundRows(
  { layout, schema, rows: wanted }: Selection,
  { searches }: Searched,
  parameters: Parameters,
  { max, first, isRanked: ranked = false, asksIndex = true }: Found,
): Beginning {
  // The planner takes the values for unknown, and each row that another way than the index touches for dear (expressions.ts).
  const level = { name: layout.name, schema, steered: true };
  const conditions = [liveInTable(schema), ...searches.map((part) => compileFilter(part, parameters, level))];
  if (first !== undefined) conditions.push(`NOT ${saidSql('known')} AND NOT ${saidSql('frequent')}`);
  const found = `${tables.found} AS MATERIALIZED (SELECT * FROM ${layout.name} WHERE ${conditions.join(' AND ')} LIMIT ${max + 1})`;
  if (first === undefined) return { tables: found, count: countSql(tables.found) };
  const { asked } = first;
  const isFrequent = asksIndex ? `${countSql(tables.first)} >= ${Math.ceil(asked * frequentFrom)}` : 'TRUE';
  const fitting = countSql(`${tables.first} WHERE fits`);
  // Fewer rows than were asked for are all there are.
  const isComplete = `(SELECT count(*) < ${asked} AND coalesce(max(octets), 0) <= ${firstOctetsMax} FROM ${tables.walked})`;
  const isKnown = ranked
    ? `${isFrequent} AND 2 * ${fitting} >= ${countSql(tables.first)}`
    : `${fitting} >= ${wanted} OR ${isComplete}`;
  const said = `${tables.said} AS MATERIALIZED (SELECT (${isKnown}) AS known, (${isFrequent}) AS frequent)`;
  return {
    tables: [first.sql, said, found].join(', '),
    count: `(CASE WHEN ${saidSql('frequent')} AND NOT ${saidSql('known')} THEN ${max + 1} ELSE ${countSql(tables.found)} END)`,
  };
}

function restOf({ schema }: Selection, { rest }: Searched, parameters: Parameters, max: number): string[] {
  const level = { name: tables.found, schema, steered: true };
  return [
    `${countSql(tables.found)} <= ${max}`,
    ...rest.map((part) => compileFilter(part, parameters, level)),
  ];
}

function countSql(rows: string): string {
  return `(SELECT count(*) FROM ${rows})`;
}

function saidSql(what: 'known' | 'frequent'): string {
  return `(SELECT ${what} FROM ${tables.said})`;
}

/** The terms, which decide, without the query of the index: it reads each text as a `tsvector`, for 8 us. */
function termsSql({ terms, words }: WordSearch, parameters: Parameters, level: Level): string {
  return `(${isMarkedSql(words.mark)} AND ${compileFilter({ op: 'search', terms }, parameters, level)})`;
}

type FirstRows = { readonly sql: string; readonly asked: number };

/**
 * The tables of the first rows beyond the position, and of those of them with the words, of which `fits` says whether they pass the other
 * conditions: along an index that serves these, or one over the sort.
 * @returns undefined if there is none, or no row beyond the position
 */
function firstRows(
  selection: Selection,
  { searches, rest }: Searched,
  position: Position,
  parameters: Parameters,
): FirstRows | undefined {
  const { layout, schema, sort } = selection;
  const asked = Math.min(firstMax, firstPerRow * selection.rows);
  const others: Shape = { op: 'and', parts: rest };
  const served = serve(layout, others, sort);
  const filter = typeof served === 'object' ? others : always;
  const service = typeof served === 'object' ? served : serve(layout, always, sort);
  if (typeof service !== 'object') return undefined;
  const columns = `*${keyColumnsSql(sort)}`;
  const rows = walkSql({ ...selection, filter, rows: asked }, service, position, { parameters, columns });
  if (rows === undefined) return undefined;
  const level = { name: tables.walked, schema, steered: true };
  const matching = searches.map((part) => termsSql(part, parameters, level)).join(' AND ');
  const fits = filter === others ? [] : rest.map((part) => compileFilter(part, parameters, level));
  const walked = `SELECT w.*, sum(octet_length(search)) OVER (ROWS UNBOUNDED PRECEDING) AS octets FROM (${rows}) AS w LIMIT ${asked}`;
  const first = `SELECT *, (${fits.join(' AND ') || 'TRUE'}) AS fits FROM ${tables.walked} WHERE octets <= ${firstOctetsMax} AND ${matching}`;
  return {
    sql: `${tables.walked} AS MATERIALIZED (${walked}), ${tables.first} AS MATERIALIZED (${first})`,
    asked,
  };
}
