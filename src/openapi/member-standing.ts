/**
 * Derives from the access rules of a collection how a request for a member may end (§4.7.1, §5.1), as
 * resources/collection/standing.ts decides it. The rules are evaluated for one caller of each kind that they
 * distinguish: with and without a credential, with a tenant, with each role and scope that a rule names.
 */

import type { MemberAccess } from '../kernel/documentation.ts';
import { permission, type Rule } from '../model/access.ts';
import { anonymous, authenticated, type Principal, type Scope } from '../model/principal.ts';

export type MemberStanding = {
  readonly mayBeMissing: boolean;
  readonly mayBeHidden: boolean;
  readonly mayBeClosed: boolean;
};

/** @param creates the operation may create a missing member */
export function memberStanding(
  { collection, action, rule: own }: MemberAccess,
  creates: boolean,
): MemberStanding {
  const { conceal } = collection;
  const access = own === undefined ? collection.access : { ...collection.access, [action]: own };
  const rules = [[access[action], action] as const, ...(creates ? [[access.create, 'create'] as const] : [])];
  const ruled = rules.map(([rule]) => rule);
  const callers = callersOf([access.read, ...ruled]).filter((principal) =>
    rules.some(([rule, of]) => permission(rule, of, principal) !== 'denied'),
  );
  const sees = (principal: Principal) => permission(access.read, 'read', principal) === 'granted';
  const may = (principal: Principal) =>
    (action === 'read' || permission(access[action], action, principal) === 'granted') &&
    (!creates || permission(access.create, 'create', principal) !== 'denied');
  const allSee = !asksFunction(access.read) && callers.every(sees);
  const allMay = (action === 'read' || !ruled.some(asksFunction)) && callers.every(may);
  return {
    mayBeMissing: true,
    mayBeHidden: conceal && !allSee,
    mayBeClosed: !allMay || (!conceal && !allSee),
  };
}

type Named = { readonly roles: Set<string>; readonly scopes: Set<Scope> };

function callersOf(rules: readonly Rule[]): readonly Principal[] {
  const named: Named = { roles: new Set(), scopes: new Set() };
  for (const rule of rules) gather(rule, named);
  const usual: readonly Scope[] = ['read', 'write'];
  const roles = [...named.roles];
  const scopes = [...named.scopes].filter((scope) => scope !== 'admin');
  const sets = [
    { roles: [], scopes: usual },
    ...roles.map((role) => ({ roles: [role], scopes: usual })),
    ...scopes.map((scope) => ({ roles: [], scopes: [...usual, scope] })),
    { roles, scopes: [...usual, ...scopes] },
  ];
  const known = sets.flatMap((set) => [null, 'a'].map((tenant) => authenticated({ id: '', ...set, tenant })));
  return [anonymous, ...known];
}

/** True if the rule calls a function, which may distinguish callers in ways that cannot be enumerated. */
function asksFunction(rule: Rule): boolean {
  if (typeof rule === 'string') return false;
  if ('anyOf' in rule) return rule.anyOf.some(asksFunction);
  if ('allOf' in rule) return rule.allOf.some(asksFunction);
  if ('bearing' in rule) return asksFunction(rule.rule);
  return 'filterFor' in rule || 'allow' in rule;
}

function gather(rule: Rule, named: Named): void {
  if (typeof rule === 'string') return;
  if ('role' in rule) named.roles.add(rule.role);
  else if ('scope' in rule) named.scopes.add(rule.scope);
  else if ('bearing' in rule) {
    named.scopes.add(rule.bearing);
    gather(rule.rule, named);
  } else if ('anyOf' in rule) for (const part of rule.anyOf) gather(part, named);
  else if ('allOf' in rule) for (const part of rule.allOf) gather(part, named);
}
