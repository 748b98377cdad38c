/**
 * The principal that an account stands for (§5.1), the same whichever of its credentials came. It is made of the account as it is
 * now: what a token or a key said when it was made never adds to it.
 */
import {
  type Authenticated,
  administratorRole,
  authenticated,
  type Scope,
  scopes,
} from '../../model/principal.ts';
import type { User } from '../tables.ts';

/**
 * Undefined for a disabled account, whose credentials are all refused. The role `administrator` gives every scope.
 * @param limit what the credential itself may do at most, such as the scopes of an API key. Without `admin` in it the credential of
 * an administrator bears no `administrator` role either, so that no rule by role gives back what the limit took.
 */
export function principalOf(user: User, limit?: readonly Scope[]): Authenticated | undefined {
  if (user.disabled) return undefined;
  const own = user.roles.includes(administratorRole) ? scopes : user.scopes;
  const granted = limit === undefined ? own : own.filter((scope) => limit.includes(scope));
  const roles =
    limit === undefined || limit.includes('admin')
      ? user.roles
      : user.roles.filter((role) => role !== administratorRole);
  return authenticated({ id: user.id, scopes: granted, roles, tenant: user.tenant ?? null });
}
