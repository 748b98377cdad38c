/**
 * The statement of a page in an order by rank (src/model/search/rank.ts). Innermost it reads the candidates, at most `rankedMax`, those
 * created last; then it computes their sort keys, and then sorts and cuts them. Long documents stay outside of the sort, as references to
 * TOAST. It shows its values to the server, whose statistics tell whether the index of words or the primary key finds the candidates sooner.
 */
import { rankedMax } from '../../../model/search/rank.ts';
import { searchIn } from '../../filter-shape.ts';
import { headColumns } from '../../kept-row.ts';
import { anyRangeSql, type Bound, boundSql, type OrderKey, pageOrder, rangesBeyond } from '../../keyset.ts';
import { rankSql } from '../../rank-sql.ts';
import type { Position } from '../../store.ts';
import { compileFilter, typeOf } from './filter.ts';
import {
  type Beginning,
  offsetSlot,
  type PageStatement,
  pageStatement,
  type Selection,
} from './page-statement.ts';
import { Parameters } from './parameters.ts';
import { valueSql } from './value.ts';

export function compileRanked(selection: Selection, position: Position): PageStatement {
  const { layout, schema, filter } = selection;
  const parameters = new Parameters(false);
  const level = { name: layout.name, schema, steered: false };
  const condition = compileFilter(filter, parameters, level);
  const candidates = `SELECT * FROM ${layout.name} WHERE deleted_at IS NULL AND ${condition} ORDER BY id DESC LIMIT ${rankedMax}`;
  return rankedStatement(selection, position, { candidates, parameters });
}

type Candidates = {
  /** A statement for them, with whole rows. */
  readonly candidates: string;
  readonly parameters: Parameters;
  /** The tables that `candidates` reads, in a statement that is prepared. */
  readonly begun?: Beginning;
};

/** @throws RangeError for a filter that requires no search by an index of words */
export function rankedStatement(
  selection: Selection,
  position: Position,
  { candidates, parameters, begun }: Candidates,
): PageStatement {
  const { filter, sort, rows, heads } = selection;
  const search = searchIn(filter);
  if (search === undefined) throw new RangeError('a sort by rank needs a search by an index of words');
  const rank = rankSql(search.terms, {
    ...{ place: 'strpos', least: 'least', greatest: 'greatest' },
    term: (at) => parameters.addValue(at + 2, 'text'),
  });
  const keys = sort.map(
    ({ field }, slot) => `${field.column === 'rank' ? rank : valueSql(field)} AS k${slot}`,
  );
  // OFFSET 0 keeps the planner from merging the levels, which would compute each rank several times.
  let page = `SELECT * FROM (SELECT doc, ${keys.join(', ')}${headColumns(heads)} FROM (${candidates}) c OFFSET 0) r`;
  const order = pageOrder(sort, position);
  const ranges = rangesBeyond(order, position);
  if (ranges?.length === 0) return pageStatement(selection, undefined, new Parameters(false), false);
  if (ranges !== undefined) {
    const mark = ({ slot, field }: Bound) => parameters.addSlot(slot, typeOf(field, true));
    page += ` WHERE ${anyRangeSql(ranges, (bound) => boundSql(bound, `k${bound.slot}`, () => mark(bound)))}`;
  }
  page += ` ORDER BY ${order.map(orderSql).join(', ')} LIMIT ${rows}`;
  if (position.from === 'offset') page += ` OFFSET ${parameters.addSlot(offsetSlot, 'bigint')}`;
  return pageStatement(selection, page, parameters, begun !== undefined, begun);
}

/** Null sorts first ascending. */
function orderSql({ slot, direction }: OrderKey): string {
  return `k${slot} ${direction === 'asc' ? 'ASC NULLS FIRST' : 'DESC NULLS LAST'}`;
}
