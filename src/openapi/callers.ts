/**
 * Callers that access rules tell apart (§5.1), one of each kind: with and without a credential, a tenant, each role and scope that a rule
 * names. What a rule can come to is found by asking it about each of them.
 */
import type { Rule } from '../model/access.ts';
import { anonymous, authenticated, type Principal, type Scope } from '../model/principal.ts';

type Named = { readonly roles: Set<string>; readonly scopes: Set<Scope> };

export function callersOf(rules: readonly Rule[]): readonly Principal[] {
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

/** Whether the rule may tell callers apart by what nobody can list. */
export function asksFunction(rule: Rule): boolean {
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
