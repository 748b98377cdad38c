/** The row of an account: the representation that `/users` serves (§2.1), in the order of its schema. */
import { searchText } from '../../model/collection.ts';
import type { NextRow } from '../../store/store.ts';
import type { UserFields } from '../account-tables.ts';

export const userSearchFields: readonly string[] = ['email', 'name', 'tenant'];

/** Times in milliseconds since the epoch. */
export function userRow(id: string, fields: UserFields, createdAt: number, updatedAt: number): NextRow {
  const { email, name, emailVerified, roles, scopes, tenant, disabled } = fields;
  const doc = {
    id,
    email,
    ...(name === undefined ? {} : { name }),
    emailVerified,
    roles,
    scopes,
    ...(tenant === undefined ? {} : { tenant }),
    disabled,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  };
  return {
    doc: JSON.stringify(doc),
    owner: id,
    createdAt,
    updatedAt,
    deletedAt: null,
    search: searchText(userSearchFields, fields),
    references: [],
  };
}
