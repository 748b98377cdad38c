/**
 * Access rules as functions over (principal, resource) (§5.1). A function is not called for each resource: it is called
 * once for each kind of caller and returns a condition, which is cached. So it must be pure, and `allow` passes only
 * what rules may depend on.
 */
import type { Static, TObject } from 'typebox';
import { Condition, expressionsOf, type Writing } from './access-condition.ts';
import { type Fields, ownerField } from './field.ts';
import type { Filter, Through } from './filter.ts';
import type { AccountFields } from './logic/collection-calls.ts';
import { audienceOf, noFields, type Principal, type Scope } from './principal.ts';

/** The caller in an access function. Administrators pass every rule without a call. */
export type RulePrincipal = {
  readonly kind: 'anonymous' | 'authenticated';
  /** Null without a credential. */
  readonly id: string | null;
  readonly roles: ReadonlySet<string>;
  readonly scopes: ReadonlySet<Scope>;
  readonly tenant: string | null;
  /** The fields of its account that the configuration declares (`accounts.fields`). Any may be absent: not every caller has an account. */
  readonly fields: AccountFields;
};

type Values = string | number | boolean;

/** Conditions on a field with one value. A comparison with nothing holds for no resource, `isNot(null)` for all. */
export type ScalarExpression<V extends Values> = {
  is(value: V | null | undefined): Condition;
  /** Also holds if the field is absent. */
  isNot(value: V | null | undefined): Condition;
  in(values: Iterable<V>): Condition;
  isAbsent(): Condition;
  isPresent(): Condition;
} & ([V] extends [boolean]
  ? unknown
  : {
      gt(value: V | null | undefined): Condition;
      gte(value: V | null | undefined): Condition;
      lt(value: V | null | undefined): Condition;
      lte(value: V | null | undefined): Condition;
    });

export type ListExpression<V extends Values> = { has(value: V | null | undefined): Condition };

export type ExpressionOf<V> = [V] extends [Values]
  ? ScalarExpression<V>
  : [V] extends [readonly (infer Item)[]]
    ? ListExpression<Extract<Item, Values>>
    : { readonly [Name in keyof V]-?: ExpressionOf<NonNullable<V[Name]>> };

/** @template References what the reference fields of the schema name, as `allow` describes */
export type ResourceExpressions<Schema extends TObject, References = unknown> = {
  readonly [Name in keyof Static<Schema>]-?: ExpressionOf<NonNullable<Static<Schema>[Name]>> &
    (Name extends keyof References ? ExpressionsBeyond<References[Name]> : unknown);
} & {
  readonly id: ScalarExpression<string>;
  readonly createdAt: ScalarExpression<string>;
  readonly updatedAt: ScalarExpression<string>;
  /** Id of the principal that created the resource. */
  readonly owner: ScalarExpression<string>;
};

type ExpressionsBeyond<Reference> = Reference extends TObject
  ? ResourceExpressions<Reference>
  : Reference extends readonly [infer Schema extends TObject, infer References]
    ? ResourceExpressions<Schema, References>
    : unknown;

export type FunctionRule = {
  readonly allow: (principal: RulePrincipal, resource: never) => boolean | Condition;
};

/** The rule in a resolved collection, with the cached condition for each caller. */
export type ConditionRule = {
  /** @throws any exception of the function, and AccessFunctionError for an invalid result */
  readonly filterFor: (principal: Principal) => Filter;
  /** Text of the function, which processes that share a store compare. */
  readonly source: string;
  /** The condition may be one on resources that references name. Absent: it is not. */
  readonly mayRelate?: boolean;
  /** It was written as `where`, and is the same for every caller. */
  readonly isWhere?: true;
};

/**
 * A rule as a function: `allow<typeof schema>((principal, resource) => ...)`.
 * @template References the schemas of the collections that reference fields name, to look at their fields:
 * `{ ticketId: typeof Ticket }`; with the references of those, `{ ticketId: [typeof Ticket, { customerId: typeof Customer }] }`
 * @param judge returns true, false or a condition on the resource. It must be pure, and join conditions with `and`,
 * `or`, `not`.
 */
export function allow<Schema extends TObject, References = unknown>(
  judge: (principal: RulePrincipal, resource: ResourceExpressions<Schema, References>) => boolean | Condition,
): FunctionRule {
  return { allow: judge };
}

/** Cached conditions of one function, one for each audience; a further audience calls it again. */
export const ruleAudiencesMax = 1000;

/**
 * @param fields those of the collection that declares the rule
 * @param through where its references lead; absent: it has none
 */
export function createConditionRule(
  { allow: judge }: FunctionRule,
  fields: Fields,
  through?: Through,
): ConditionRule {
  const known = new Map<string, Filter>();
  return {
    source: String(judge),
    mayRelate: through !== undefined,
    filterFor: (principal) => {
      const audience = audienceOf(principal);
      const kept = known.get(audience);
      if (kept !== undefined) return kept;
      const filter = callRule(judge, fields, principal, through);
      const oldest = known.size < ruleAudiencesMax ? undefined : known.keys().next().value;
      if (oldest !== undefined) known.delete(oldest);
      known.set(audience, filter);
      return filter;
    },
  };
}

/**
 * Calls an access function once.
 * @throws any exception of the function, and AccessFunctionError for an invalid result
 */
export function callRule(
  judge: FunctionRule['allow'],
  fields: Fields,
  principal: Principal,
  through?: Through,
): Filter {
  const writing: Writing = { unused: new Set() };
  const resource = expressionsOf({ fields, through }, ownerField, writing);
  const ask = judge as (principal: RulePrincipal, resource: object) => unknown;
  return Condition.filterOf(ask(toRulePrincipal(principal), resource), writing);
}

/** Copies, so that changes by the function have no effect. */
export function toRulePrincipal(principal: Principal): RulePrincipal {
  if (principal.kind === 'anonymous') {
    return {
      ...{ kind: 'anonymous', id: null, roles: new Set(), scopes: new Set(), tenant: null },
      fields: noFields as AccountFields,
    };
  }
  const { id, tenant, fields } = principal;
  return {
    kind: 'authenticated',
    id,
    roles: new Set(principal.roles),
    scopes: new Set(principal.scopes),
    tenant,
    fields: fields as AccountFields,
  };
}
