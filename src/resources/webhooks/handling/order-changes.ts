/**
 * The order in which the writes of a handler are made (§4.14.5). The store checks each change against those before it, and each row is changed
 * once, to what it is in the end: so what is referred to is made first, what is deleted is no longer named by then, and a unique value
 * is free before another takes it. Otherwise they stay in the order in which they were begun.
 */
import type { Collection } from '../../../model/collection.ts';
import { memberAt } from '../../../model/matches.ts';
import { equalJson } from '../../document/json-value.ts';
import { referencesOf } from '../../document/references.ts';
import type { NetWrite } from './overlay.ts';

/** @returns the same writes; where they wait for each other in a ring the store says what is wrong */
export function orderChanges(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
): readonly NetWrite[] {
  if (writes.length < 2) return writes;
  const earlier = writes.map((): number[] => []);
  addReferences(writes, collections, earlier);
  addUniques(writes, collections, earlier);
  return sorted(writes, earlier);
}

function addReferences(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const created = placesOf(writes, 'created');
  const deleted = placesOf(writes, 'deleted');
  for (const [place, { table, next, before }] of writes.entries()) {
    const collection = collections.get(table);
    if (collection === undefined || collection.references.length === 0) continue;
    const target = (field: string) =>
      collection.references.find((reference) => reference.field === field)?.collection ?? '';
    if (created.size > 0) {
      for (const { field, id } of next?.references ?? []) {
        const maker = created.get(`${target(field)} ${id}`);
        if (maker !== undefined && maker !== place) earlier[place]?.push(maker);
      }
    }
    if (deleted.size === 0 || before === undefined) continue;
    const fields = JSON.parse(before.doc) as Readonly<Record<string, unknown>>;
    for (const { field, id } of referencesOf(collection, fields)) {
      const remover = deleted.get(`${target(field)} ${id}`);
      if (remover !== undefined && remover !== place) earlier[remover]?.push(place);
    }
  }
}

function placesOf(writes: readonly NetWrite[], kind: NetWrite['kind']): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [place, write] of writes.entries()) {
    if (write.kind === kind) places.set(`${write.table} ${write.id}`, place);
  }
  return places;
}

function addUniques(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const freed = new Map<string, number>();
  const taken: (readonly [value: string, place: number])[] = [];
  for (const [place, { table, before, next, kind }] of writes.entries()) {
    const unique = collections.get(table)?.unique ?? [];
    if (unique.length === 0) continue;
    const stood: unknown = before === undefined ? undefined : JSON.parse(before.doc);
    const stands: unknown = next === null || kind === 'deleted' ? undefined : JSON.parse(next.doc);
    for (const { name, path } of unique) {
      const [left, right] = [memberAt(stood, path) ?? null, memberAt(stands, path) ?? null];
      if (equalJson(left, right)) continue;
      // Null may stand in any number of rows.
      if (left !== null) freed.set(JSON.stringify([table, name, left]), place);
      if (right !== null) taken.push([JSON.stringify([table, name, right]), place]);
    }
  }
  for (const [value, place] of taken) {
    const frees = freed.get(value);
    if (frees !== undefined && frees !== place) earlier[place]?.push(frees);
  }
}

/** Each write after all that are earlier. By a stack of its own: a chain may be as long as the unit. */
function sorted(writes: readonly NetWrite[], earlier: readonly number[][]): readonly NetWrite[] {
  const order: NetWrite[] = [];
  const state = new Uint8Array(writes.length);
  for (let start = 0; start < writes.length; start += 1) {
    const stack = [start];
    while (stack.length > 0) {
      const place = stack.at(-1) ?? 0;
      const left = state[place] === 0 ? (earlier[place] ?? []).filter((other) => state[other] === 0) : [];
      if (state[place] === 0) state[place] = 1;
      if (left.length > 0) {
        stack.push(...left);
        continue;
      }
      stack.pop();
      const write = writes[place];
      if (state[place] !== 2 && write !== undefined) order.push(write);
      state[place] = 2;
    }
  }
  return order;
}
