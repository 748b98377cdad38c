/** The statements that read one page. Rows come as (doc, sort keys..., head if asked for), or as whole rows of the contract. */
import type { Sort } from '../../../model/filter.ts';
import { isKeyInDocument } from '../../document-key.ts';
import { fieldKey, keyParameter, type SqlValue } from '../../field-value.ts';
import { conjuncts, type Shape, type ValueSlot } from '../../filter-shape.ts';
import { headColumns, rowColumns } from '../../kept-row.ts';
import {
  anyRangeSql,
  type Bound,
  boundSql,
  type OrderKey,
  rangesBeyond,
  reversed,
  type Slot,
  slotsOf,
} from '../../keyset.ts';
import { omittedDocument } from '../../page-of-rows.ts';
import { quoteName } from '../../quote-name.ts';
import type { Drive } from '../../related-drive.ts';
import type { Service } from '../../serve.ts';
import type { Position } from '../../store.ts';
import type { Layout } from '../table-layout.ts';
import { compileFilter, tickSql } from './filter.ts';
import { namedSql } from './named-rows.ts';
import { valueSql } from './value.ts';

/** One text serves every query and position of the same shape; `bind` adds the values. */
export type PageStatement = { readonly sql: string; readonly parameters: readonly (ValueSlot | Slot)[] };

export type Arguments = {
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
  /** The sort has the rank by these terms (ranked.ts): where their values are. */
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

export function boundsSql(bounds: readonly Bound[]): string {
  return bounds.map(fieldBoundSql).join(' AND ');
}

/** In an index over an expression SQLite finds the end of the nulls only by a comparison, here with minus infinity. */
export function fieldBoundSql(bound: Bound): string {
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
export const docBytesSlot: Slot = { slot: -2 };
/** The place of the ids of the rows that references name. */
export const namedSlot: Slot = { slot: -3 };
/** The place of the numbers of the rows that an index of words found. */
export const listSlot: Slot = { slot: -4 };
/** The slot of a position's offset. */
export const offsetSlot: Slot = { slot: 0 };

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

export function orderSql(order: readonly OrderKey[]): string {
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

export function pageColumns(sort: readonly Sort[], capped: boolean): string {
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
