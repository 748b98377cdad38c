/**
 * Access rules (§4.7.1, §5.1): data, not code, so that one rule answers three questions: may this
 * principal ever do it, may it do it to this resource, and which resources may a list show it.
 * Nothing leaks through a side door because lists, QUERY, counts and streams use `visibleTo`.
 */
import type { Field, Scalar } from './field.ts';
import { allOf, always, anyOf, type Filter, never } from './filter.ts';
import { isAdministrator, type Principal, type Scope } from './principal.ts';

export type Rule =
  /** Anyone, with or without a credential. */
  | 'public'
  /** Anyone with a valid credential. */
  | 'principal'
  /** The principal that created the resource. */
  | 'owner'
  /** Administrators alone. */
  | 'administrator'
  | { readonly anyOf: readonly Rule[] }
  | { readonly allOf: readonly Rule[] }
  /** Each named member of the resource has exactly this value. */
  | { readonly where: Readonly<Record<string, Scalar>> };

export type Action = 'read' | 'create' | 'update' | 'delete';

export type Access = Readonly<Record<Action, Rule>>;

/** What a rule may look at in a resource. */
export type Subject = {
  readonly owner: string | null;
  /** Called only where a `where` rule needs it: the stored bytes stay unparsed otherwise. */
  readonly member: (name: string) => unknown;
};

/** `depends`: the answer needs the resource. */
export type Permission = 'granted' | 'denied' | 'depends';

const scopeOf: Readonly<Record<Action, Scope>> = {
  read: 'read',
  create: 'write',
  update: 'write',
  delete: 'write',
};

/** Whether the rule can be decided before any resource is looked at, and how. */
export function permission(rule: Rule, action: Action, principal: Principal): Permission {
  if (isAdministrator(principal)) return 'granted';
  if (principal.kind === 'authenticated' && !principal.scopes.has(scopeOf[action])) return 'denied';
  return fold(rule, principal);
}

function fold(rule: Rule, principal: Principal): Permission {
  if (rule === 'public') return 'granted';
  if (rule === 'principal') return principal.kind === 'authenticated' ? 'granted' : 'denied';
  if (rule === 'owner') return principal.kind === 'authenticated' ? 'depends' : 'denied';
  if (rule === 'administrator') return 'denied';
  if ('where' in rule) return 'depends';
  const [wins, loses, parts] =
    'anyOf' in rule
      ? (['granted', 'denied', rule.anyOf] as const)
      : (['denied', 'granted', rule.allOf] as const);
  const answers = parts.map((part) => fold(part, principal));
  if (answers.includes(wins)) return wins;
  return answers.includes('depends') ? 'depends' : loses;
}

/** Whether the principal may do the action to this resource. */
export function permits(rule: Rule, action: Action, principal: Principal, subject: Subject): boolean {
  const early = permission(rule, action, principal);
  return early === 'depends' ? holds(rule, principal, subject) : early === 'granted';
}

function holds(rule: Rule, principal: Principal, subject: Subject): boolean {
  if (rule === 'owner') return principal.kind === 'authenticated' && principal.id === subject.owner;
  if (typeof rule === 'string') return fold(rule, principal) === 'granted';
  if ('where' in rule) {
    return Object.entries(rule.where).every(([name, value]) => (subject.member(name) ?? null) === value);
  }
  return 'anyOf' in rule
    ? rule.anyOf.some((part) => holds(part, principal, subject))
    : rule.allOf.every((part) => holds(part, principal, subject));
}

/**
 * The resources that the principal may read, as a filter that a store can run.
 * @param member finds the field behind a `where` name; the event stream points it into `data.object`.
 */
export function visibleTo(
  rule: Rule,
  principal: Principal,
  owner: Field,
  member: (name: string) => Field,
): Filter {
  const early = permission(rule, 'read', principal);
  if (early !== 'depends') return early === 'granted' ? always : never;
  return compile(rule);

  function compile(part: Rule): Filter {
    if (part === 'owner') {
      return principal.kind === 'authenticated' ? { op: 'eq', field: owner, value: principal.id } : never;
    }
    if (typeof part === 'string') return fold(part, principal) === 'granted' ? always : never;
    if ('where' in part) {
      return allOf(
        Object.entries(part.where).map(([name, value]) => ({ op: 'eq', field: member(name), value })),
      );
    }
    return 'anyOf' in part ? anyOf(part.anyOf.map(compile)) : allOf(part.allOf.map(compile));
  }
}
