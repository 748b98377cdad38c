/**
 * A page of a list as it will be once the unit is committed: the store's rows without those that the unit writes, merged
 * with the latter by the order of the list. Filters and orders are those of the stores (test/contract compares them).
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Scalar } from '../../model/field.ts';
import { compareText, matches } from '../../model/matches.ts';
import { documentKey } from '../../store/page-of-rows.ts';
import type { ListQuery, NextRow, Page, Plan, Position } from '../../store/store.ts';

/** The rows of one table that the unit writes, by id; undefined: it removes the row. */
export type OwnRows = ReadonlyMap<string, NextRow | undefined>;

type Item = { readonly key: readonly Scalar[]; readonly doc: string };

/** @param position an offset reads everything before it */
export async function mergedPage(
  plan: Plan,
  query: ListQuery,
  own: OwnRows,
  position: Position,
  party?: Party,
): Promise<Page> {
  const { limit, bytesMax = Number.POSITIVE_INFINITY } = query;
  const backwards = position.from === 'before';
  const taking = new Taking(itemsOf(own, query, position), query, backwards);
  taking.skip = position.from === 'offset' ? position.offset : 0;
  let at: Position = position.from === 'offset' ? { from: 'start' } : position;
  let version: string;
  let isRead = false;
  do {
    const page = await plan.page(at, party);
    version = page.version;
    for (const doc of backwards ? page.docs.toReversed() : page.docs) {
      if (!own.has(String(valueAt(doc, ['id'])))) taking.take({ key: documentKey(query.sort, doc), doc });
    }
    const key = backwards ? page.first : page.last;
    isRead = !page.more || key === null;
    if (key !== null) at = { from: backwards ? 'before' : 'after', key };
  } while (!isRead && !taking.isBeyond(limit, bytesMax));
  if (isRead) taking.takeRest();
  const items = within(taking.items, limit, bytesMax);
  const more = items.length < taking.items.length;
  if (backwards) items.reverse();
  const docs = items.map(({ doc }) => doc);
  return { docs, first: items[0]?.key ?? null, last: items.at(-1)?.key ?? null, more, version };
}

/** Takes rows of the store in the order of reading, and the unit's own between them. */
class Taking {
  readonly items: Item[] = [];
  skip = 0;
  readonly #own: readonly Item[];
  readonly #query: ListQuery;
  readonly #backwards: boolean;
  #next = 0;
  /** Octets of all but the last. */
  #bytes = 0;

  constructor(own: readonly Item[], query: ListQuery, backwards: boolean) {
    this.#own = own;
    this.#query = query;
    this.#backwards = backwards;
  }

  /** A row that the page has no room for is among the items. */
  isBeyond(limit: number, bytesMax: number): boolean {
    return this.items.length > limit || this.#bytes >= bytesMax;
  }

  take(item: Item): void {
    for (;;) {
      const next = this.#own[this.#next];
      if (next === undefined || orderOf(this.#query, this.#backwards, next.key, item.key) > 0) break;
      this.#add(next);
      this.#next += 1;
    }
    this.#add(item);
  }

  takeRest(): void {
    for (; this.#next < this.#own.length; this.#next += 1) {
      const next = this.#own[this.#next];
      if (next !== undefined) this.#add(next);
    }
  }

  #add(item: Item): void {
    if (this.skip > 0) this.skip -= 1;
    else {
      this.#bytes += Buffer.byteLength(this.items.at(-1)?.doc ?? '');
      this.items.push(item);
    }
  }
}

/** The unit's own rows beyond the position that the list shows, in the order of reading. */
function itemsOf(own: OwnRows, query: ListQuery, position: Position): readonly Item[] {
  const backwards = position.from === 'before';
  const shown = [...own.values()].flatMap((row) => {
    if (row === undefined || !matches(query.filter, matchableOf(row))) return [];
    const item = { key: documentKey(query.sort, row.doc), doc: row.doc };
    const isBefore = 'key' in position && orderOf(query, backwards, item.key, position.key) <= 0;
    return isBefore ? [] : [item];
  });
  return shown.sort((one, other) => orderOf(query, backwards, one.key, other.key));
}

export function matchableOf({ doc, owner, search }: NextRow) {
  return {
    search,
    value: ({ column, path }: Parameters<Parameters<typeof matches>[1]['value']>[0]) =>
      column === 'owner' ? owner : valueAt(doc, path),
  };
}

/** Negative, 0 or positive, in the order of reading. Nulls are the least values. */
function orderOf(
  { sort }: ListQuery,
  backwards: boolean,
  one: readonly Scalar[],
  other: readonly Scalar[],
): number {
  for (const [index, { direction }] of sort.entries()) {
    const order = orderOfValues(one[index] ?? null, other[index] ?? null);
    if (order !== 0) return (direction === 'desc') === backwards ? order : -order;
  }
  return 0;
}

function orderOfValues(one: Scalar, other: Scalar): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  return Number(one) - Number(other);
}

/** A page ends with the document that reaches the octets. */
function within(items: readonly Item[], limit: number, bytesMax: number): Item[] {
  const taken: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    if (taken.length >= limit || bytes >= bytesMax) break;
    taken.push(item);
    bytes += Buffer.byteLength(item.doc);
  }
  return taken;
}
