/** The references that a document holds; the store checks in the same transaction that they exist (§2.2, §4.7). */
import type { Collection } from '../../model/collection.ts';

export type HeldReference = { readonly field: string; readonly id: string };

/** Lists the non-null values of the reference fields, one for each item of an array. */
export function referencesOf(
  collection: Pick<Collection, 'references'>,
  fields: Readonly<Record<string, unknown>>,
): readonly HeldReference[] {
  if (collection.references.length === 0) return none;
  const held: HeldReference[] = [];
  for (const { field } of collection.references) {
    const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (typeof value === 'string') held.push({ field, id: value });
    else if (Array.isArray(value)) {
      for (const id of value) if (typeof id === 'string') held.push({ field, id });
    }
  }
  return held;
}

const none: readonly HeldReference[] = [];
