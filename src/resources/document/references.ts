/**
 * The references that a document holds: what the store checks for existence in the same transaction (§2.2, §4.7).
 */
import type { Collection } from '../../model/collection.ts';

export type HeldReference = { readonly field: string; readonly id: string };

/** The non-null values of the collection's reference fields; each item of an array is one. */
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
