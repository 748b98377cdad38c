/**
 * How long a text may be that an index holds. An entry of PostgreSQL's B-tree takes at most 2704 bytes and a longer one is refused in
 * the middle of a commit, while SQLite would take it; so both stores get the same bound, before either is asked.
 *
 * The texts of one entry share 2000 bytes. What is left of 2704 holds the id that ends an entry (255 bytes at most), up to
 * seven other values of 8 bytes, and what PostgreSQL adds to each.
 */
import type { TextBound } from '../model/collection.ts';
import type { Field } from '../model/field.ts';

/** Bytes of UTF-8 that the texts of one index entry may take together. */
export const indexedTextBytesMax = 2000;

/**
 * The bound of each text field: its even share of the index that leaves it least.
 * @param indexes the fields of every index, those behind unique fields and references too
 */
export function textBoundsOf(indexes: Iterable<readonly Field[]>): readonly TextBound[] {
  const bounds = new Map<string, TextBound>();
  for (const index of indexes) {
    const texts = index.filter(isText);
    const bytesMax = Math.floor(indexedTextBytesMax / texts.length);
    for (const { path } of texts) {
      const key = JSON.stringify(path);
      if (bytesMax < (bounds.get(key)?.bytesMax ?? Number.POSITIVE_INFINITY)) {
        bounds.set(key, { path, bytesMax });
      }
    }
  }
  return [...bounds.values()];
}

/** Columns are no texts of clients, but for the id, which has a bound of its own. */
function isText(field: Field): boolean {
  return field.column === undefined && (field.type === 'string' || field.type === 'timestamp');
}
