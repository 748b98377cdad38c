/** The row of an account: the representation that `/users` serves (§2.1), in the order of its schema. */
import { type Collection, searchText } from '../../model/collection.ts';
import { buildRepresentation, referencesOf } from '../../resources/document/representation.ts';
import type { NextRow } from '../../store/store.ts';
import type { UserFields } from '../account-tables.ts';

/**
 * @param users the collection of accounts
 * @param fields with those of the application
 * @param createdAt milliseconds since the epoch, like `updatedAt`
 */
export function userRow(
  users: Collection,
  id: string,
  fields: UserFields,
  createdAt: number,
  updatedAt: number,
): NextRow {
  const ordered = orderedFields(users, fields);
  const parts = { id, fields: ordered, createdAt, updatedAt, deletedAt: null };
  return {
    doc: buildRepresentation(users, parts),
    owner: id,
    ...{ createdAt, updatedAt, deletedAt: null },
    search: searchText(users.searchFields, ordered),
    references: referencesOf(users, ordered),
  };
}

const madeMembers: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt']);

/** Fields that the configuration no longer declares come last: an account keeps them until it is replaced. */
function orderedFields(users: Collection, fields: UserFields): Readonly<Record<string, unknown>> {
  const given = new Map(Object.entries(fields));
  const names = new Set([...Object.keys(users.schema.properties), ...given.keys()]);
  return Object.fromEntries(
    [...names]
      .filter((name) => !madeMembers.has(name) && given.get(name) !== undefined)
      .map((name) => [name, given.get(name)]),
  );
}
