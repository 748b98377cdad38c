/**
 * Pages of the contract, for both engines: built from the rows of a statement and ended at a number of octets; the sort keys of their rows;
 * and the rows beyond a key, as ranges.
 *
 * A page is read in one of two ways. The first statement omits documents so long that a page of them could reach the bound, and marks their
 * places: that costs a page of 20 short rows 1 us (two-core machine). If a place is marked, the page is read again row by row until the
 * bound is reached, and no further row is read.
 */
import { valueAt } from '../http/syntax/json-members.ts';
import type { Field, Scalar } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { memberAt } from '../model/matches.ts';
import { instantKey } from '../model/timestamp.ts';
import { isNeverNull, kindOf } from './field-value.ts';
import {
  type ListQuery,
  type Page,
  type Position,
  type Row,
  type RowHead,
  rowOf,
  type TailEntry,
} from './store.ts';

/** Marks a document omitted for its length. No document is empty. */
export const omittedDocument = '';

/** Length up to which documents cannot make a page reach its bound. */
export function docBytesMax({ limit, bytesMax }: Pick<ListQuery, 'limit' | 'bytesMax'>): number {
  return bytesMax === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(bytesMax / (limit + 1));
}

export type OctetEnd = {
  /** Index of the document in a row. */
  readonly column: number;
  readonly rowsMax: number;
  readonly bytesMax: number;
  /** True to read one row beyond, so that `isCut` is exact. */
  readonly looksBeyond: boolean;
};

export class OctetTaking {
  readonly rows: (readonly unknown[])[] = [];
  /** Rows remain; without `looksBeyond`: rows may remain. */
  isCut = false;
  readonly #end: OctetEnd;
  #bytes = 0;

  constructor(end: OctetEnd) {
    this.#end = end;
  }

  get isOver(): boolean {
    return this.isCut || this.rows.length >= this.#end.rowsMax;
  }

  takeFrom(rows: Iterable<readonly unknown[]>): void {
    const { column, rowsMax, bytesMax, looksBeyond } = this.#end;
    for (const cells of rows) {
      if (this.rows.length >= rowsMax) return;
      this.isCut = this.#bytes >= bytesMax;
      if (this.isCut) return;
      this.rows.push(cells);
      this.#bytes += Buffer.byteLength(cells[column] as string);
      this.isCut = !looksBeyond && this.#bytes >= bytesMax;
      if (this.isCut) return;
    }
  }
}

/** True if more events may remain after a tail read with these bounds. */
export function isTailFull(entries: readonly TailEntry[], limit: number, bytesMax: number): boolean {
  if (entries.length >= limit) return true;
  let bytes = 0;
  for (const { doc } of entries) bytes += Buffer.byteLength(doc);
  return bytes >= bytesMax;
}

/**
 * What the SQL of a page depends on besides the query: the kind of position, and which values of its key are null.
 * @throws RangeError if the key does not have one value per sort key
 */
export function shapeOf(sort: readonly Sort[], position: Position): string {
  if (position.from === 'start' || position.from === 'offset') return position.from;
  if (position.key.length !== sort.length) {
    throw new RangeError(
      `a position of ${position.key.length} values does not fit a sort by ${sort.length} keys`,
    );
  }
  let shape: string = position.from;
  for (const value of position.key) shape += value === null ? '0' : '1';
  return shape;
}

/**
 * @param rows in the order read, one more than the limit if rows remain: the document, then the sort keys unless the document holds them,
 *   then the head if the query asks for it
 * @param how.backwards true if they were read against the sort
 * @param how.isCut true if octets ended the read, and rows remain
 */
export function pageOf(
  rows: readonly (readonly unknown[])[],
  { limit, sort, heads }: Pick<ListQuery, 'limit' | 'sort' | 'heads'>,
  how: { readonly backwards: boolean; readonly version: string; readonly isCut: boolean },
): Page {
  const more = how.isCut || rows.length > limit;
  const shown = rows.length > limit ? rows.slice(0, limit) : [...rows];
  if (how.backwards) shown.reverse();
  return new PageOfRows(shown, { sort, heads }, { more, version: how.version });
}

/**
 * Computes the keys on use: a first page needs only the last one, and a page with the whole list none. A class, because V8 makes a hidden
 * class for each object literal with getters: 470 octets that only a full collection frees, and slow reads of every member.
 */
class PageOfRows implements Page {
  readonly docs: readonly string[];
  readonly heads: Page['heads'];
  readonly more: boolean;
  readonly version: string;
  readonly #rows: readonly (readonly unknown[])[];
  readonly #sort: readonly Sort[];

  constructor(
    rows: readonly (readonly unknown[])[],
    { sort, heads }: Pick<ListQuery, 'sort' | 'heads'>,
    { more, version }: Pick<Page, 'more' | 'version'>,
  ) {
    this.docs = rows.map(([doc]) => doc as string);
    const at = headColumn(sort);
    this.heads = heads === true ? rows.map((row) => headOf(row, at)) : undefined;
    this.more = more;
    this.version = version;
    this.#rows = rows;
    this.#sort = sort;
  }

  get first(): readonly Scalar[] | null {
    return keyOf(this.#sort, this.#rows[0]);
  }

  get last(): readonly Scalar[] | null {
    return keyOf(this.#sort, this.#rows.at(-1));
  }
}

function headColumn(sort: readonly Sort[]): number {
  return isKeyInDocument(sort) ? 1 : 1 + sort.length;
}

function headOf(row: readonly unknown[], at: number): RowHead {
  return { owner: (row[at] ?? null) as string | null, rev: Number(row[at + 1]) };
}

function keyOf(sort: readonly Sort[], row: readonly unknown[] | undefined): readonly Scalar[] | null {
  if (row === undefined) return null;
  if (isKeyInDocument(sort)) return documentKey(sort, row[0] as string);
  return row.slice(1, 1 + sort.length) as readonly Scalar[];
}

/** The number of whole rows to read: `asked`, within the query's limit. @throws RangeError if `asked` is not a number of rows */
export function rowsLimit({ limit }: Pick<ListQuery, 'limit'>, asked: number | undefined): number {
  if (asked === undefined) return limit;
  if (!Number.isInteger(asked) || asked < 0)
    throw new RangeError(`the number of rows must be a whole number from 0, not ${asked}`);
  return Math.min(asked, limit);
}

/** Converts cells of `rowColumns` to rows in sort order. @param backwards true if they were read against the sort */
export function rowsInOrder(found: readonly (readonly unknown[])[], backwards: boolean): readonly Row[] {
  const rows = found.map(rowOf);
  return backwards ? rows.reverse() : rows;
}

export function unbounded(): RangeError {
  return new RangeError('rows can only be read along an index, and no index serves this query');
}

/*
 * Reads the sort key of a row from its document in JavaScript: two parses per page instead of one SQL expression per key and row. A page of
 * 20 by price took 22.7 µs with the keys selected and 15.9 µs without (two-core machine).
 */

/** True if the document holds every key; otherwise the statement selects the keys as columns. */
export function isKeyInDocument(sort: readonly Sort[]): boolean {
  return sort.every(({ field }) =>
    field.column === undefined ? kindOf(field) !== 'none' : field.column in madeMembers,
  );
}

/** The values of the sort keys in the engine's form: milliseconds for times, keys for instants, 0 and 1 for booleans. */
export function documentKey(sort: readonly Sort[], doc: string): readonly Scalar[] {
  if (doc.length > parsedCharactersMax) {
    return sort.map(({ field }) => keyValue(valueAt(doc, pathOf(field)), field));
  }
  const resource: unknown = JSON.parse(doc);
  return sort.map(({ field }) => keyValue(memberAt(resource, pathOf(field)), field));
}

/** A longer document is scanned, not parsed: parsing one of 450 KB took 20 ms and left as much garbage. */
const parsedCharactersMax = 4 * 1024;

/** Columns whose value is also a member of the representation (§2.1). */
const madeMembers: Readonly<Partial<Record<NonNullable<Field['column']>, string>>> = {
  id: 'id',
  createdAt: 'createdAt',
  updatedAt: 'updatedAt',
};

function pathOf(field: Field): readonly string[] {
  const made = field.column === undefined ? undefined : madeMembers[field.column];
  return made === undefined ? field.path : [made];
}

function keyValue(value: unknown, field: Field): Scalar {
  switch (kindOf(field)) {
    case 'text':
      return typeof value === 'string' ? value : null;
    case 'instant':
      return typeof value === 'string' ? instantKey(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : null;
    case 'time':
      return typeof value === 'string' ? Date.parse(value) : null;
    case 'none':
      return null;
  }
}

/*
 * The rows beyond a sort key, as disjoint ranges in sort order. For keys (k1, k2) after (v1, v2): first `k1 = v1 AND k2 > v2`, then `k1 >
 * v1`. Null sorts before every value, so a descending `k1 < v1` is followed by `k1 IS NULL`. Each range is one stretch of an index over
 * (k1, k2). The row value `(k1, k2) > (?, ?)` is shorter, but handles no nulls, and SQLite 3.53 scans for it if the index is over
 * expressions (8 ms against 30 µs at 2*10^5 rows).
 *
 * A range's order omits the keys that the range fixes: SQLite does not see that expressions are constant there, and would sort every row of
 * a tie. A range depends on which values of the key are null, not on the values, which are bound to slots later.
 */

/** The place of a sort key in a position's key. */
export type Slot = { readonly slot: number };

export type OrderKey = Sort & Slot;

/** A condition on one key; `equal`, `above` and `below` compare with the value of the slot. */
export type Bound = {
  readonly field: Field;
  readonly is: 'equal' | 'above' | 'below' | 'null' | 'not-null';
  readonly slot: number;
};

type Range = {
  /** Joined by AND. */
  readonly bounds: readonly Bound[];
  readonly order: readonly OrderKey[];
  /** The key that bounds or fixes the start of the range. */
  readonly starts: OrderKey | undefined;
};

/** The sort in the direction of reading. */
export function pageOrder(sort: readonly Sort[], position: Position): readonly OrderKey[] {
  const keys = sort.map((key, slot): OrderKey => ({ ...key, slot }));
  return position.from === 'before' ? reversed(keys) : keys;
}

/** @param order in the direction of reading @returns undefined if the position is not beyond a row, no range if no row is beyond it */
export function rangesBeyond(order: readonly OrderKey[], position: Position): readonly Range[] | undefined {
  if (!('key' in position)) return undefined;
  const nulls = position.key.map((value) => value === null);
  const equals = order.map(
    ({ field, slot }): Bound => ({ field, slot, is: nulls[slot] === true ? 'null' : 'equal' }),
  );
  const ranges: Range[] = [];
  for (const [at, key] of [...order.entries()].reverse()) {
    for (const is of beyond(key, nulls[key.slot] === true)) {
      const end: Bound = { field: key.field, slot: key.slot, is };
      ranges.push({
        bounds: [...equals.slice(0, at), end],
        order: order.slice(is === 'null' ? at + 1 : at),
        starts: order[0],
      });
    }
  }
  return ranges;
}

/** All ranges as one condition. @param sqlOf one of their bounds */
export function anyRangeSql(ranges: readonly Range[], sqlOf: (bound: Bound) => string): string {
  const alternatives = ranges.map(({ bounds }) => `(${bounds.map(sqlOf).join(' AND ')})`);
  return `(${alternatives.join(' OR ')})`;
}

const comparisons = { equal: '=', above: '>', below: '<' } as const;

/** @param value the SQL of the key @param mark adds the value of the slot as a parameter */
export function boundSql({ is }: Bound, value: string, mark: () => string): string {
  if (is === 'null') return `${value} IS NULL`;
  if (is === 'not-null') return `${value} IS NOT NULL`;
  return `${value} ${comparisons[is]} ${mark()}`;
}

/** The slots whose values the bounds compare with. */
export function slotsOf(bounds: readonly Bound[]): readonly Slot[] {
  return bounds.filter(({ is }) => is !== 'null' && is !== 'not-null').map(({ slot }) => ({ slot }));
}

export function reversed(order: readonly OrderKey[]): readonly OrderKey[] {
  return order.map((key) => ({ ...key, direction: key.direction === 'asc' ? 'desc' : 'asc' }));
}

function beyond({ field, direction }: OrderKey, isNull: boolean): readonly Bound['is'][] {
  if (direction === 'asc') return [isNull ? 'not-null' : 'above'];
  if (isNull) return [];
  return isNeverNull(field) ? ['below'] : ['below', 'null'];
}
