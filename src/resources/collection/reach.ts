/**
 * The reach of a collection's queries beyond its references (§4.17): they find only the fields that the caller sees in
 * every resource, of only the resources that it may read. So a filter through a reference reveals nothing that a list of the other collection
 * would not.
 */
import { visibleTo } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { ownerField } from '../../model/field.ts';
import { allOf, type Filter, never } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import type { Target } from '../query/list-query.ts';
import { fieldNamed, type View } from './view.ts';

export type Reaches = {
  through(collection: Collection, principal: Principal): Target['through'];
  /** Identifies the hidden fields of all collections that paths lead to; empty if none are hidden. */
  mark(collection: Collection, principal: Principal): string;
  /** True if a field of a collection that paths lead to is hidden from somebody. */
  isHiding(collection: Collection): boolean;
  /** Limits the filter to the rows of other tables that the principal may read. */
  seen(filter: Filter, principal: Principal): Filter;
};

export type ReachOptions = {
  readonly collections: ReadonlyMap<string, Collection>;
  readonly viewOf: (collection: Collection) => (principal: Principal) => View;
};

export function createReaches({ collections, viewOf }: ReachOptions): Reaches {
  const hiding = new Map<Collection, readonly Collection[]>();

  function hidingOf(collection: Collection): readonly Collection[] {
    let found = hiding.get(collection);
    if (found === undefined) {
      found = reachable(collection, collections).filter(({ hidden }) => hidden.size > 0);
      hiding.set(collection, found);
    }
    return found;
  }

  function through(collection: Collection, principal: Principal): Target['through'] {
    if (collection.references.length === 0) return undefined;
    return (name) => {
      const target = targetOf(collection, name, collections);
      if (target === undefined) return undefined;
      const { fields } = viewOf(target)(principal);
      return { table: target.name, fields, through: through(target, principal) };
    };
  }

  function seen(filter: Filter, principal: Principal): Filter {
    if ('filters' in filter)
      return { op: filter.op, filters: filter.filters.map((part) => seen(part, principal)) };
    if (!('filter' in filter)) return filter;
    const within = seen(filter.filter, principal);
    if (filter.op === 'not') return { op: 'not', filter: within };
    return { ...filter, filter: allOf([visible(filter.table, principal), within]) };
  }

  function visible(table: string, principal: Principal): Filter {
    const collection = collections.get(table);
    if (collection === undefined) return never;
    return visibleTo(collection.access.read, principal, ownerField, (name) => fieldNamed(collection, name));
  }

  return {
    through,
    seen,
    isHiding: (collection) => hidingOf(collection).length > 0,
    mark: (collection, principal) =>
      hidingOf(collection)
        .map((each, at) => [at, viewOf(each)(principal).mark] as const)
        .filter(([, mark]) => mark !== '')
        .map(([at, mark]) => `;${at}${mark}`)
        .join(''),
  };
}

/** The collection that a field names by a text; no path leads through a list of references. */
function targetOf(
  collection: Collection,
  name: string,
  collections: ReadonlyMap<string, Collection>,
): Collection | undefined {
  const reference = collection.references.find(({ field }) => field === name);
  if (reference === undefined || collection.fields.get(name)?.type !== 'string') return undefined;
  return collections.get(reference.collection);
}

/** The collections that paths from this one lead to, each once. */
function reachable(from: Collection, collections: ReadonlyMap<string, Collection>): readonly Collection[] {
  const found = new Set<Collection>();
  const visit = (collection: Collection): void => {
    for (const { field } of collection.references) {
      const target = targetOf(collection, field, collections);
      if (target === undefined || found.has(target)) continue;
      found.add(target);
      visit(target);
    }
  };
  visit(from);
  return [...found];
}
