/**
 * Read rules that look through references at documents of other collections, prepared for streams (§6.14): which conditions such a rule
 * puts on a parent. A change of the parent that changes the answer of one may take its children out of a reader's sight, or into it.
 */
import { mayRelate, permission, visibleTo, withFields } from '../../model/access.ts';
import { ruleReferencesMax } from '../../model/access-condition.ts';
import type { Collection } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import { type Field, ownerField } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter, isRelated, negated } from '../../model/filter.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { Step } from '../../model/reference-path.ts';
import { fieldInObject, hasFormer, inFormer, ofType } from './event-filters.ts';

/** A look of a rule at the row that a reference names. */
export type Look = Extract<Filter, { readonly op: 'related' }>;

/** A condition of a rule on documents of the parent's collection, as filters over the events of those. */
export type ParentCondition = {
  readonly look: Look;
  /** The references from the child to the parent. */
  readonly path: readonly Step[];
  /** Over the representation before an update. */
  readonly former: Filter;
  /** Over the representation that the event has. */
  readonly object: Filter;
};

export type ParentRule = {
  /** The collection whose documents a reader may see by the rule. */
  readonly collection: Collection;
  /** Over the fields of the collection. */
  readonly rule: Filter;
  /** The collection of the parent. */
  readonly parent: string;
  readonly path: readonly Step[];
  /** Those of the rule on documents of the parent's collection, by this path and by others. */
  readonly conditions: readonly ParentCondition[];
  /** Those by this path. */
  readonly own: readonly ParentCondition[];
  /** True if one of them depends on further rows. */
  readonly looksFurther: boolean;
  /** False if the reader may not know the value of the reference. */
  readonly isNamed: boolean;
};

/** By the collection of the parent. */
export type ParentRules = ReadonlyMap<string, readonly ParentRule[]>;

export function parentRulesOf(collections: Iterable<Collection>, principal: Principal): ParentRules {
  const rules = new Map<string, ParentRule[]>();
  if (isAdministrator(principal)) return rules;
  for (const collection of collections) {
    const { read } = collection.access;
    if (!mayRelate(read) || permission(read, 'read', principal) !== 'depends') continue;
    const rule = visibleTo(read, principal, ownerField, (name) => {
      const field = collection.fields.get(name);
      if (field === undefined)
        throw new Error(`the rule of ${collection.name} names an unknown field ${name}`);
      return field;
    });
    const conditions = [...conditionsOf(rule, [])];
    const paths = new Map(conditions.map(({ path }) => [nameOf(path), path]));
    for (const [name, path] of paths) {
      const parent = path.at(-1)?.table ?? '';
      const ofParent = conditions.filter(({ look }) => look.table === parent);
      const isNamed = path.length === 1 && mayKnow(collection, path[0]?.field, principal);
      const known = rules.get(parent);
      const own = ofParent.filter((each) => nameOf(each.path) === name);
      const looksFurther = own.some(({ object }) => isRelated(object));
      const made = { collection, rule, parent, path, conditions: ofParent, own, looksFurther, isNamed };
      if (known === undefined) rules.set(parent, [made]);
      else known.push(made);
    }
  }
  return rules;
}

function* conditionsOf(filter: Filter, above: readonly Step[]): Generator<ParentCondition> {
  if ('filters' in filter) for (const part of filter.filters) yield* conditionsOf(part, above);
  if (!('filter' in filter)) return;
  if (filter.op === 'not') {
    yield* conditionsOf(filter.filter, above);
    return;
  }
  const path = [...above, { field: filter.field, table: filter.table }];
  const former = inFormer(filter.filter);
  yield { look: filter, path, former, object: withFields(filter.filter, fieldInObject) };
  yield* conditionsOf(filter.filter, path);
}

/** A name for a path of references, equal for equal ones. */
export function nameOf(path: readonly Step[]): string {
  return path.map(({ field, table }) => `${field.name} ${table}`).join('\n');
}

/** A hook may remove any member, so nothing of a collection with `afterRead` is named. */
function mayKnow(
  { hidden, hooks }: Collection,
  field: Pick<Field, 'name' | 'path'> | undefined,
  principal: Principal,
): boolean {
  if (field === undefined || hooks?.afterRead !== undefined) return false;
  const hiding = hidden.get(field.name) ?? hidden.get(field.path[0] ?? '');
  return hiding === undefined || permission(hiding, 'read', principal) === 'granted';
}

/** The type of the event of a child's own update, by which a reader asks for messages about it. */
export function typeOfChildren({ collection }: Pick<ParentRule, 'collection'>): string {
  return eventType(collection.name, 'updated');
}

/** Selects, for the store, the events of parents after which a condition of one of the rules has another answer. */
export function parentEvents(rules: Iterable<ParentRule>): Filter {
  return anyOf(
    [...rules].map((rule) => {
      const { own } = rule;
      const differ = own.map(({ former, object }) =>
        anyOf([allOf([former, negated(object)]), allOf([negated(former), object])]),
      );
      return anyOf([
        allOf([ofType(eventType(rule.parent, 'updated')), hasFormer, anyOf(differ)]),
        // What a deleted document referred to may have been deleted with it.
        allOf([
          ofType(eventType(rule.parent, 'deleted')),
          anyOf(own.map(({ object }) => (isRelated(object) ? always : object))),
        ]),
      ]);
    }),
  );
}

/** For each collection, the types by which readers ask for messages about documents that may depend on its documents. */
export function typesByParent(collections: Iterable<Collection>): ReadonlyMap<string, readonly string[]> {
  const all = new Map([...collections].map((collection) => [collection.name, collection] as const));
  const types = new Map<string, Set<string>>();
  for (const collection of all.values()) {
    if (!mayRelate(collection.access.read)) continue;
    let level = new Set([collection.name]);
    for (let depth = 0; depth < ruleReferencesMax; depth += 1) {
      level = new Set(
        [...level].flatMap((name) => all.get(name)?.references ?? []).map((to) => to.collection),
      );
      for (const parent of level) {
        const known = types.get(parent) ?? new Set();
        types.set(parent, known.add(typeOfChildren({ collection })));
      }
    }
  }
  return new Map([...types].map(([parent, each]) => [parent, [...each]]));
}
