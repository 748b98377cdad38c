/** The statements that read one page. Rows come as (doc, sort keys..., head if asked for), or as whole rows of the contract. */
import type { Sort } from '../../../model/filter.ts';
import { fieldKey, keyParameter, type SqlValue } from '../../field-value.ts';
import { conjuncts, levelWithin, type Shape, type ValueSlot } from '../../filter-shape.ts';
import {
  anyRangeSql,
  type Bound,
  boundSql,
  isKeyInDocument,
  type OrderKey,
  omittedDocument,
  pageOrder,
  rangesBeyond,
  reversed,
  type Slot,
  slotsOf,
} from '../../page-of-rows.ts';
import type { Drive, Service, Source } from '../../serve.ts';
import { quoteName } from '../../sql-text.ts';
import { headColumns, type Position, rowColumns } from '../../store.ts';
import type { Layout } from '../sqlite-schema.ts';
import { compileFilter, tickSql } from './filter.ts';
import { valueSql } from './value.ts';

/** One text serves every query and position of the same shape; `bind` adds the values. */
export type PageStatement = { readonly sql: string; readonly parameters: readonly (ValueSlot | Slot)[] };

type Arguments = {
  readonly values: readonly SqlValue[];
  readonly position: Position;
  readonly limit: number;
  /** The ids of the rows that references name, as JSON. */
  readonly named?: string;
  /** Longest document that a capped statement returns, in octets. */
  readonly docBytesMax?: number;
};

export type Selection = {
  readonly layout: Layout;
  readonly filter: Shape;
  readonly sort: readonly Sort[];
  readonly service: Service | undefined;
  /** Select the heads of the rows as well. */
  readonly heads: boolean;
  /** Select whole rows instead of documents with their sort keys. */
  readonly whole: boolean;
  /** The statement runs on a reader thread, where `comity_tick` enforces its deadline. */
  readonly timed: boolean;
  /** Begin with rows that an index of words finds. */
  readonly found?: Found | undefined;
  /** The sort has the rank by these terms (page-statement.ts): where their values are. */
  readonly ranked?: readonly number[] | undefined;
  /** Begin with the rows that references name, and check no such condition again. */
  readonly drive?: Drive<Layout> | undefined;
  /** Omit documents longer than `docBytesMax` (page-of-rows.ts). */
  readonly capped: boolean;
};

export type Found = {
  readonly name: string;
  readonly at: number;
  /**
   * `query`: the index is asked by the value at this place. The others give the statement the numbers of rows as JSON: `rows` are those that
   * it would find, and `candidates` those among which they are, so that their words are checked.
   */
  readonly by: 'query' | 'rows' | 'candidates';
};

/**
 * Compiles the statements that read a page at positions of this shape. They run in order, in one snapshot, until the page is full: each
 * walks one range of the index, and most pages are full after the first or second. A query without an index has one statement.
 */
export function compilePage(selection: Selection, position: Position): readonly PageStatement[] {
  const order = selection.service?.order ?? selection.sort.map((key, slot) => ({ ...key, slot }));
  if (position.from === 'start') return [compileRange(selection, order, undefined)];
  if (position.from === 'offset') {
    const { sql, parameters } = compileRange(selection, order, undefined);
    return [{ sql: `${sql} OFFSET ?`, parameters: [...parameters, offsetSlot] }];
  }
  const onwards = position.from === 'after' ? order : reversed(order);
  const ranges = rangesBeyond(onwards, position) ?? [];
  if (selection.service !== undefined && !selection.service.oneRow) {
    return ranges.map(({ bounds, order: rest, starts }) =>
      compileRange(selection, rest, { condition: boundsSql(bounds), slots: slotsOf(bounds), starts }),
    );
  }
  if (ranges.length === 0) return [];
  const condition = anyRangeSql(ranges, fieldBoundSql);
  const slots = ranges.flatMap(({ bounds }) => slotsOf(bounds));
  return [compileRange(selection, onwards, { condition, slots, starts: undefined })];
}

export function bind(
  { parameters }: PageStatement,
  sort: readonly Sort[],
  { values, position, limit, named, docBytesMax }: Arguments,
): SqlValue[] {
  return parameters.map((parameter) => {
    if ('value' in parameter) return values[parameter.value] ?? null;
    if (parameter === limitSlot) return limit;
    if (parameter === docBytesSlot) return docBytesMax ?? null;
    if (parameter === namedSlot) return named ?? null;
    // The reader thread adds it.
    if (parameter === listSlot) return null;
    if (position.from === 'offset') return position.offset;
    const field = sort[parameter.slot]?.field;
    if (position.from === 'start' || field === undefined) return null;
    return keyParameter(field, position.key[parameter.slot] ?? null);
  });
}

function boundsSql(bounds: readonly Bound[]): string {
  return bounds.map(fieldBoundSql).join(' AND ');
}

/** In an index over an expression SQLite finds the end of the nulls only by a comparison, here with minus infinity. */
function fieldBoundSql(bound: Bound): string {
  const value = valueSql(bound.field);
  if (bound.is === 'not-null' && bound.field.column === undefined) return `${value} > -9e999`;
  return boundSql(bound, value, () => '?');
}

type Stretch = {
  readonly condition: string;
  readonly slots: readonly Slot[];
  readonly starts: OrderKey | undefined;
};

export const limitSlot: Slot = { slot: -1 };
const docBytesSlot: Slot = { slot: -2 };
/** The place of the ids of the rows that references name. */
const namedSlot: Slot = { slot: -3 };
/** The place of the numbers of the rows that an index of words found. */
export const listSlot: Slot = { slot: -4 };
/** The slot of a position's offset. */
const offsetSlot: Slot = { slot: 0 };

/**
 * The limit of a statement whose index is named, so that its plan does not depend on the number. SQLite compiles a statement with `LIMIT ?`
 * again for every number that it is bound to, the same one included: 8 of 15 us for a page of 20. It does not see a parameter behind a sign.
 */
export const plannedLimit = 'LIMIT +?';

function compileRange(
  { layout, filter, service, whole, heads, timed, capped, sort, found, drive }: Selection,
  order: readonly OrderKey[],
  range: Stretch | undefined,
): PageStatement {
  // The columns, with their parameter, come before the conditions.
  const parameters: (ValueSlot | Slot)[] = capped ? [docBytesSlot] : [];
  if (found !== undefined) parameters.push(foundSlot(found));
  const conditions = timed ? [tickSql, 'deleted_at IS NULL'] : ['deleted_at IS NULL'];
  const start = service === undefined || range === undefined ? undefined : range.starts;
  if (drive !== undefined) {
    const named = namedSql(drive.source, parameters, layout.name);
    conditions.push(`${valueSql(drive.field)} IN (${named})`);
  }
  const isWhole = service === undefined && found === undefined;
  const parts = drive?.rest ?? (isWhole ? [filter] : conjuncts(filter));
  for (const part of parts) {
    if (part.op === 'always' || isFound(part, found)) continue;
    const condition = compileFilter(part, parameters, layout.name);
    conditions.push(start !== undefined && bounds(part, start) ? `+(${condition})` : condition);
  }
  if (range !== undefined) {
    conditions.push(range.condition);
    parameters.push(...range.slots);
  }
  parameters.push(limitSlot);
  const columns = whole ? rowColumns : `${pageColumns(sort, capped)}${headColumns(heads)}`;
  const ordered = order.length === 0 ? '' : ` ${orderSql(order)}`;
  const index = drive?.index ?? service?.index;
  const indexed = index === undefined ? '' : ` INDEXED BY ${quoteName(index)}`;
  const limited = index === undefined ? 'LIMIT ?' : plannedLimit;
  return {
    sql: `SELECT ${columns} FROM ${source(layout, found)}${indexed} WHERE ${conditions.join(' AND ')}${ordered} ${limited}`,
    parameters,
  };
}

function orderSql(order: readonly OrderKey[]): string {
  const terms = order.map(
    ({ field, direction }) => `${valueSql(field)} ${direction === 'asc' ? 'ASC' : 'DESC'}`,
  );
  return `ORDER BY ${terms.join(', ')}`;
}

/** CROSS JOIN keeps the order: SQLite would otherwise walk the table in the order of the sort, and look up each row among the found. */
export function source(layout: Layout, found: Selection['found']): string {
  if (found === undefined) return layout.name;
  const { name, by } = found;
  const numbers =
    by === 'query'
      ? `SELECT rowid AS n FROM ${name} WHERE ${name} MATCH ?`
      : 'SELECT value AS n FROM json_each(?)';
  return `(${numbers}) AS found CROSS JOIN ${layout.name} ON ${layout.name}.rowid = found.n`;
}

/** The parameter of `source`. */
export function foundSlot({ at, by }: Found): ValueSlot | Slot {
  return by === 'query' ? { value: at } : listSlot;
}

export function isFound(part: Shape, found: Selection['found']): boolean {
  if (found === undefined || found.by === 'candidates') return false;
  return part.op === 'search' && part.words?.at === found.at;
}

function pageColumns(sort: readonly Sort[], capped: boolean): string {
  const doc = capped ? `CASE WHEN octet_length(doc) > ? THEN '${omittedDocument}' ELSE doc END` : 'doc';
  // Keys in the document are read from it; an omitted document is read again before its key is needed.
  if (isKeyInDocument(sort)) return doc;
  return `${doc}${sort.map((key) => `, ${valueSql(key.field)}`).join('')}`;
}

/**
 * True if the filter bounds the key on the side where the range starts. SQLite starts at either of two such bounds, not at the narrower, so
 * a unary plus hides the filter's bound, which the position has already passed.
 */
function bounds(part: Shape, start: OrderKey): boolean {
  if (part.op !== 'gt' && part.op !== 'gte' && part.op !== 'lt' && part.op !== 'lte') return false;
  const side = part.op === 'gt' || part.op === 'gte' ? 'asc' : 'desc';
  return side === start.direction && fieldKey(part.field) === fieldKey(start.field);
}

/* The parts of statements that begin with the rows that references name (store/serve.ts). */

/** The ids of a parameter. */
export const namedBy = '(SELECT value FROM json_each(?))';

/** The rows of the list that refer to the named ones, from FROM on. @param named a list in parentheses */
export function referringSql(layout: Layout, { index, field }: Drive<Layout>, named: string): string {
  return `FROM ${layout.name} INDEXED BY ${quoteName(index)} WHERE deleted_at IS NULL AND ${valueSql(field)} IN ${named}`;
}

/** Selects the ids of the named rows. @param outer the quoted name of the table whose rows refer to them */
export function namedSql(
  { layout, index, field, by, rest }: Source<Layout>,
  parameters: { push(slot: ValueSlot): unknown },
  outer: string,
): string {
  const level = levelWithin(outer);
  const value = valueSql(field, `${level}.`);
  // An index has the id: a row is read for further conditions alone.
  const tick = rest.length === 0 ? '((rowid & 15) OR comity_tick())' : tickSql;
  const conditions = [tick, `${level}.deleted_at IS NULL`];
  if ('source' in by) conditions.push(`${value} IN (${namedSql(by.source, parameters, level)})`);
  else {
    parameters.push(by);
    conditions.push(`${value} = ?`);
  }
  for (const part of rest) conditions.push(compileFilter(part, parameters, level));
  return `SELECT ${level}.id FROM ${layout.name} AS ${level} INDEXED BY ${quoteName(index)} WHERE ${conditions.join(' AND ')}`;
}

/** True in SQL if the reference of a row names one of these rows; their index alone shows it, because it ends with the id. */
function namesSql(
  { field: reference, source: { layout, index, field } }: Drive<Layout>,
  by: ValueSlot,
  parameters: { push(slot: ValueSlot): unknown },
  outer: string,
): string {
  const level = levelWithin(outer);
  parameters.push(by);
  return `EXISTS (SELECT 1 FROM ${layout.name} AS ${level} INDEXED BY ${quoteName(index)} WHERE ${level}.deleted_at IS NULL AND ${valueSql(field, `${level}.`)} = ? AND ${level}.id = ${valueSql(reference, `${outer}.`)})`;
}

/* The statements of pages under a condition on rows that references name, where few rows match and where many do (compiled-shape.ts). */

/** Only documents of the page are read. @returns undefined if no row is beyond the position */
export function compileFewPage(
  { layout, sort, heads, capped }: Pick<Selection, 'layout' | 'sort' | 'heads' | 'capped'>,
  drive: Drive<Layout>,
  position: Position,
): PageStatement | undefined {
  const { ranges, ordered } = readingOf(sort, position);
  if (ranges?.length === 0) return undefined;
  const parameters: (ValueSlot | Slot)[] = capped ? [docBytesSlot, namedSlot] : [namedSlot];
  const conditions = drive.rest.map((part) => compileFilter(part, parameters, layout.name));
  if (ranges !== undefined) {
    conditions.push(anyRangeSql(ranges, fieldBoundSql));
    parameters.push(...ranges.flatMap(({ bounds }) => slotsOf(bounds)));
  }
  parameters.push(limitSlot);
  if (position.from === 'offset') parameters.push(offsetSlot);
  const limited = position.from === 'offset' ? `${plannedLimit} OFFSET ?` : plannedLimit;
  const rows = [referringSql(layout, drive, namedBy), ...conditions].join(' AND ');
  return {
    sql: `SELECT ${pageColumns(sort, capped)}${headColumns(heads)} FROM (SELECT rowid AS n ${rows} ${ordered} ${limited}) AS few CROSS JOIN ${layout.name} ON ${layout.name}.rowid = few.n`,
    parameters,
  };
}

/** Rows that are asked whether they match before a read looks how many match: some 2 ms. */
const firstMax = 1024;

/**
 * The rows that match among the first ones beyond the position, along an index over the sort: a full page if many match. They come in the
 * order of the index, because the outer loop of a CROSS JOIN reads them in that order.
 * @returns undefined if the rows beyond the position are several stretches of the index
 */
export function compileFirstRows(
  { layout, sort, heads, filter }: Pick<Selection, 'layout' | 'sort' | 'heads' | 'filter'>,
  index: string,
  position: Position,
): PageStatement | undefined {
  const first = firstRowsOf({ layout, sort, index, rowsMax: firstMax }, position);
  if (first === undefined) return undefined;
  const parameters: (ValueSlot | Slot)[] = [...first.slots];
  const condition = compileFilter(filter, parameters, layout.name);
  parameters.push(limitSlot);
  return {
    sql: `SELECT ${pageColumns(sort, false)}${headColumns(heads)} FROM ${first.sql} WHERE ${tickSql} AND ${condition} ${plannedLimit}`,
    parameters,
  };
}

/** Rows that the calling thread asks: they fill a page of 20 where a fifth of all rows match. At most 0.3 ms. */
export const firstOnCallerMax = 128;

/** The same for the calling thread: an index shows which rows are named, and documents that are too long are omitted and not looked into. */
export function compileFirstOnCaller(
  { layout, sort, heads }: Pick<Selection, 'layout' | 'sort' | 'heads'>,
  { drive, by, index }: { readonly drive: Drive<Layout>; readonly by: ValueSlot; readonly index: string },
  position: Position,
): PageStatement | undefined {
  const first = firstRowsOf({ layout, sort, index, rowsMax: firstOnCallerMax }, position);
  if (first === undefined) return undefined;
  const parameters: (ValueSlot | Slot)[] = [docBytesSlot, ...first.slots, docBytesSlot];
  const conditions = [
    namesSql(drive, by, parameters, layout.name),
    ...drive.rest.map((part) => compileFilter(part, parameters, layout.name)),
  ];
  parameters.push(limitSlot);
  return {
    sql: `SELECT ${pageColumns(sort, true)}${headColumns(heads)} FROM ${first.sql} WHERE (octet_length(doc) > ? OR (${conditions.join(' AND ')})) ${plannedLimit}`,
    parameters,
  };
}

type FirstRows = Pick<Selection, 'layout' | 'sort'> & { readonly index: string; readonly rowsMax: number };

/** The first rows beyond the position, as what a statement selects from. */
function firstRowsOf(
  { layout, sort, index, rowsMax }: FirstRows,
  position: Position,
): { readonly sql: string; readonly slots: readonly Slot[] } | undefined {
  const { ranges, ordered } = readingOf(sort, position);
  if (position.from === 'offset' || (ranges !== undefined && ranges.length !== 1)) return undefined;
  const bounds = ranges?.[0]?.bounds ?? [];
  const beyond = bounds.length === 0 ? '' : ` AND ${boundsSql(bounds)}`;
  const first = `SELECT rowid AS n FROM ${layout.name} INDEXED BY ${quoteName(index)} WHERE deleted_at IS NULL${beyond} ${ordered} LIMIT ${rowsMax}`;
  return {
    sql: `(${first}) AS first CROSS JOIN ${layout.name} ON ${layout.name}.rowid = first.n`,
    slots: slotsOf(bounds),
  };
}

/** @returns no ranges where the position is not beyond a row */
function readingOf(sort: Selection['sort'], position: Position) {
  const order = pageOrder(sort, position);
  return { ranges: rangesBeyond(order, position), ordered: orderSql(order) };
}
