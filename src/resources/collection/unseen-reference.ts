/**
 * Whether a change names a resource that its maker may not see (§5.1). It is refused as if nothing stood there: the answer would tell that it
 * does, and the reference would keep its owner from deleting it. A reference that stood before is not judged again.
 */
import { permission, permits } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import type { Principal } from '../../model/principal.ts';
import type { NextRow, Row, Store } from '../../store/store.ts';
import { subjectOf } from './standing.ts';

/** @returns the field that holds such a reference */
export async function unseenReference(
  store: Store,
  collections: ReadonlyMap<string, Collection>,
  collection: Collection,
  principal: Principal,
  { before, next }: { readonly before: Row | undefined; readonly next: NextRow | null },
): Promise<string | undefined> {
  for (const { field, id } of next?.references ?? []) {
    const reference = collection.references.find((each) => each.field === field);
    const target = collections.get(reference?.collection ?? '');
    if (target === undefined || permission(target.access.read, 'read', principal) === 'granted') continue;
    if (before !== undefined && subjectOf(before).member(field) === id) continue;
    const row = await store.read(target.name, id);
    if (row === undefined || permits(target.access.read, 'read', principal, subjectOf(row))) continue;
    return field;
  }
  return undefined;
}
