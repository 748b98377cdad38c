/**
 * What a collection asks of storage. The result has the shape of `Table` in the store contract, which is not
 * imported: the store's room may read the configuration, never the other way round.
 */

import type { Rule } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { type Field, ownerField } from '../model/field.ts';

export type CollectionTable = {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly indexes: readonly (readonly Field[])[];
  readonly unique: readonly Field[];
  readonly references: readonly { readonly field: Field; readonly table: string }[];
  readonly searched: boolean;
};

/** The table that keeps a collection: one of the same name, with its indexes, unique fields and references. */
export function tableOf(collection: Collection): CollectionTable {
  const id = collection.fields.get('id');
  return {
    name: collection.name,
    fields: [...collection.fields.values()],
    indexes: [
      ...collection.indexes,
      // Lists in order of id would walk past the rows that are only hidden.
      ...(id === undefined || !collection.softDelete ? [] : [[id]]),
      // A list of one's own costs the same however many others there are.
      ...(isOwners(collection.access.read) ? [[ownerField]] : []),
    ],
    unique: collection.unique,
    references: collection.references.flatMap((reference) => {
      const field = collection.fields.get(reference.field);
      return field === undefined ? [] : [{ field, table: reference.collection }];
    }),
    searched: collection.searchFields.length > 0,
  };
}

function isOwners(rule: Rule): boolean {
  return rule === 'owner' || (typeof rule === 'object' && 'bearing' in rule && isOwners(rule.rule));
}
