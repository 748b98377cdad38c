/** The row of an account, which is the representation that `/users` serves (§2.1), in the order of its schema; finding it; and its principal. */
import { hash } from 'node:crypto';
import { type Collection, searchText } from '../../model/collection.ts';
import type { Field } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import { idPrefixes } from '../../model/id.ts';
import {
  type Authenticated,
  administratorRole,
  authenticated,
  type PrincipalParts,
  type Scope,
  scopes,
} from '../../model/principal.ts';
import { buildRepresentation, referencesOf } from '../../resources/document/representation.ts';
import type { MaybePromise, NextRow, Row, Store } from '../../store/store.ts';
import { fieldsOfUser, readUser, type User, type UserFields, usersTable } from '../account-tables.ts';

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

export type FoundUser = { readonly user: User; readonly row: Row };

export type FindUser = {
  byId(id: string): MaybePromise<FoundUser | undefined>;
  /** @param email in the form of `normalizeEmail` */
  byEmail(email: string): MaybePromise<FoundUser | undefined>;
};

/** No account has this id. */
export const absentUserId = idPrefixes.account;

const emailField: Field = { name: 'email', path: ['email'], type: 'string' };
export function createFindUser(store: Pick<Store, 'plan' | 'read'>): FindUser {
  function read(id: string): MaybePromise<FoundUser | undefined> {
    const row = store.read(usersTable, id);
    return row instanceof Promise ? row.then(found) : found(row);
  }

  /** Between the two reads the address may move to another account. */
  async function byEmail(email: string): Promise<FoundUser | undefined> {
    const plan = store.plan({
      table: usersTable,
      filter: { op: 'eq', field: emailField, value: email },
      sort: byId,
      limit: 1,
    });
    const { docs } = await plan.page({ from: 'start' });
    const [doc] = docs;
    // An unknown address costs the same reads as a known one.
    const user = await read(doc === undefined ? absentUserId : readUser(doc).id);
    return user?.user.email === email ? user : undefined;
  }

  return { byId: read, byEmail };
}

function found(row: Row | undefined): FoundUser | undefined {
  return row === undefined || row.deletedAt !== null ? undefined : { user: readUser(row.doc), row };
}

// The principal of an account (§5.1), the same for all of its credentials. It has the account's current rights; the content of a token
// or key never adds to them.

/**
 * Returns undefined for a disabled account. The role `administrator` gives every scope.
 * @param limit the scopes of the credential, such as an API key. Without `admin` in it, the principal does not have the role
 * `administrator` either, so that no rule by role exceeds the limit.
 */
export function principalOf(user: User, limit?: readonly Scope[]): Authenticated | undefined {
  if (user.disabled) return undefined;
  const own = user.roles.includes(administratorRole) ? scopes : user.scopes;
  const granted = limit === undefined ? own : own.filter((scope) => limit.includes(scope));
  const roles =
    limit === undefined || limit.includes('admin')
      ? user.roles
      : user.roles.filter((role) => role !== administratorRole);
  return authenticated({
    ...{ id: user.id, scopes: granted, roles, tenant: user.tenant ?? null },
    ...principalFields(fieldsOfUser(user)),
  });
}

/** The digest keeps audiences short, by which caches are kept, however long the fields are. */
function principalFields(
  fields: Readonly<Record<string, unknown>>,
): Pick<PrincipalParts, 'fields' | 'fieldsMark'> {
  if (Object.keys(fields).length === 0) return {};
  return { fields: frozen(fields), fieldsMark: hash('sha256', JSON.stringify(fields), 'base64url') };
}

/** Access functions and hooks get the same object for every request: none may change it for the next. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const within of Object.values(value)) frozen(within);
  return Object.freeze(value);
}
