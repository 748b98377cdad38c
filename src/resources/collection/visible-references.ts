/**
 * The references between collections as one caller may see them: the fields beyond references that queries may name
 * (§4.17), the resources that prevent a deletion (§4.7.3), and the targets that a change may name (§5.1). They reveal
 * nothing that a list of the other collection would not.
 */
import { permission, permits } from '../../model/access.ts';
import { type Collection, fieldNamed, visibleWhere } from '../../model/collection.ts';
import { allOf, type Filter, never } from '../../model/filter.ts';
import type { Principal } from '../../model/principal.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { MaybePromise, NextRow, Row, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import type { HeldReference } from '../document/representation.ts';
import type { Target } from '../query/list-query.ts';
import { subjectOf, type View, visibleWithField } from './view.ts';

/** Resources of a table that refer to another one, as the store counted them. */
export type Dependence = {
  readonly table: string;
  readonly field: string;
  readonly id: string;
  readonly count: number;
};

export type Reaches = {
  through(collection: Collection, principal: Principal): Target['through'];
  /** Identifies the hidden fields of all collections that paths lead to; empty if none are hidden. */
  mark(collection: Collection, principal: Principal): string;
  /** True if a field of a collection that paths lead to is hidden from somebody. */
  isHiding(collection: Collection): boolean;
  /** Limits the filter to the rows of other tables that the principal may read. */
  seen(filter: Filter, principal: Principal): Filter;
};

export function createReaches(
  collections: ReadonlyMap<string, Collection>,
  viewOf: (collection: Collection) => (principal: Principal) => View,
): Reaches {
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
    return visibleWhere(collection, collection.access.read, principal);
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

/**
 * Finds a reference to a resource that the principal may not see (§5.1). Such a change is refused as if the target did
 * not exist: the response would otherwise reveal it, and the reference would prevent its owner from deleting it.
 * Unchanged references are not checked again.
 *
 * @returns the field of such a reference
 */
export function unseenReference(
  store: Store,
  collections: ReadonlyMap<string, Collection>,
  collection: Collection,
  principal: Principal,
  { before, next }: { readonly before: Row | undefined; readonly next: NextRow | null },
): MaybePromise<string | undefined> {
  if (next === null) return undefined;
  const from = (index: number): MaybePromise<string | undefined> => {
    for (let at = index; at < next.references.length; at += 1) {
      const { field, id } = next.references[at] as HeldReference;
      const reference = collection.references.find((each) => each.field === field);
      const target = collections.get(reference?.collection ?? '');
      if (target === undefined || permission(target.access.read, 'read', principal) === 'granted') continue;
      if (before !== undefined && subjectOf(before).member(field) === id) continue;
      return whenKnown(store.read(target.name, id), (row) => {
        if (row === undefined) return from(at + 1);
        const rows = new RelatedRows(store);
        const subject = subjectOf(row, rows);
        const isSeen = judged(rows, () => permits(target.access.read, 'read', principal, subject));
        return whenKnown(isSeen, (seen) => (seen ? from(at + 1) : field));
      });
    }
    return undefined;
  };
  return from(0);
}

// Counts the resources that prevent a deletion, as far as the principal may know (§4.7.3, §5.1): only those that it may see, and whose
// referring field it may see. All of them prevent the deletion.

export function countDependants(
  store: Store,
  collections: ReadonlyMap<string, Collection>,
  { table, field: name, id, count }: Dependence,
  principal: Principal,
): MaybePromise<number> {
  const collection = collections.get(table);
  // Internal tables are not revealed to clients.
  if (collection === undefined) return 0;
  const field = fieldNamed(collection, name);
  const visible = visibleWithField(collection, field, principal);
  if (visible.op === 'always') return count;
  const names: Filter = { op: 'eq', field, value: id };
  return visible.op === 'never' ? 0 : store.count(table, allOf([visible, names]));
}
