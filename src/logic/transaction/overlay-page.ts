/**
 * A page of a list as it will be once the unit is committed: the store's rows without those that the unit writes, merged
 * with the latter by the order of the list. Filters and orders are those of the stores (test/contract compares them).
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Field, Scalar } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { compareScalars, type Matchable, matches } from '../../model/matches.ts';
import { documentKey } from '../../store/page-of-rows.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { ListQuery, NextRow, Page, Plan, Position, Store } from '../../store/store.ts';

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

function matchableOf({ doc, owner, search }: NextRow) {
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
    const order = compareScalars(one[index] ?? null, other[index] ?? null);
    if (order !== 0) return (direction === 'desc') === backwards ? order : -order;
  }
  return 0;
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

// Lists over references within a unit of a function, which may have written the rows that the references name: the store is asked for
// what names its rows, without those that the unit writes, and for what names one of the unit's own rows that passes.

/** The rows that a unit writes, by table. */
type Written = {
  readonly rowsOf: (table: string) => OwnRows;
  /** Finds a row as the unit leaves it. */
  readonly read: Store['read'];
};

export async function relatedPage(
  store: Pick<Store, 'plan'>,
  query: ListQuery,
  written: Written,
  position: Position,
  party?: Party,
): Promise<Page> {
  const rows = new RelatedRows(written);
  const decided = judged(rows, () => ({
    filter: overOwn(query.filter, written, rows),
    own: passing(written.rowsOf(query.table), query.filter, rows),
  }));
  const { filter, own } = await decided;
  const plan = store.plan({ ...query, filter });
  // What does not pass is removed from the page, and what does needs no second look.
  return mergedPage(plan, { ...query, filter: always }, own, position, party);
}

/** The same filter over the rows of the store. */
function overOwn(filter: Filter, written: Written, rows: RelatedRows): Filter {
  if ('filters' in filter)
    return { op: filter.op, filters: filter.filters.map((part) => overOwn(part, written, rows)) };
  if (!('filter' in filter)) return filter;
  const within = { ...filter, filter: overOwn(filter.filter, written, rows) };
  if (filter.op === 'not') return within;
  const own = written.rowsOf(filter.table);
  if (own.size === 0) return within;
  const passed = [...passing(own, filter.filter, rows)].flatMap(([id, row]) =>
    row === undefined ? [] : [id],
  );
  return anyOf([
    allOf([{ op: 'not', filter: among(filter.field, [...own.keys()]) }, within]),
    among(filter.field, passed),
  ]);
}

function among(field: Field, ids: readonly string[]): Filter {
  return { op: 'in', field, values: ids };
}

/** The rows; undefined in place of those that do not pass the filter. */
function passing(own: OwnRows, filter: Filter, rows: RelatedRows): OwnRows {
  return new Map(
    [...own].map(([id, row]): readonly [string, NextRow | undefined] => {
      const isKept = row !== undefined && matches(filter, matchableRow(id, row, rows));
      return [id, isKept ? row : undefined];
    }),
  );
}

function matchableRow(id: string, row: NextRow, { find }: RelatedRows): Matchable {
  const { search, value } = matchableOf(row);
  return { search, related: find, value: (field) => (field.column === 'id' ? id : value(field)) };
}
