/**
 * A page of the contract from the rows that an engine's statement gave, and what tells the statements of pages apart. The same
 * for every engine.
 */
import type { Scalar } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { documentKey, isKeyInDocument } from './document-key.ts';
import type { ListQuery, Page, Position } from './store.ts';

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
 * @param backwards whether they were read against the sort
 */
export function pageOf(
  rows: readonly (readonly unknown[])[],
  { limit, sort }: Pick<ListQuery, 'limit' | 'sort'>,
  backwards: boolean,
  version: string,
): Page {
  const more = rows.length > limit;
  const count = more ? limit : rows.length;
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
