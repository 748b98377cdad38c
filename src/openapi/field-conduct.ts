/**
 * What a schema alone cannot say of a field: who may write it (`readOnly`), who sees it (`hidden`), and where its value comes from
 * (`tenantField`). Which callers those are is the application's own affair and not told.
 */
import type { Collection } from '../model/collection.ts';
import type { Item } from './item.ts';

type Conduct = Pick<Collection, 'readOnly' | 'hidden' | 'tenantField'>;

const readOnlyNote = 'Read-only for most callers, who are answered 400 when they change it.';
const hiddenNote = 'Absent for callers who may not see it.';
const tenantNote = 'The tenant of who creates the resource, unless an administrator names one; fixed then.';

/** @param properties of the declared schema, by name */
export function withConduct(properties: Item, collection: Conduct): Item {
  const { readOnly, hidden, tenantField } = collection;
  if (readOnly.size === 0 && hidden.size === 0 && tenantField === undefined) return properties;
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const notes = [
        ...(readOnly.has(name) ? [readOnlyNote] : []),
        ...(hidden.has(name) ? [hiddenNote] : []),
        ...(name === tenantField ? [tenantNote] : []),
      ];
      return [name, notes.length === 0 ? schema : annotated(schema, notes)];
    }),
  );
}

/** Required fields that every caller sees. */
export function alwaysSeen(required: readonly string[], { hidden }: Conduct): readonly string[] {
  return required.filter((name) => !hidden.has(name));
}

/** Required fields that no caller may leave out: the server fills in or keeps the others for some. */
export function alwaysSent(required: readonly string[], collection: Conduct): readonly string[] {
  const { readOnly, hidden, tenantField } = collection;
  return required.filter((name) => !readOnly.has(name) && !hidden.has(name) && name !== tenantField);
}

function annotated(schema: unknown, notes: readonly string[]): Item {
  const item = schema as Item;
  const own = typeof item.description === 'string' ? [item.description] : [];
  return { ...item, description: [...own, ...notes].join(' ') };
}
