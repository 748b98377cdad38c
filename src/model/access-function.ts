/**
 * Access rules written as a function over (principal, resource) (§5.1). The function is not asked about each resource: it is called once for
 * each kind of caller and answers with a condition, which is kept. So it has to be pure, and `allow` gives it nothing but what rules rest on.
 */
import type { Static, TObject } from 'typebox';
import { Condition, expressionsOf, type Writing } from './access-condition.ts';
import { type Fields, ownerField } from './field.ts';
import type { Filter } from './filter.ts';
import { audienceOf, type Principal, type Scope } from './principal.ts';

/** Who asks, as an access function sees it. Administrators never come here: they pass every rule. */
export type RulePrincipal = {
  readonly kind: 'anonymous' | 'authenticated';
  /** Null for who is not known. */
  readonly id: string | null;
  readonly roles: ReadonlySet<string>;
  readonly scopes: ReadonlySet<Scope>;
  readonly tenant: string | null;
};

type Values = string | number | boolean;

/** What can be asked of a field with one value. A comparison with null holds for none, `isNot(null)` for all. */
export type ScalarExpression<V extends Values> = {
  is(value: V | null): Condition;
  /** Also where the field is absent. */
  isNot(value: V | null): Condition;
  in(values: Iterable<V>): Condition;
  isAbsent(): Condition;
  isPresent(): Condition;
} & ([V] extends [boolean]
  ? unknown
  : {
      gt(value: V | null): Condition;
      gte(value: V | null): Condition;
      lt(value: V | null): Condition;
      lte(value: V | null): Condition;
    });

/** What can be asked of a list of values. */
export type ListExpression<V extends Values> = { has(value: V | null): Condition };

export type ExpressionOf<V> = [V] extends [Values]
  ? ScalarExpression<V>
  : [V] extends [readonly (infer Item)[]]
    ? ListExpression<Extract<Item, Values>>
    : { readonly [Name in keyof V]-?: ExpressionOf<NonNullable<V[Name]>> };

/** The fields of a resource, and who owns it. */
export type ResourceExpressions<Schema extends TObject> = {
  readonly [Name in keyof Static<Schema>]-?: ExpressionOf<NonNullable<Static<Schema>[Name]>>;
} & {
  readonly id: ScalarExpression<string>;
  readonly createdAt: ScalarExpression<string>;
  readonly updatedAt: ScalarExpression<string>;
  /** Id of the principal that created the resource. */
  readonly owner: ScalarExpression<string>;
};

/** A rule as it is declared. */
export type FunctionRule = {
  readonly allow: (principal: RulePrincipal, resource: never) => boolean | Condition;
};

/** The rule in a collection: what its function came to for each caller. */
export type ConditionRule = {
  /**
   * @throws whatever the function throws, and AccessFunctionError where its answer is none
   */
  readonly filterFor: (principal: Principal) => Filter;
  /** Text of the function: processes that share a store compare it. */
  readonly source: string;
};

/**
 * A rule as a function: `allow<typeof schema>((principal, resource) => ...)`.
 * @param judge gives true, false or a condition on the resource. It must be pure, and join conditions with their own `and`, `or`, `not`.
 */
export function allow<Schema extends TObject>(
  judge: (principal: RulePrincipal, resource: ResourceExpressions<Schema>) => boolean | Condition,
): FunctionRule {
  return { allow: judge };
}

/** Conditions kept of one function, each for one audience; one beyond it is asked for again. */
export const ruleAudiencesMax = 1000;

/** @param fields those of the collection that the rule is declared for */
export function createConditionRule({ allow: judge }: FunctionRule, fields: Fields): ConditionRule {
  const known = new Map<string, Filter>();
  return {
    source: String(judge),
    filterFor: (principal) => {
      const audience = audienceOf(principal);
      const kept = known.get(audience);
      if (kept !== undefined) return kept;
      const filter = callRule(judge, fields, principal);
      const oldest = known.size < ruleAudiencesMax ? undefined : known.keys().next().value;
      if (oldest !== undefined) known.delete(oldest);
      known.set(audience, filter);
      return filter;
    },
  };
}

/**
 * Calls an access function once.
 * @throws whatever it throws, and AccessFunctionError where its answer is none
 */
export function callRule(judge: FunctionRule['allow'], fields: Fields, principal: Principal): Filter {
  const writing: Writing = { unused: new Set() };
  const resource = expressionsOf(fields, ownerField, writing);
  const ask = judge as (principal: RulePrincipal, resource: object) => unknown;
  return Condition.filterOf(ask(shown(principal), resource), writing);
}

/** Copies: what the function does to its sets stays with it. */
function shown(principal: Principal): RulePrincipal {
  if (principal.kind === 'anonymous') {
    return { kind: 'anonymous', id: null, roles: new Set(), scopes: new Set(), tenant: null };
  }
  const { id, tenant } = principal;
  return {
    kind: 'authenticated',
    id,
    roles: new Set(principal.roles),
    scopes: new Set(principal.scopes),
    tenant,
  };
}
