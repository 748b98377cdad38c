/**
 * The references between collections, in both directions, and what a request names of them (§4.16): paths of references
 * to follow (`expand`), and references of other collections to count (`counts`).
 */
import { ruleReferencesMax } from '../../model/access-condition.ts';
import type { Collection } from '../../model/collection.ts';
import type { Field } from '../../model/field.ts';

/** A collection among the others. */
export type Relations = {
  readonly collection: Collection;
  /** The collections that its documents refer to, by the referring field. */
  readonly references: ReadonlyMap<string, Relations>;
  /**
   * The references of other collections to it, by `countAs`. A name that several of them share is left out, and there are none
   * where a field of the collection has the name of the member with the counts.
   */
  readonly counts: ReadonlyMap<string, Referring>;
};

export type Referring = { readonly from: Relations; readonly field: Field };

/** One step of a path. Names only: it is cached with the compiled query. */
export type Step = {
  /** The referring field. */
  readonly field: string;
  /** The collection that it refers to. */
  readonly collection: string;
  readonly next: readonly Step[];
};

export type Count = { readonly name: string; readonly from: string };

/** What a response adds to its documents. Steps and counts are sorted by name, so that equal ones have one text. */
export type Expansion = {
  readonly steps: readonly Step[];
  readonly counts: readonly Count[];
  /** The tables that a response depends on besides that of its documents, in a fixed order. */
  readonly tables: readonly string[];
};

export function createRelations(collections: Iterable<Collection>): ReadonlyMap<string, Relations> {
  type Open = { collection: Collection; references: Map<string, Open>; counts: Map<string, Referring> };
  const all = new Map<string, Open>();
  for (const collection of collections)
    all.set(collection.name, { collection, references: new Map(), counts: new Map() });
  for (const relations of all.values()) {
    const { references, dependants } = relations.collection;
    for (const { field, collection } of references) {
      const target = all.get(collection);
      if (target !== undefined) relations.references.set(field, target);
    }
    for (const { countAs, from, field: name } of dependants) {
      const referring = all.get(from);
      const field = referring?.collection.fields.get(name);
      const isShared = dependants.filter((other) => other.countAs === countAs).length > 1;
      const isTaken = relations.collection.fields.has('counts');
      if (referring !== undefined && field !== undefined && !isShared && !isTaken)
        relations.counts.set(countAs, { from: referring, field });
    }
  }
  return all;
}

/**
 * The tables of what the steps and counts read.
 *
 * @param judgedBy tables whose rows decide which of the documents the caller may read
 */
export function expansionTables(
  { steps, counts }: Pick<Expansion, 'steps' | 'counts'>,
  judgedBy: readonly string[],
): readonly string[] {
  const tables = new Set([...counts.map(({ from }) => from), ...judgedBy]);
  const gather = ({ collection, next }: Step): void => {
    tables.add(collection);
    next.forEach(gather);
  };
  steps.forEach(gather);
  return [...tables].sort();
}

/** The tables at which the access rules of the collection may look, through references. */
export function ruleTables(
  { collection, references }: Relations,
  depth = ruleReferencesMax,
): readonly string[] {
  if (depth === 0 || (depth === ruleReferencesMax && collection.relates !== true)) return [];
  return [...references.values()].flatMap((next) => [next.collection.name, ...ruleTables(next, depth - 1)]);
}

/** The expansion as a text, equal for equal ones. */
export function expansionText({ steps, counts }: Expansion): string {
  const pathOf = ({ field, next }: Step): string =>
    next.length === 0 ? field : `${field}(${next.map(pathOf).join()})`;
  return `${steps.map(pathOf).join()};${counts.map(({ name }) => name).join()}`;
}
