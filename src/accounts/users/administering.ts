/**
 * Accounts that administer others without being administrators (`accounts.admin`, §5.7). They reach the accounts that the rule names, and
 * neither give nor touch rights beyond their own: an account with a role, a scope or a tenant that they do not have is closed to them.
 */
import type { ResolvedAccounts } from '../../config/accounts.ts';
import { permits, type Subject } from '../../model/access.ts';
import { equalJson } from '../../model/json-value.ts';
import {
  type Authenticated,
  administratorRole,
  isAdministrator,
  type Principal,
} from '../../model/principal.ts';
import { subjectOf } from '../../resources/collection/standing.ts';
import { withheldFrom } from '../../resources/document/withheld.ts';
import { readUser, type User } from '../account-tables.ts';

type StoredDoc = { readonly doc: string; readonly owner: string | null };

/** A change that a request asks for, before hooks run: created without `before`, removed without `next`. */
export type AccountChange = { readonly before: StoredDoc | undefined; readonly next: StoredDoc | null };

export type Administering = {
  /** True if the principal administers the account, and the account has no right that the principal lacks. */
  reaches(principal: Principal, account: StoredDoc): boolean;
  /** False for a change that neither the other rules nor the administration of accounts permit. */
  mayChange(principal: Principal, change: AccountChange): boolean;
};

export function createAdministering({ admin, unadministered }: ResolvedAccounts): Administering {
  function reaches(principal: Principal, account: StoredDoc): boolean {
    if (isAdministrator(principal)) return true;
    if (admin === undefined || principal.kind === 'anonymous') return false;
    return (
      permits(admin.rule, 'update', principal, subjectOf(account)) &&
      isWithin(principal, readUser(account.doc))
    );
  }

  /** By the rules of the account itself: what an account may change of its own, for one. */
  function isOwnChange(principal: Principal, { before, next }: AccountChange): boolean {
    if (before === undefined) return false;
    const { access } = unadministered;
    const subject: Subject = subjectOf(before);
    if (next === null) return permits(access.delete, 'delete', principal, subject);
    if (!permits(access.update, 'update', principal, subject)) return false;
    const [from, to] = [JSON.parse(before.doc), JSON.parse(next.doc)] as readonly Record<string, unknown>[];
    const { readOnly } = withheldFrom(unadministered, { principal, owner: before.owner }, from ?? {});
    return [...readOnly].every((name) => equalJson(from?.[name], to?.[name]));
  }

  return {
    reaches,
    mayChange: (principal, change) =>
      isAdministrator(principal) ||
      admin === undefined ||
      isOwnChange(principal, change) ||
      [change.before, change.next ?? undefined].every(
        (account) => account === undefined || reaches(principal, account),
      ),
  };
}

/** The rights of an account without those that its credential leaves out. */
function isWithin({ roles, scopes, tenant }: Authenticated, account: User): boolean {
  return (
    account.roles.every((role) => role !== administratorRole && roles.has(role)) &&
    account.scopes.every((scope) => scopes.has(scope)) &&
    (account.tenant === undefined || account.tenant === tenant)
  );
}
