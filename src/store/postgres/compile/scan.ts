/**
 * The statement of a page that no index serves, or of one so far that the walk to it is as long as a scan. It shows its values to the
 * server, which plans it for them alone.
 */
import { type OrderKey, rangesBeyond, reversed } from '../../keyset.ts';
import type { Position } from '../../store.ts';
import { anyRangeSql } from './bound.ts';
import { compileFilter } from './filter.ts';
import {
  columnsSql,
  nullsOf,
  offsetSlot,
  orderSql,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';

export function compileScan(selection: Selection, position: Position): PageStatement {
  const { layout, filter, sort, rows } = selection;
  const parameters = new Parameters(false);
  const onwards = sort.map((key, slot): OrderKey => ({ ...key, slot }));
  const order = position.from === 'before' ? reversed(onwards) : onwards;
  const conditions = ['deleted_at IS NULL'];
  if (filter.op !== 'always') conditions.push(compileFilter(filter, parameters));
  if ('key' in position) {
    const ranges = rangesBeyond(order, nullsOf(position));
    if (ranges.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
    conditions.push(anyRangeSql(ranges, parameters));
  }
  let page = `SELECT ${columnsSql(selection)} FROM ${layout.name} WHERE ${conditions.join(' AND ')}${orderSql(order)} LIMIT ${rows}`;
  if (position.from === 'offset') page += ` OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  return pageStatement(selection, page, parameters, false);
}
