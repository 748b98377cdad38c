/** The statements that read one page. Rows come as (doc, sort keys...), or as the contract's whole ones. */
import type { Sort } from '../../../model/filter.ts';
import { isKeyInDocument } from '../../document-key.ts';
import { fieldKey, keyParameter, type SqlValue } from '../../field-value.ts';
import { conjuncts, type Shape, type ValueSlot } from '../../filter-shape.ts';
import { type Bound, type OrderKey, rangesBeyond, reversed, type Slot, slotsOf } from '../../keyset.ts';
import { leftOut } from '../../page-of-rows.ts';
import { quoteName } from '../../quote-name.ts';
import { rowColumns } from '../../row-cells.ts';
import type { Service } from '../../serve.ts';
import type { Position } from '../../store.ts';
import type { Layout } from '../layout.ts';
import { compileFilter } from './filter.ts';
import { valueSql } from './value.ts';

/** One text serves every query and every position of the same shape; `bind` puts in the values of one. */
export type PageStatement = { readonly sql: string; readonly parameters: readonly (ValueSlot | Slot)[] };

/** What a statement is run with. */
export type Arguments = {
  /** Those of the filter. */
  readonly values: readonly SqlValue[];
  readonly position: Position;
  /** Rows that are wanted. */
  readonly limit: number;
  /** Octets of the longest document that a capped statement does not leave out. */
  readonly docBytesMax?: number;
};

export type Selection = {
  readonly layout: Layout;
  readonly filter: Shape;
  readonly sort: readonly Sort[];
  readonly service: Service | undefined;
  /** Whole rows in place of documents with their sort keys. */
  readonly whole: boolean;
  /** Whether the statement runs on a reader thread, where `comity_tick` ends it when its time is over. */
  readonly timed: boolean;
  /** Whether documents beyond the length that `bind` is given are left out (page-of-rows.ts). */
  readonly capped: boolean;
};

/**
 * True for every row; for one row in 16, and for each long one, it calls back to see whether the time of the statement is over. A call
 * takes 0.3 us; what a filter of 256 comparisons does between two calls, some milliseconds. It stands first among the conditions: SQLite
 * evaluates them in order, and behind one that no row passes it would never be called.
 */
export const tickSql = '(((rowid & 15) AND octet_length(doc)<=4096) OR comity_tick())';

/**
 * The statements that read a page at every position of the same shape as this one. They are run in turn, in one snapshot, until the
 * page is full: each walks one range of the index, and most pages are full after the first or second. A
 * query that no index serves has one statement.
 */
export function compilePage(selection: Selection, position: Position): readonly PageStatement[] {
  const order = selection.service?.order ?? selection.sort.map((key, slot) => ({ ...key, slot }));
  if (position.from === 'start') return [compileRange(selection, order, undefined)];
  if (position.from === 'offset') {
    const { sql, parameters } = compileRange(selection, order, undefined);
    return [{ sql: `${sql} OFFSET ?`, parameters: [...parameters, { slot: 0 }] }];
  }
  const onwards = position.from === 'after' ? order : reversed(order);
  const ranges = rangesBeyond(
    onwards,
    position.key.map((value) => value === null),
  );
  if (selection.service !== undefined && !selection.service.oneRow) {
    return ranges.map(({ bounds, order: rest, starts }) =>
      compileRange(selection, rest, { condition: conditionOf(bounds), slots: slotsOf(bounds), starts }),
    );
  }
  if (ranges.length === 0) return [];
  const condition = ranges.map(({ bounds }) => `(${conditionOf(bounds)})`).join(' OR ');
  const slots = ranges.flatMap(({ bounds }) => slotsOf(bounds));
  return [compileRange(selection, onwards, { condition: `(${condition})`, slots, starts: undefined })];
}

/** The parameters to run the statement with. */
export function bind(
  { parameters }: PageStatement,
  sort: readonly Sort[],
  { values, position, limit, docBytesMax }: Arguments,
): SqlValue[] {
  return parameters.map((parameter) => {
    if ('value' in parameter) return values[parameter.value] ?? null;
    if (parameter === limitSlot) return limit;
    if (parameter === docBytesSlot) return docBytesMax ?? null;
    if (position.from === 'offset') return position.offset;
    const field = sort[parameter.slot]?.field;
    if (position.from === 'start' || field === undefined) return null;
    return keyParameter(field, position.key[parameter.slot] ?? null);
  });
}

function conditionOf(bounds: readonly Bound[]): string {
  return bounds.map(boundSql).join(' AND ');
}

/**
 * SQLite finds the end of the nulls by `IS NOT NULL` in an index over a column but not over an expression. There a
 * comparison with minus infinity says the same: numbers are above it, and texts above all numbers.
 */
function boundSql({ field, is }: Bound): string {
  const sql = valueSql(field);
  switch (is) {
    case 'equal':
      return `${sql} = ?`;
    case 'above':
      return `${sql} > ?`;
    case 'below':
      return `${sql} < ?`;
    case 'null':
      return `${sql} IS NULL`;
    case 'not-null':
      return field.column === undefined ? `${sql} > -9e999` : `${sql} IS NOT NULL`;
  }
}

/** A range in SQL. */
type Stretch = {
  readonly condition: string;
  readonly slots: readonly Slot[];
  readonly starts: OrderKey | undefined;
};

/** Stands for the rows that are still wanted. */
const limitSlot: Slot = { slot: -1 };
/** Stands for the octets of the longest document that is not left out. */
const docBytesSlot: Slot = { slot: -2 };

function compileRange(
  { layout, filter, service, whole, timed, capped, sort }: Selection,
  order: readonly OrderKey[],
  range: Stretch | undefined,
): PageStatement {
  // The columns come first, and with them their parameter.
  const parameters: (ValueSlot | Slot)[] = capped ? [docBytesSlot] : [];
  const conditions = timed ? [tickSql, 'deleted_at IS NULL'] : ['deleted_at IS NULL'];
  const start = service === undefined || range === undefined ? undefined : range.starts;
  for (const part of service === undefined ? [filter] : conjuncts(filter)) {
    if (part.op === 'always') continue;
    const condition = compileFilter(part, parameters);
    conditions.push(start !== undefined && bounds(part, start) ? `+(${condition})` : condition);
  }
  if (range !== undefined) {
    conditions.push(range.condition);
    parameters.push(...range.slots);
  }
  parameters.push(limitSlot);
  const columns = whole ? rowColumns : pageColumns(sort, capped);
  const terms = order.map((key) => `${valueSql(key.field)} ${key.direction === 'asc' ? 'ASC' : 'DESC'}`);
  const ordered = terms.length === 0 ? '' : ` ORDER BY ${terms.join(', ')}`;
  const indexed = service === undefined ? '' : ` INDEXED BY ${quoteName(service.index)}`;
  return {
    sql: `SELECT ${columns} FROM ${layout.name}${indexed} WHERE ${conditions.join(' AND ')}${ordered} LIMIT ?`,
    parameters,
  };
}

function pageColumns(sort: readonly Sort[], capped: boolean): string {
  const doc = capped ? `CASE WHEN octet_length(doc) > ? THEN '${leftOut}' ELSE doc END` : 'doc';
  // A key is read from the document where that has it: one that is left out is read again before anybody asks.
  if (isKeyInDocument(sort)) return doc;
  return `${doc}${sort.map((key) => `, ${valueSql(key.field)}`).join('')}`;
}

/**
 * Whether the filter bounds the key on the side where the range starts. SQLite walks from one of two such bounds, not from
 * the narrower: the filter's, which the position is already beyond, is taken out of its sight by a unary plus.
 */
function bounds(part: Shape, start: OrderKey): boolean {
  if (part.op !== 'gt' && part.op !== 'gte' && part.op !== 'lt' && part.op !== 'lte') return false;
  const side = part.op === 'gt' || part.op === 'gte' ? 'asc' : 'desc';
  return side === start.direction && fieldKey(part.field) === fieldKey(start.field);
}
