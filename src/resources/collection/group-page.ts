/**
 * A page of the groups of an aggregate query (§4.18). The store computes all groups of the query, up to a bound; this
 * file keeps those that `having` keeps, orders them, and takes the page. Both engines thus filter and order alike.
 * A page at a key costs the whole query again, because a group is known only when all its resources are read.
 */
import type { Party } from '../../model/fair-queue.ts';
import type { Field, Scalar } from '../../model/field.ts';
import type { Filter, Sort } from '../../model/filter.ts';
import { compareText, matches } from '../../model/matches.ts';
import { instantKey } from '../../model/timestamp.ts';
import type { Group } from '../../store/aggregate.ts';
import type { Page, Position, Store } from '../../store/store.ts';
import type { Aggregation, Asked } from '../query/list-query.ts';

/** The groups of a query pass a bound; the response is 422. */
export class GroupsExceeded extends Error {
  override readonly name = 'GroupsExceeded';
}

export type GroupPage = Page & {
  /** The number of groups on all pages. */
  readonly total: number;
};

export type GroupReading = {
  readonly table: string;
  /** With the resources that the caller may read. */
  readonly filter: Filter;
  readonly bytesMax: number;
  readonly party: Party;
};

type Cells = readonly Scalar[];

/** @throws GroupsExceeded */
export async function readGroups(
  store: Store,
  asked: Pick<Asked, 'sort' | 'limit'> & { readonly aggregation: Aggregation },
  position: Position,
  { table, filter, bytesMax, party }: GroupReading,
): Promise<GroupPage> {
  const { aggregation, sort, limit } = asked;
  const { groupBy, measures, groupsMax } = aggregation;
  const found = await store.aggregate({ table, filter, groupBy, measures, groupsMax, bytesMax }, party);
  if (found.outcome === 'exceeded') {
    throw new GroupsExceeded(
      found.by === 'groups'
        ? `the query has more than ${groupsMax} groups; filter more, or group by another field`
        : `the texts of all groups have more than ${bytesMax} octets; filter more, or group by another field`,
    );
  }
  const columns = new Map(aggregation.columns.map((column, at) => [column.path[0], at]));
  const at = ({ path }: Field): number => columns.get(path[0]) ?? -1;
  const rows = kept(found.groups, aggregation.having, at);
  const order = orderOf(sort, at);
  rows.sort(order.compare);
  const { shown, more } = pageAt(rows, position, limit, order);
  return {
    docs: shown.map(writer(aggregation.shown, at)),
    first: order.keyOf(shown[0]),
    last: order.keyOf(shown.at(-1)),
    more,
    version: found.version,
    total: rows.length,
  };
}

function kept(groups: readonly Group[], having: Filter, at: (field: Field) => number): Cells[] {
  const rows = groups.map(({ key, values }): Cells => [...key, ...values]);
  if (having.op === 'always') return rows;
  return rows.filter((cells) => matches(having, { value: (field) => cells[at(field)], search: null }));
}

type Order = {
  readonly compare: (one: Cells, other: Cells) => number;
  /** Compares a row with the key of a position. */
  readonly compareKey: (row: Cells, key: Cells) => number;
  readonly keyOf: (row: Cells | undefined) => Cells | null;
};

function orderOf(sort: readonly Sort[], at: (field: Field) => number): Order {
  const keys = sort.map(({ field, direction }) => ({
    at: at(field),
    sign: direction === 'asc' ? 1 : -1,
    compare: field.type === 'timestamp' ? compareInstants : compareScalars,
  }));
  const keyOf = (row: Cells): Cells => keys.map((key) => row[key.at] ?? null);
  return {
    compare(one, other) {
      for (const key of keys) {
        const order = key.compare(one[key.at] ?? null, other[key.at] ?? null);
        if (order !== 0) return key.sign * order;
      }
      return 0;
    },
    compareKey(row, position) {
      for (const [index, key] of keys.entries()) {
        const order = key.compare(row[key.at] ?? null, position[index] ?? null);
        if (order !== 0) return key.sign * order;
      }
      return 0;
    },
    keyOf: (row) => (row === undefined ? null : keyOf(row)),
  };
}

function compareInstants(one: Scalar, other: Scalar): number {
  return typeof one === 'string' && typeof other === 'string'
    ? compareText(instantKey(one), instantKey(other))
    : compareScalars(one, other);
}

/** Null sorts before every value, false before true, texts by code point. */
function compareScalars(one: Scalar, other: Scalar): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  return Number(one) - Number(other);
}

function pageAt(
  rows: readonly Cells[],
  position: Position,
  limit: number,
  { compareKey }: Order,
): { readonly shown: readonly Cells[]; readonly more: boolean } {
  if (position.from === 'before') {
    const before = rows.filter((row) => compareKey(row, position.key) < 0);
    return { shown: before.slice(-limit), more: before.length > limit };
  }
  const rest =
    position.from === 'after'
      ? rows.filter((row) => compareKey(row, position.key) > 0)
      : rows.slice(position.from === 'offset' ? position.offset : 0);
  return { shown: rest.slice(0, limit), more: rest.length > limit };
}

function writer(shown: readonly Field[], at: (field: Field) => number): (row: Cells) => string {
  const columns = shown.map((field) => ({ name: JSON.stringify(field.name), at: at(field) }));
  return (row) =>
    `{${columns.map((column) => `${column.name}:${JSON.stringify(row[column.at])}`).join(',')}}`;
}
