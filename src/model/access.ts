/**
 * Access rules (§4.7.1, §5.1) as data, so that one rule answers three questions: may this principal ever do it, may it
 * do it to this resource, and which resources may a list show it. Lists, QUERY, counts and streams use `visibleTo`, so
 * that none of them leaks hidden resources.
 */
import type { ConditionRule, FunctionRule } from './access-function.ts';
import type { Field } from './field.ts';
import { allOf, always, anyOf, type Filter, never } from './filter.ts';
import type { FieldValues } from './logic/collection-calls.ts';
import { type Matchable, matches, memberAt } from './matches.ts';
import { isAdministrator, type Principal, type Scope, tenantOf } from './principal.ts';

/** @template T the fields of the resource; never: not known */
export type Rule<T = never> =
  /** Anyone, with or without a credential. */
  | 'public'
  /** Anyone with a valid credential. */
  | 'principal'
  /** The principal that created the resource. */
  | 'owner'
  /** Members of the tenant that the resource belongs to; needs `tenantField`. */
  | 'tenant'
  /** Administrators only. */
  | 'administrator'
  /** Principals with the role. */
  | { readonly role: string }
  /** Credentials with the scope. */
  | { readonly scope: Scope }
  | { readonly anyOf: readonly Rule<T>[] }
  | { readonly allOf: readonly Rule<T>[] }
  /** Each named member of the resource has exactly this value. */
  | { readonly where: FieldValues<T> }
  | FunctionRule
  | ResolvedRule;

/** The resolved form of `tenant` and functions (config/collections.ts), which cannot be declared. */
export type ResolvedRule = ConditionRule | { readonly tenantIn: string } | BearingRule;

/** The rule applies to credentials with this scope in place of `read` and `write`: for some built-in collections. */
export type BearingRule = { readonly bearing: Scope; readonly rule: Rule };

export type Action = 'read' | 'create' | 'update' | 'delete';

export type Access<T = never> = Readonly<Record<Action, Rule<T>>>;

export type Subject = {
  readonly owner: string | null;
  /** Called only if a rule depends on a field: otherwise the stored bytes stay unparsed. */
  readonly member: (name: string) => unknown;
  /** Finds the resources that references name, for rules over them. */
  readonly related?: Matchable['related'];
};

/** `depends`: the answer needs the resource. */
export type Permission = 'granted' | 'denied' | 'depends';

const scopeOf: Readonly<Record<Action, Scope>> = {
  read: 'read',
  create: 'write',
  update: 'write',
  delete: 'write',
};

/** Decides the rule without a resource, if possible. */
export function permission(rule: Rule, action: Action, principal: Principal): Permission {
  if (isAdministrator(principal)) return 'granted';
  const needed = typeof rule === 'object' && 'bearing' in rule ? rule.bearing : scopeOf[action];
  if (principal.kind === 'authenticated' && !principal.scopes.has(needed)) return 'denied';
  return fold(rule, principal);
}

function fold(rule: Rule, principal: Principal): Permission {
  if (typeof rule === 'string') return foldNamed(rule, principal);
  const known = principal.kind === 'authenticated' ? principal : undefined;
  if ('role' in rule) return known?.roles.has(rule.role) ? 'granted' : 'denied';
  if ('scope' in rule) return known?.scopes.has(rule.scope) ? 'granted' : 'denied';
  if ('tenantIn' in rule) return (known?.tenant ?? null) === null ? 'denied' : 'depends';
  if ('where' in rule) return 'depends';
  if ('filterFor' in rule) {
    const { op } = rule.filterFor(principal);
    return op === 'always' ? 'granted' : op === 'never' ? 'denied' : 'depends';
  }
  if ('bearing' in rule) return fold(rule.rule, principal);
  if ('allow' in rule) throw unresolved();
  const [wins, loses, parts] =
    'anyOf' in rule
      ? (['granted', 'denied', rule.anyOf] as const)
      : (['denied', 'granted', rule.allOf] as const);
  const answers = parts.map((part) => fold(part, principal));
  if (answers.includes(wins)) return wins;
  return answers.includes('depends') ? 'depends' : loses;
}

function foldNamed(rule: Extract<Rule, string>, principal: Principal): Permission {
  switch (rule) {
    case 'public':
      return 'granted';
    case 'principal':
      return principal.kind === 'authenticated' ? 'granted' : 'denied';
    case 'owner':
      return principal.kind === 'authenticated' ? 'depends' : 'denied';
    case 'administrator':
      return 'denied';
    case 'tenant':
      throw unresolved();
  }
}

export function permits(rule: Rule, action: Action, principal: Principal, subject: Subject): boolean {
  const early = permission(rule, action, principal);
  return early === 'depends' ? holds(rule, principal, subject) : early === 'granted';
}

function holds(rule: Rule, principal: Principal, subject: Subject): boolean {
  if (rule === 'owner') return principal.kind === 'authenticated' && principal.id === subject.owner;
  if (typeof rule === 'string' || 'role' in rule || 'scope' in rule)
    return fold(rule, principal) === 'granted';
  if ('tenantIn' in rule) return isOfTenant(principal, subject.member(rule.tenantIn));
  if ('where' in rule) {
    return Object.entries(rule.where).every(([name, value]) => (subject.member(name) ?? null) === value);
  }
  if ('filterFor' in rule) {
    const value = (field: Field) => fieldOf(subject, field);
    return matches(rule.filterFor(principal), { value, search: null, related: subject.related });
  }
  if ('bearing' in rule) return holds(rule.rule, principal, subject);
  if ('allow' in rule) throw unresolved();
  return 'anyOf' in rule
    ? rule.anyOf.some((part) => holds(part, principal, subject))
    : rule.allOf.every((part) => holds(part, principal, subject));
}

function isOfTenant(principal: Principal, tenant: unknown): boolean {
  return principal.kind === 'authenticated' && principal.tenant !== null && principal.tenant === tenant;
}

function fieldOf(subject: Subject, field: Field): unknown {
  if (field.column === 'owner') return subject.owner;
  const [name = '', ...within] = field.path;
  const member = subject.member(name);
  return within.length === 0 ? member : memberAt(member, within);
}

/**
 * The resources that the principal may read, as a filter for a store.
 * @param member finds the field of a name; for the event stream, within `data.object`
 */
export function visibleTo(
  rule: Rule,
  principal: Principal,
  owner: Field,
  member: (name: string) => Field,
): Filter {
  return permittedWhere(rule, 'read', { principal, owner, member });
}

/** The resources to which the principal may do the action, as a filter. */
export function permittedWhere(
  rule: Rule,
  action: Action,
  { principal, owner, member }: { principal: Principal; owner: Field; member: (name: string) => Field },
): Filter {
  const early = permission(rule, action, principal);
  if (early !== 'depends') return early === 'granted' ? always : never;
  return compile(rule);

  function compile(part: Rule): Filter {
    if (part === 'owner') {
      return principal.kind === 'authenticated' ? { op: 'eq', field: owner, value: principal.id } : never;
    }
    if (typeof part === 'string' || 'role' in part || 'scope' in part) {
      return fold(part, principal) === 'granted' ? always : never;
    }
    if ('tenantIn' in part) {
      const tenant = tenantOf(principal);
      return tenant === null ? never : { op: 'eq', field: member(part.tenantIn), value: tenant };
    }
    if ('where' in part) {
      return allOf(
        Object.entries(part.where).map(([name, value]) => ({ op: 'eq', field: member(name), value })),
      );
    }
    if ('filterFor' in part) {
      return withFields(part.filterFor(principal), (field) =>
        field.column === 'owner' ? owner : member(field.name),
      );
    }
    if ('bearing' in part) return compile(part.rule);
    if ('allow' in part) throw unresolved();
    return 'anyOf' in part ? anyOf(part.anyOf.map(compile)) : allOf(part.allOf.map(compile));
  }
}

/** True if the rule may look at resources that references name. */
export function mayRelate(rule: Rule): boolean {
  if (typeof rule === 'string') return false;
  if ('filterFor' in rule) return rule.mayRelate === true;
  if ('bearing' in rule) return mayRelate(rule.rule);
  if ('anyOf' in rule) return rule.anyOf.some(mayRelate);
  return 'allOf' in rule && rule.allOf.some(mayRelate);
}

type Named = { readonly roles: Set<string>; readonly scopes: Set<Scope> };

/** The roles and scopes that the rules name. Functions may ask for others. */
export function namedIn(rules: Iterable<Rule>): {
  readonly roles: ReadonlySet<string>;
  readonly scopes: ReadonlySet<Scope>;
} {
  const named: Named = { roles: new Set(), scopes: new Set() };
  for (const rule of rules) gatherNames(rule, named);
  return named;
}

function gatherNames(rule: Rule, named: Named): void {
  if (typeof rule === 'string') return;
  if ('role' in rule) named.roles.add(rule.role);
  else if ('scope' in rule) named.scopes.add(rule.scope);
  else if ('bearing' in rule) {
    named.scopes.add(rule.bearing);
    gatherNames(rule.rule, named);
  } else if ('anyOf' in rule) for (const part of rule.anyOf) gatherNames(part, named);
  else if ('allOf' in rule) for (const part of rule.allOf) gatherNames(part, named);
}

function unresolved(): Error {
  return new Error('an access rule was evaluated before the configuration resolved it');
}

/** The same filter over other fields, such as those of the resource inside an event (§6). */
export function withFields(filter: Filter, replace: (field: Field) => Field): Filter {
  switch (filter.op) {
    case 'always':
    case 'never':
    case 'search':
      return filter;
    case 'and':
    case 'or':
      return { op: filter.op, filters: filter.filters.map((part) => withFields(part, replace)) };
    case 'not':
      return { op: 'not', filter: withFields(filter.filter, replace) };
    default:
      return { ...filter, field: replace(filter.field) };
  }
}
