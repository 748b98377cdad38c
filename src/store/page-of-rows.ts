/**
 * A page of the contract from the rows that an engine's statement gave, what tells the statements of pages apart, and how
 * octets end a page. The same for every engine.
 *
 * A page is read in one of two ways. The first statement leaves out documents so long that a page of them could reach the
 * bound, and marks their places: that costs a page of 20 short rows 1 us (two-core machine). Where a place is marked, the
 * page is read again, row by row until the bound is reached, and nothing beyond is read.
 */
import type { Scalar } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { documentKey, isKeyInDocument } from './document-key.ts';
import type { ListQuery, Page, Position, TailEntry } from './store.ts';

/** Stands in the place of a document that was left out for its length. No document is empty. */
export const leftOut = '';

/** Longest document with which no page of this query can reach its bound. */
export function docBytesMax({ limit, bytesMax }: Pick<ListQuery, 'limit' | 'bytesMax'>): number {
  return bytesMax === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(bytesMax / (limit + 1));
}

/** What ends the reading of rows: their number, or the octets of their documents. */
export type OctetEnd = {
  /** Of the document in a row. */
  readonly column: number;
  readonly rowsMax: number;
  /** Octets of documents after which no further row is taken. */
  readonly bytesMax: number;
  /** Whether to read one row beyond, so that `isCut` tells exactly. */
  readonly looksBeyond: boolean;
};

/** Takes rows until their documents reach `bytesMax`. */
export class OctetTaking {
  readonly rows: (readonly unknown[])[] = [];
  /** Rows remain that were not taken; where the reading did not look beyond: may remain. */
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

/** Whether events may remain beyond a tail that was read with these bounds. */
export function isTailFull(entries: readonly TailEntry[], limit: number, bytesMax: number): boolean {
  if (entries.length >= limit) return true;
  let bytes = 0;
  for (const { doc } of entries) bytes += Buffer.byteLength(doc);
  return bytes >= bytesMax;
}

/**
 * What the text of a page's statement depends on besides the query: the kind of position, and which values of its key are null.
 * @throws RangeError when the key has not one value per sort key
 */
export function shapeOf(sort: readonly Sort[], position: Position): string {
  if (position.from === 'start' || position.from === 'offset') return position.from;
  if (position.key.length !== sort.length) {
    throw new RangeError(
      `a position of ${position.key.length} values cannot stand in a sort by ${sort.length} keys`,
    );
  }
  let shape: string = position.from;
  for (const value of position.key) shape += value === null ? '0' : '1';
  return shape;
}

/**
 * @param rows in the order read, one more than the limit where rows remain: the document, then the sort keys unless the document holds them
 * @param how.backwards whether they were read against the sort
 * @param how.isCut whether octets ended the reading, and rows remain
 */
export function pageOf(
  rows: readonly (readonly unknown[])[],
  { limit, sort }: Pick<ListQuery, 'limit' | 'sort'>,
  how: { readonly backwards: boolean; readonly version: string; readonly isCut: boolean },
): Page {
  const { backwards, version } = how;
  const more = how.isCut || rows.length > limit;
  const count = Math.min(rows.length, limit);
  const docs: string[] = new Array(count);
  for (let index = 0; index < count; index += 1) {
    docs[backwards ? count - 1 - index : index] = rows[index]?.[0] as string;
  }
  const inDocument = isKeyInDocument(sort);
  const keyOf = (row: readonly unknown[] | undefined): readonly Scalar[] | null => {
    if (row === undefined) return null;
    if (inDocument) return documentKey(sort, row[0] as string);
    return row.slice(1, 1 + sort.length) as readonly Scalar[];
  };
  const nearest = count === 0 ? undefined : rows[0];
  const farthest = count === 0 ? undefined : rows[count - 1];
  return {
    docs,
    // Read when asked for: a first page needs the last key alone, and a page that is the whole list none.
    get first() {
      return keyOf(backwards ? farthest : nearest);
    },
    get last() {
      return keyOf(backwards ? nearest : farthest);
    },
    more,
    version,
  };
}
