/**
 * Lists over references within a unit of a function, which may have written the rows that the references name: the store is asked for what
 * names its rows, without those that the unit writes, and for what names one of the unit's own rows that passes.
 */
import type { Party } from '../../model/fair-queue.ts';
import type { Field } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
import { type Matchable, matches } from '../../model/matches.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import type { ListQuery, NextRow, Page, Position, Store } from '../../store/store.ts';
import { matchableOf, mergedPage, type OwnRows } from './merged-page.ts';

/** The rows that a unit writes, by table. */
export type Written = {
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
