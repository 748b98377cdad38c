/** The order of the writes of one unit, each to the final state of its row. */
import type { Collection } from '../../model/collection.ts';
import type { Field } from '../../model/field.ts';
import { equalJson } from '../../model/json-value.ts';
import { memberAt } from '../../model/matches.ts';
import { instantKey } from '../../model/timestamp.ts';
import { referencesOf } from '../../resources/document/representation.ts';
import type { NetWrite } from './overlay.ts';

/**
 * Orders the writes of a function (§4.14.5). The store checks each change against those before it, and each row changes
 * once, to its final state: so a referenced resource must be created first, a deleted one must no longer be referenced
 * by then, and a unique value must be free before another row takes it. Otherwise writes keep the order in which they
 * began.
 *
 * @returns the same writes; if they form a cycle, the store reports the conflict
 */
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
    const fieldsBefore: unknown = before === undefined ? undefined : JSON.parse(before.doc);
    const fieldsAfter: unknown = next === null || kind === 'deleted' ? undefined : JSON.parse(next.doc);
    for (const field of unique) {
      const { name } = field;
      const [left, right] = [comparedAt(fieldsBefore, field), comparedAt(fieldsAfter, field)];
      if (equalJson(left, right)) continue;
      // Any number of rows may hold null.
      if (left !== null) freed.set(JSON.stringify([table, name, left]), place);
      if (right !== null) taken.push([JSON.stringify([table, name, right]), place]);
    }
  }
  for (const [value, place] of taken) {
    const frees = freed.get(value);
    if (frees !== undefined && frees !== place) earlier[place]?.push(frees);
  }
}

/** The value of a unique field as the store compares it. */
function comparedAt(fields: unknown, { path, type }: Field): unknown {
  const value = memberAt(fields, path) ?? null;
  return type === 'timestamp' && typeof value === 'string' ? instantKey(value) : value;
}

/**
 * Sorts each write after those that must be earlier. Uses its own stack, because a chain may be as long as the unit.
 */
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
