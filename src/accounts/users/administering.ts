/**
 * Accounts that administer others without being administrators (`accounts.admin`, §5.7). They reach the accounts that a rule names, and
 * neither give nor touch rights beyond their own, or beyond the roles that the declaration lets them grant: an account with another role,
 * scope or tenant is closed to them. A refusal names the right that is missing.
 */
import type { ResolvedAccounts } from '../../config/accounts.ts';
import type { Problem } from '../../http/problem.ts';
import { permits, type Subject } from '../../model/access.ts';
import { equalJson } from '../../model/json-value.ts';
import {
  type Authenticated,
  administratorRole,
  isAdministrator,
  type Principal,
} from '../../model/principal.ts';
import { subjectOf } from '../../resources/collection/view.ts';
import { withheldFrom } from '../../resources/document/closed-members.ts';
import { readUser, type User } from '../account-tables.ts';

type StoredDoc = { readonly doc: string; readonly owner: string | null };

/** A change that a request asks for, before hooks run: created without `before`, removed without `next`. */
type AccountChange = { readonly before: StoredDoc | undefined; readonly next: StoredDoc | null };

export type Administering = {
  /** Undefined if the principal administers the account, and the account has no right that the principal may not give. */
  refusalOfReach(principal: Principal, account: StoredDoc): Problem | undefined;
  /** Refuses a change that neither the other rules nor the administration of accounts permit. */
  refusalOf(principal: Principal, change: AccountChange): Problem | undefined;
  /** The roles that the principal gives to accounts; of an administrator, those that the declaration of accounts names. */
  rolesGivenBy(principal: Principal): readonly string[];
};

export function createAdministering(accounts: ResolvedAccounts): Administering {
  const { admins, adminRoles, unadministered, users } = accounts;

  /** @param does how an error names what the account has, or is to have */
  function refusalOfReach(principal: Principal, account: StoredDoc, does = has): Problem | undefined {
    if (isAdministrator(principal)) return undefined;
    if (principal.kind === 'anonymous') return notAdministered;
    const subject = subjectOf(account);
    const lacking = admins
      .filter(({ rule }) => permits(rule, 'update', principal, subject))
      .map(({ grants }) => lackingFor(principal, readUser(account.doc), grants));
    if (lacking.length === 0) return notAdministered;
    if (lacking.some((rights) => rights.length === 0)) return undefined;
    const [fewest = []] = lacking.toSorted((one, other) => one.length - other.length);
    // Which rights an account has is not for everybody who may not touch it.
    const shown = does === has ? fewest.filter(({ member }) => !users.hidden.has(member)) : fewest;
    const [first] = shown;
    if (first === undefined) return notAdministered;
    const errors = shown.map(({ member, name }) => ({ pointer: `/${member}`, message: does(member, name) }));
    return { code: 'forbidden', message: does(first.member, first.name), errors };
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
    refusalOfReach: (principal, account) => refusalOfReach(principal, account),
    rolesGivenBy(principal) {
      if (principal.kind === 'anonymous') return [];
      const isAny = isAdministrator(principal);
      const given = adminRoles.flatMap((role, at) => {
        if (!isAny && !principal.roles.has(role)) return [];
        return [...(isAny ? [role] : []), ...(admins[at]?.grants ?? principal.roles)];
      });
      return [...new Set(given)].filter((role) => isAny || role !== administratorRole).sort();
    },
    refusalOf(principal, change) {
      if (!accounts.isAdministered || isOwnChange(principal, change)) return undefined;
      const { before, next } = change;
      const touched = before === undefined ? undefined : refusalOfReach(principal, before);
      return touched ?? (next === null ? undefined : refusalOfReach(principal, next, gives));
    },
  };
}

const notAdministered: Problem = { code: 'forbidden', message: 'you do not administer this account' };

type Right = { readonly member: 'roles' | 'scopes' | 'tenant'; readonly name: string };

const has = (member: Right['member'], name: string): string =>
  `the account has the ${kindOf[member]} ${JSON.stringify(name)}, which you may not give`;
const gives = (member: Right['member'], name: string): string =>
  `you may not give the ${kindOf[member]} ${JSON.stringify(name)}`;
const kindOf = { roles: 'role', scopes: 'scope', tenant: 'tenant' } as const;

/** @param grants the roles that the principal may give; undefined: its own. Rights that its credential leaves out are not its own. */
function lackingFor(
  { roles, scopes, tenant }: Authenticated,
  account: User,
  grants: ReadonlySet<string> | undefined,
): readonly Right[] {
  const given = grants ?? roles;
  return [
    ...account.roles
      .filter((role) => role === administratorRole || !given.has(role))
      .map((name) => ({ member: 'roles', name }) as const),
    ...account.scopes
      .filter((scope) => !scopes.has(scope))
      .map((name) => ({ member: 'scopes', name }) as const),
    ...(account.tenant === undefined || account.tenant === tenant
      ? []
      : [{ member: 'tenant', name: account.tenant } as const]),
  ];
}
