/**
 * The statement that reads one page. Rows come as (doc, sort keys...); one row more than the page holds is asked for,
 * to know whether rows remain.
 */
import type { Scalar } from '../../../model/field.ts';
import type { Filter, Sort } from '../../../model/filter.ts';
import type { Position } from '../../store.ts';
import { quoteName } from '../identifier.ts';
import type { Layout } from '../layout.ts';
import { compileFilter } from './filter.ts';
import { type OrderKey, type Range, rangesBeyond, reversed, type Slot } from './keyset.ts';
import type { Service } from './serve.ts';
import { keyParameter, keySql, type SqlValue, valueSql } from './value.ts';

/** One text serves every position of the same shape; `bind` puts in the values of one. */
export type PageStatement = { readonly sql: string; readonly parameters: readonly (SqlValue | Slot)[] };

export type Selection = {
  readonly layout: Layout;
  readonly filter: Filter;
  readonly sort: readonly Sort[];
  readonly limit: number;
  readonly service: Service | undefined;
  /** Whether the statement runs on a reader thread, where `comity_tick` ends it when its time is over. */
  readonly timed: boolean;
};

/** True for a row, but for one row in 1024, where it calls back to see whether the time of the statement is over. */
export const tickSql = '((rowid & 1023) OR comity_tick())';

/**
 * What the text of a page's statement depends on besides the selection.
 * @throws RangeError when the key has not one value per sort key
 */
export function shapeOf(sort: readonly Sort[], position: Position): string {
  if (position.from === 'start' || position.from === 'offset') return position.from;
  if (position.key.length !== sort.length) {
    throw new RangeError(
      `a position of ${position.key.length} values cannot stand in a sort by ${sort.length} keys`,
    );
  }
  let shape: string = position.from;
  for (const value of position.key) shape += value === null ? '0' : '1';
  return shape;
}

/** The statement for every position of the same shape as this one. */
export function compilePage(selection: Selection, position: Position): PageStatement {
  const order = selection.service?.order ?? selection.sort.map((key, slot) => ({ ...key, slot }));
  if (position.from === 'start') return compileRange(selection, order, undefined);
  if (position.from === 'offset') {
    const { sql, parameters } = compileRange(selection, order, undefined);
    return { sql: `${sql} OFFSET ?`, parameters: [...parameters, { slot: 0 }] };
  }
  const onwards = position.from === 'after' ? order : reversed(order);
  const ranges = rangesBeyond(
    onwards,
    position.key.map((value) => value === null),
  );
  if (ranges.length === 0) return { sql: 'SELECT 1 WHERE 0', parameters: [] };
  if (selection.service === undefined || selection.service.oneRow || ranges.length === 1) {
    const condition = ranges.map((range) => `(${range.condition})`).join(' OR ');
    return compileRange(selection, onwards, {
      condition: `(${condition})`,
      slots: ranges.flatMap((range) => range.slots),
    });
  }
  // The ranges follow each other in sort order and SQLite runs the arms of UNION ALL in turn, stopping
  // at the limit: each arm is one walk of the index, where an OR would lose the order.
  const arms = ranges.map((range) => compileRange(selection, range.order, range));
  return {
    sql: `${arms.map((arm) => `SELECT * FROM (${arm.sql})`).join(' UNION ALL ')} LIMIT ?`,
    parameters: [...arms.flatMap((arm) => arm.parameters), selection.limit + 1],
  };
}

/** The values to run the statement with at this position. */
export function bind(statement: PageStatement, sort: readonly Sort[], position: Position): SqlValue[] {
  const key: readonly Scalar[] =
    position.from === 'offset' ? [position.offset] : position.from === 'start' ? [] : position.key;
  return statement.parameters.map((parameter) => {
    if (typeof parameter !== 'object' || parameter === null) return parameter;
    const value = key[parameter.slot] ?? null;
    const field = position.from === 'offset' ? undefined : sort[parameter.slot]?.field;
    return field === undefined ? Number(value) : keyParameter(field, value);
  });
}

function compileRange(
  { layout, filter, limit, service, timed, sort }: Selection,
  order: readonly OrderKey[],
  range: Pick<Range, 'condition' | 'slots'> | undefined,
): PageStatement {
  const values: SqlValue[] = [];
  const conditions = ['deleted_at IS NULL'];
  if (filter.op !== 'always') conditions.push(compileFilter(filter, values));
  const parameters: (SqlValue | Slot)[] = values;
  if (range !== undefined) {
    conditions.push(range.condition);
    parameters.push(...range.slots);
  }
  if (timed) conditions.push(tickSql);
  parameters.push(limit + 1);
  const keys = sort.map((key) => keySql(key.field)).join(', ');
  const terms = order.map((key) => `${valueSql(key.field)} ${key.direction === 'asc' ? 'ASC' : 'DESC'}`);
  const ordered = terms.length === 0 ? '' : ` ORDER BY ${terms.join(', ')}`;
  const indexed = service === undefined ? '' : ` INDEXED BY ${quoteName(service.index)}`;
  return {
    sql: `SELECT doc, ${keys} FROM ${layout.name}${indexed} WHERE ${conditions.join(' AND ')}${ordered} LIMIT ?`,
    parameters,
  };
}
