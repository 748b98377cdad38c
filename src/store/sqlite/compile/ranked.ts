/**
 * The statement of a page in an order by rank (src/model/search/rank.ts). Innermost it reads the candidates, at most `rankedMax`, and
 * computes their sort keys; then it sorts and cuts the keys, and reads only the documents of the page. The limit of the candidates also
 * keeps SQLite from merging the levels, which would compute each rank several times.
 */
import { rankedMax } from '../../../model/search/rank.ts';
import { conjuncts, type ValueSlot } from '../../filter-shape.ts';
import { type Bound, rangesBeyond, reversed, type Slot, slotsOf } from '../../keyset.ts';
import { quoteName } from '../../quote-name.ts';
import { rankSql } from '../../rank-sql.ts';
import type { Position } from '../../store.ts';
import { compileFilter, tickSql } from './filter.ts';
import { foundSlot, isFound, limitSlot, type PageStatement, type Selection, source } from './select.ts';
import { valueSql } from './value.ts';

export function compileRanked(selection: Selection, position: Position): readonly PageStatement[] {
  const onwards = selection.sort.map((key, slot) => ({ ...key, slot }));
  const order = position.from === 'before' ? reversed(onwards) : onwards;
  const parameters: (ValueSlot | Slot)[] = [];
  const keys = selection.sort.map((_, slot) => `k${slot}`).join(', ');
  const from = `(${candidatesSql(selection, parameters)})`;
  let sql = `SELECT n, ${keys} FROM ${from}`;
  if ('key' in position) {
    const ranges = rangesBeyond(
      order,
      position.key.map((value) => value === null),
    );
    if (ranges.length === 0) return [];
    sql += ` WHERE ${ranges.map(({ bounds }) => `(${bounds.map(boundSql).join(' AND ')})`).join(' OR ')}`;
    parameters.push(...ranges.flatMap(({ bounds }) => slotsOf(bounds)));
  }
  const sorted = order.map(({ slot, direction }) => `k${slot} ${direction === 'asc' ? 'ASC' : 'DESC'}`);
  sql += ` ORDER BY ${sorted.join(', ')} LIMIT ?`;
  parameters.push(limitSlot);
  if (position.from === 'offset') {
    sql += ' OFFSET ?';
    parameters.push({ slot: 0 });
  }
  const doc = `(SELECT doc FROM ${selection.layout.name} WHERE rowid = p.n)`;
  return [{ sql: `SELECT ${doc}, ${keys} FROM (${sql}) AS p`, parameters }];
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

function boundSql({ slot, is }: Bound): string {
  switch (is) {
    case 'equal':
      return `k${slot} = ?`;
    case 'above':
      return `k${slot} > ?`;
    case 'below':
      return `k${slot} < ?`;
    case 'null':
      return `k${slot} IS NULL`;
    case 'not-null':
      return `k${slot} IS NOT NULL`;
  }
}
