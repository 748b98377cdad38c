/**
 * References of an import by a unique key of the document that they name (§4.19.13): `{"categoryId": {"slug": "tea"}}`, or a column
 * `categoryId.slug`. They become ids before the record is checked, by what the caller may read: a document that is hidden from it is
 * one that does not exist, and so is a key with a hidden member.
 */
import { permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { type Field, idField, type Scalar } from '../../model/field.ts';
import { allOf, byId, equals, type Filter } from '../../model/filter.ts';
import { type Principal, tenantOf } from '../../model/principal.ts';
import type { KeysOf, ReferenceKey, Resolved } from '../document/import-records.ts';
import { readValue } from '../query/conditions.ts';
import type { Served, Serving } from './served-collection.ts';

/** Reads that are under way together. */
const readsMax = 16;

type Shared = Pick<Serving, 'collections' | 'accounts' | 'reaches'>;

/** The keys by which a reference of the collection may name its document: entries of `unique`, and the id. */
export function keysOfReferences(collection: Collection, serving: Shared, principal: Principal): KeysOf {
  return (name) => targetOf(collection, name, serving, principal)?.keys.map(({ fields }) => fields);
}

type Key = {
  readonly fields: readonly Field[];
  /** The caller's own tenant, which the key has besides. */
  readonly pinned?: Filter;
};

type Target = { readonly field: Field; readonly table: string; readonly keys: readonly Key[] };

function targetOf(
  collection: Collection,
  name: string,
  { collections, accounts, reaches }: Shared,
  principal: Principal,
): Target | undefined {
  const field = collection.fields.get(name);
  const reach = reaches.through(collection, principal)?.(name);
  if (field === undefined || reach === undefined) return undefined;
  const target =
    collections.get(reach.table) ?? (accounts?.users.name === reach.table ? accounts.users : undefined);
  if (target === undefined || permission(target.access.read, 'read', principal) === 'denied')
    return undefined;
  const seen = target.unique.filter((fields) => fields.every((each) => reach.fields.has(each.name)));
  const keys = [[idField], ...seen].flatMap((fields): readonly Key[] => [
    { fields },
    ...withoutTenant(fields, target, principal),
  ]);
  return { field, table: reach.table, keys };
}

/** A caller of a tenant names documents of its own. */
function withoutTenant(
  fields: readonly Field[],
  { tenantField }: Collection,
  principal: Principal,
): readonly Key[] {
  const tenant = tenantOf(principal);
  const own = fields.find(({ name }) => name === tenantField);
  if (own === undefined || tenant === null || fields.length === 1) return [];
  return [{ fields: fields.filter((each) => each !== own), pinned: equals(own, tenant) }];
}

/** Finds the documents that the keys name. */
export async function findReferences(
  served: Served,
  { principal, party }: { readonly principal: Principal; readonly party: string },
  keys: ReadonlyMap<string, ReferenceKey>,
): Promise<ReadonlyMap<string, Resolved>> {
  const { collection, serving } = served;
  const names = new Set([...keys.values()].map(({ field }) => field));
  const targets = new Map([...names].map((name) => [name, targetOf(collection, name, serving, principal)]));
  const found = new Map<string, Resolved>();
  const wanted = [...keys];
  for (let at = 0; at < wanted.length; at += readsMax) {
    await served.turns.next();
    const some = wanted.slice(at, at + readsMax);
    const resolved = await Promise.all(
      some.map(([, { field, members }]) =>
        findReference(served, { principal, party }, targets.get(field), members),
      ),
    );
    for (const [index, [text]] of some.entries()) {
      const one = resolved[index];
      if (one !== undefined) found.set(text, one);
    }
  }
  return found;
}

async function findReference(
  { serving, store }: Served,
  { principal, party }: { readonly principal: Principal; readonly party: string },
  target: Target | undefined,
  members: ReferenceKey['members'],
): Promise<Resolved> {
  const names = Object.keys(members);
  const key = target?.keys.find(
    ({ fields }) => fields.length === names.length && fields.every((each) => names.includes(each.name)),
  );
  if (target === undefined || key === undefined) {
    const known = target?.keys.map(({ fields }) => fields.map((each) => each.name).join(' with ')) ?? [];
    const message = `names a document by its id${known.length === 0 ? '' : `, or in an import by ${known.join(', or by ')}`}`;
    return { code: 'validation_failed', message };
  }
  const parts: Filter[] = key.pinned === undefined ? [] : [key.pinned];
  for (const each of key.fields) {
    const value = readValue(each, members[each.name]);
    if (value === undefined) {
      const message = `${each.name} of ${target.table} cannot be ${shown(members[each.name])}`;
      return { code: 'validation_failed', message };
    }
    parts.push(equals(each, value));
  }
  const { field, table } = target;
  const related = serving.reaches.seen({ op: 'related', field, table, filter: allOf(parts) }, principal);
  if (related.op !== 'related') throw new Error('what may be seen of a table is a filter of the table');
  const plan = store.plan({ table, filter: related.filter, sort: byId, limit: 1 });
  const { docs } = await plan.page({ from: 'start' }, party);
  const [doc] = docs;
  if (doc !== undefined) return { id: String((JSON.parse(doc) as { readonly id: string }).id) };
  const values = names.map((each) => `${each} ${shown(members[each])}`).join(' and ');
  return { code: 'reference_missing', message: `no document of ${table} has ${values}` };
}

const shownCharactersMax = 64;

function shown(value: unknown): string {
  const text = JSON.stringify(value as Scalar) ?? 'nothing';
  return text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`;
}
