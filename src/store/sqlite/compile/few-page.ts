/** The statements of pages under a condition on rows that references name, where few rows match and where many do (related-search.ts). */
import type { ValueSlot } from '../../filter-shape.ts';
import { headColumns } from '../../kept-row.ts';
import { anyRangeSql, pageOrder, rangesBeyond, type Slot, slotsOf } from '../../keyset.ts';
import { quoteName } from '../../quote-name.ts';
import type { Drive } from '../../related-drive.ts';
import type { Position } from '../../store.ts';
import type { Layout } from '../table-layout.ts';
import { compileFilter, tickSql } from './filter.ts';
import { namedBy, namesSql, referringSql } from './named-rows.ts';
import {
  boundsSql,
  docBytesSlot,
  fieldBoundSql,
  limitSlot,
  namedSlot,
  offsetSlot,
  orderSql,
  type PageStatement,
  pageColumns,
  plannedLimit,
  type Selection,
} from './select.ts';

/** Only documents of the page are read. @returns undefined if no row is beyond the position */
export function compileFewPage(
  { layout, sort, heads, capped }: Pick<Selection, 'layout' | 'sort' | 'heads' | 'capped'>,
  drive: Drive<Layout>,
  position: Position,
): PageStatement | undefined {
  const { ranges, ordered } = readingOf(sort, position);
  if (ranges?.length === 0) return undefined;
  const parameters: (ValueSlot | Slot)[] = capped ? [docBytesSlot, namedSlot] : [namedSlot];
  const conditions = drive.rest.map((part) => compileFilter(part, parameters, layout.name));
  if (ranges !== undefined) {
    conditions.push(anyRangeSql(ranges, fieldBoundSql));
    parameters.push(...ranges.flatMap(({ bounds }) => slotsOf(bounds)));
  }
  parameters.push(limitSlot);
  if (position.from === 'offset') parameters.push(offsetSlot);
  const limited = position.from === 'offset' ? `${plannedLimit} OFFSET ?` : plannedLimit;
  const rows = [referringSql(layout, drive, namedBy), ...conditions].join(' AND ');
  return {
    sql: `SELECT ${pageColumns(sort, capped)}${headColumns(heads)} FROM (SELECT rowid AS n ${rows} ${ordered} ${limited}) AS few CROSS JOIN ${layout.name} ON ${layout.name}.rowid = few.n`,
    parameters,
  };
}

/** Rows that are asked whether they match before a read looks how many match: some 2 ms. */
const firstMax = 1024;

/**
 * The rows that match among the first ones beyond the position, along an index over the sort: a full page if many match. They come in the
 * order of the index, because the outer loop of a CROSS JOIN reads them in that order.
 * @returns undefined if the rows beyond the position are several stretches of the index
 */
export function compileFirstRows(
  { layout, sort, heads, filter }: Pick<Selection, 'layout' | 'sort' | 'heads' | 'filter'>,
  index: string,
  position: Position,
): PageStatement | undefined {
  const first = firstRowsOf({ layout, sort, index, rowsMax: firstMax }, position);
  if (first === undefined) return undefined;
  const parameters: (ValueSlot | Slot)[] = [...first.slots];
  const condition = compileFilter(filter, parameters, layout.name);
  parameters.push(limitSlot);
  return {
    sql: `SELECT ${pageColumns(sort, false)}${headColumns(heads)} FROM ${first.sql} WHERE ${tickSql} AND ${condition} ${plannedLimit}`,
    parameters,
  };
}

/** Rows that the calling thread asks: they fill a page of 20 where a fifth of all rows match. At most 0.3 ms. */
export const firstOnCallerMax = 128;

/** The same for the calling thread: an index shows which rows are named, and documents that are too long are omitted and not looked into. */
export function compileFirstOnCaller(
  { layout, sort, heads }: Pick<Selection, 'layout' | 'sort' | 'heads'>,
  { drive, by, index }: { readonly drive: Drive<Layout>; readonly by: ValueSlot; readonly index: string },
  position: Position,
): PageStatement | undefined {
  const first = firstRowsOf({ layout, sort, index, rowsMax: firstOnCallerMax }, position);
  if (first === undefined) return undefined;
  const parameters: (ValueSlot | Slot)[] = [docBytesSlot, ...first.slots, docBytesSlot];
  const conditions = [
    namesSql(drive, by, parameters, layout.name),
    ...drive.rest.map((part) => compileFilter(part, parameters, layout.name)),
  ];
  parameters.push(limitSlot);
  return {
    sql: `SELECT ${pageColumns(sort, true)}${headColumns(heads)} FROM ${first.sql} WHERE (octet_length(doc) > ? OR (${conditions.join(' AND ')})) ${plannedLimit}`,
    parameters,
  };
}

type FirstRows = Pick<Selection, 'layout' | 'sort'> & { readonly index: string; readonly rowsMax: number };

/** The first rows beyond the position, as what a statement selects from. */
function firstRowsOf(
  { layout, sort, index, rowsMax }: FirstRows,
  position: Position,
): { readonly sql: string; readonly slots: readonly Slot[] } | undefined {
  const { ranges, ordered } = readingOf(sort, position);
  if (position.from === 'offset' || (ranges !== undefined && ranges.length !== 1)) return undefined;
  const bounds = ranges?.[0]?.bounds ?? [];
  const beyond = bounds.length === 0 ? '' : ` AND ${boundsSql(bounds)}`;
  const first = `SELECT rowid AS n FROM ${layout.name} INDEXED BY ${quoteName(index)} WHERE deleted_at IS NULL${beyond} ${ordered} LIMIT ${rowsMax}`;
  return {
    sql: `(${first}) AS first CROSS JOIN ${layout.name} ON ${layout.name}.rowid = first.n`,
    slots: slotsOf(bounds),
  };
}

/** @returns no ranges where the position is not beyond a row */
function readingOf(sort: Selection['sort'], position: Position) {
  const order = pageOrder(sort, position);
  return { ranges: rangesBeyond(order, position), ordered: orderSql(order) };
}
