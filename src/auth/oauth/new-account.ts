/** The account of somebody who came by a provider first: it has an address, perhaps a name, and no password. */
import type { Change } from '../../store/store.ts';
import { passwordChange } from '../accounts/password-row.ts';
import { userRow } from '../accounts/user-row.ts';
import { readUser, type User, type UserFields, userDefaults, usersTable } from '../tables.ts';

export type NewAccount = {
  readonly id: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly name: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

export function newAccount(account: NewAccount): {
  readonly user: User;
  readonly changes: readonly Change[];
} {
  const { id, email, emailVerified, name, at } = account;
  const fields: UserFields = {
    email,
    ...(name === undefined ? {} : { name }),
    ...userDefaults,
    emailVerified,
  };
  const next = userRow(id, fields, at, at);
  const changes = [
    { table: usersTable, id, expect: { absent: true }, next } as const,
    passwordChange(id, undefined, null, at),
  ];
  return { user: readUser(next.doc), changes };
}
