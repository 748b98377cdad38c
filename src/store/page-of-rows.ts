/**
 * Builds a page of the contract from the rows of a statement, and ends pages at a number of octets; used by both engines.
 *
 * A page is read in one of two ways. The first statement omits documents so long that a page of them could reach the bound, and marks their
 * places: that costs a page of 20 short rows 1 us (two-core machine). If a place is marked, the page is read again row by row until the
 * bound is reached, and no further row is read.
 */
import type { Scalar } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { documentKey, isKeyInDocument } from './document-key.ts';
import { rowOf } from './kept-row.ts';
import type { ListQuery, Page, Position, Row, RowHead, TailEntry } from './store.ts';

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
