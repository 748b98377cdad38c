/**
 * Where the paths of access rules lead (§5.9): the fields of each declared collection, and the collections that its references name.
 * Declarations need not be sound: those of mistakes lead nowhere.
 */
import type { Rule } from '../model/access.ts';
import { equals } from '../model/access-condition.ts';
import type { ConditionRule } from '../model/access-function.ts';
import type { Collection, CollectionDeclaration } from '../model/collection.ts';
import type { Field, Fields, Scalar } from '../model/field.ts';
import { allOf } from '../model/filter.ts';
import { distantField, isDistant, type Reach, type Through } from '../model/reference-path.ts';
import { keptInstant } from '../model/timestamp.ts';

/** @param fieldsIn undefined for a declaration without a sound schema */
export function reachesOf(
  declarations: Readonly<Record<string, CollectionDeclaration>>,
  fieldsIn: (declaration: CollectionDeclaration) => Fields | undefined,
): (collection: string) => Reach | undefined {
  const made = new Map<string, Reach | undefined>();
  const reachOf = (table: string): Reach | undefined => {
    if (made.has(table)) return made.get(table);
    const declaration = Object.hasOwn(declarations, table) ? declarations[table] : undefined;
    const fields = declaration === undefined ? undefined : fieldsIn(declaration);
    const reach =
      declaration === undefined || fields === undefined
        ? undefined
        : { table, fields, through: throughOf(declaration, fields, reachOf) };
    made.set(table, reach);
    return reach;
  };
  return reachOf;
}

function throughOf(
  { references }: CollectionDeclaration,
  fields: Fields,
  reachOf: (table: string) => Reach | undefined,
): Through | undefined {
  const declared: unknown = references;
  if (typeof declared !== 'object' || declared === null) return undefined;
  const known = declared as Readonly<Record<string, { readonly collection?: unknown } | null | undefined>>;
  return (name) => {
    const target = Object.hasOwn(known, name) ? known[name]?.collection : undefined;
    return typeof target === 'string' && fields.get(name)?.type === 'string' ? reachOf(target) : undefined;
  };
}

/** Where the references of a resolved collection lead. */
export function throughAmong(
  collections: ReadonlyMap<string, Collection>,
  { references, fields }: Collection,
): Through {
  return (name) => {
    const target = references.find(({ field }) => field === name)?.collection ?? '';
    const collection = fields.get(name)?.type === 'string' ? collections.get(target) : undefined;
    if (collection === undefined) return undefined;
    return { table: target, fields: collection.fields, through: throughAmong(collections, collection) };
  };
}

/** The field that `where` names, in the collection itself or beyond its references. */
export function fieldOfRule(name: string, reach: Reach): Field | undefined {
  return reach.fields.get(name) ?? distantField(name, reach);
}

/** The rule with its conditions, if it names instants or fields beyond references; otherwise as it was. */
export function resolveWhere(rule: Extract<Rule, { where: unknown }>, reach: Reach): Rule {
  const where = Object.entries(rule.where as Readonly<Record<string, Scalar>>);
  const conditions = where.map(([name, value]) => {
    const field = fieldOfRule(name, reach);
    if (field === undefined) throw new Error(`a rule of ${reach.table} names an unknown field ${name}`);
    const { type } = isDistant(field) ? field.end : field;
    return { field, type, value: type === 'timestamp' ? (keptInstant(String(value)) ?? value) : value };
  });
  const mayRelate = conditions.some(({ field }) => isDistant(field));
  if (!mayRelate && !conditions.some(({ type }) => type === 'timestamp')) return rule;
  const filter = allOf(
    conditions.map(({ field, value }) =>
      isDistant(field) ? equals(field.end, field.steps, value) : equals(field, [], value),
    ),
  );
  return {
    filterFor: () => filter,
    source: JSON.stringify(rule.where),
    mayRelate,
  } satisfies ConditionRule;
}
