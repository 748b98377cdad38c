/** The compiled form of list queries, cached by their shape: the ways to read pages, and the statements of each way and kind of position. */
import type { OctetCache } from '../../memory/octet-cache.ts';
import { rankedMax } from '../../model/search/rank.ts';
import { compiledStatement } from '../compiled-shapes.ts';
import type { SqlValue } from '../field-value.ts';
import { conjuncts, type ValueSlot } from '../filter-shape.ts';
import { anyRangeSql, boundSql, pageOrder, rangesBeyond, type Slot, slotsOf } from '../keyset.ts';
import { shapeOf } from '../page-of-rows.ts';
import { quoteName } from '../quote-name.ts';
import { rankSql } from '../rank-sql.ts';
import type { ListQuery, Position } from '../store.ts';
import { compileFilter, tickSql } from './compile/filter.ts';
import {
  compilePage,
  foundSlot,
  isFound,
  limitSlot,
  type PageStatement,
  type Selection,
  source,
} from './compile/select.ts';
import { valueSql } from './compile/value.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { RelatedSearch } from './related-search.ts';
import type { Snapshot } from './snapshot.ts';
import type { Layout } from './table-layout.ts';
import type { Search } from './word-search.ts';

export type PlanSources = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly layout: Layout;
  readonly layoutOf: (table: string) => Layout;
  readonly tableNumber: number;
  /** Those of the other tables that the filter looks at. */
  readonly relatedNumbers: readonly number[];
  readonly shapes: OctetCache<CompiledShape>;
};

/** Shared by queries that differ only in values and limit. */
export type CompiledShape = {
  readonly key: string;
  /** Reads pages on a reader thread. */
  readonly scan: Selection;
  /** Reads pages on the calling thread; undefined if no index serves them. */
  readonly walk: Selection | undefined;
  /** Set if an index of words finds the rows: how few and how many found rows are read. */
  readonly search: Search | undefined;
  /** Set if indexes lead from the rows that references name to those of the list. */
  readonly related?: RelatedSearch | undefined;
  /** A condition for all rows of a walk: one value, 1 if it holds. */
  readonly gate?: { readonly sql: string; readonly parameters: readonly ValueSlot[] } | undefined;
  /** No row can match. */
  readonly empty: boolean;
  readonly statements: Map<string, readonly PageStatement[]>;
};

/** One query of a shape. */
export type Run = {
  readonly sources: PlanSources;
  readonly query: ListQuery;
  readonly shape: CompiledShape;
  readonly values: readonly SqlValue[];
};

/** The statements of a page, compiled at the first position of their kind. */
export function statementsOf(
  { sources: { shapes }, shape }: Run,
  selection: Selection,
  position: Position,
  way = kindOf(selection),
  compile = () =>
    selection.ranked === undefined ? compilePage(selection, position) : compileRanked(selection, position),
): readonly PageStatement[] {
  return compiledStatement(shapes, shape, `${way}${shapeOf(selection.sort, position)}`, compile);
}

function kindOf({ whole, found, drive, timed, capped }: Selection): string {
  if (whole) return 'whole ';
  if (found !== undefined) return `found ${found.by} `;
  if (drive !== undefined) return 'driven ';
  if (timed) return 'timed ';
  return capped ? 'capped ' : '';
}

// The statement of a page in an order by rank (src/model/search/rank.ts). Innermost it reads the candidates, at most `rankedMax`, and
// computes their sort keys; then it sorts and cuts the keys, and reads only the documents of the page. The limit of the candidates also
// keeps SQLite from merging the levels, which would compute each rank several times.

function compileRanked(selection: Selection, position: Position): readonly PageStatement[] {
  const order = pageOrder(selection.sort, position);
  const ranges = rangesBeyond(order, position);
  if (ranges?.length === 0) return [];
  const parameters: (ValueSlot | Slot)[] = [];
  const keys = selection.sort.map((_, slot) => `k${slot}`).join(', ');
  const from = `(${candidatesSql(selection, parameters)})`;
  let sql = `SELECT n, ${keys} FROM ${from}`;
  if (ranges !== undefined) {
    sql += ` WHERE ${anyRangeSql(ranges, (bound) => boundSql(bound, `k${bound.slot}`, () => '?'))}`;
    parameters.push(...ranges.flatMap(({ bounds }) => slotsOf(bounds)));
  }
  const sorted = order.map(({ slot, direction }) => `k${slot} ${direction === 'asc' ? 'ASC' : 'DESC'}`);
  sql += ` ORDER BY ${sorted.join(', ')} LIMIT ?`;
  parameters.push(limitSlot);
  if (position.from === 'offset') {
    sql += ' OFFSET ?';
    parameters.push({ slot: 0 });
  }
  const ofRow = (column: string) => `(SELECT ${column} FROM ${selection.layout.name} WHERE rowid = p.n)`;
  const heads = selection.heads ? `, ${ofRow('owner')}, ${ofRow('rev')}` : '';
  return [{ sql: `SELECT ${ofRow('doc')}, ${keys}${heads} FROM (${sql}) AS p`, parameters }];
}

/**
 * With `found`: what the index of words finds, the rows stored last before others. Without: rows along the index of the service, those
 * created last before others, each asked for the words.
 */
function candidatesSql(
  { layout, filter, sort, found, service, ranked = [] }: Selection,
  parameters: (ValueSlot | Slot)[],
): string {
  const rank = rankSql(ranked, {
    ...{ place: 'instr', least: 'min', greatest: 'max' },
    term(at) {
      parameters.push({ value: at + 1 });
      return '?';
    },
  });
  const { name } = layout;
  const keys = sort.map(
    ({ field }, slot) => `${field.column === 'rank' ? rank : valueSql(field, `${name}.`)} AS k${slot}`,
  );
  const conditions = [tickSql, 'deleted_at IS NULL'];
  let from = name;
  let order = 'id';
  if (found === undefined) from += service === undefined ? '' : ` INDEXED BY ${quoteName(service.index)}`;
  else {
    from = source(layout, found);
    parameters.push(foundSlot(found));
    order = 'found.n';
  }
  for (const part of conjuncts(filter)) {
    if (part.op === 'always' || isFound(part, found)) continue;
    conditions.push(compileFilter(part, parameters, name));
  }
  return `SELECT ${name}.rowid AS n, ${keys.join(', ')} FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY ${order} DESC LIMIT ${rankedMax}`;
}
