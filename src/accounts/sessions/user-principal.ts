/**
 * The principal of an account (§5.1), the same for all of its credentials. It has the account's current rights; the content of a token
 * or key never adds to them.
 */
import { hash } from 'node:crypto';
import {
  type Authenticated,
  administratorRole,
  authenticated,
  type PrincipalParts,
  type Scope,
  scopes,
} from '../../model/principal.ts';
import { fieldsOfUser, type User } from '../account-tables.ts';

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
