/** Counts and aggregates: on reader threads, because each is a walk of all rows that match. */
import type { Party } from '../../model/fair-queue.ts';
import type { Filter } from '../../model/filter.ts';
import {
  type Aggregate,
  type AggregateQuery,
  type AggregateSql,
  aggregateOf,
  aggregateStatement,
} from '../aggregate.ts';
import type { SqlValue } from '../field-value.ts';
import { conjuncts, type Shape, type ShapedFilter, shapeFilter, type ValueSlot } from '../filter-shape.ts';
import { driveOf } from '../related-drive.ts';
import { versionText } from '../version-text.ts';
import { compileFilter, encoding, tickSql } from './compile/filter.ts';
import { namedSql, referringSql } from './compile/named-rows.ts';
import { isFound, source } from './compile/select.ts';
import { valueSql } from './compile/value.ts';
import type { PlanSources } from './compiled-shape.ts';
import { probe, wordSearchOf } from './word-search.ts';

/** Counts the undeleted rows that match a filter. */
export async function countRows(sources: Rows, filter: Filter, party: Party | undefined): Promise<number> {
  const shaped = shapeFilter(filter, encoding);
  if (shaped.shape.op === 'never') return 0;
  const { from, parameters } = await matching(sources, shaped, party);
  const { readers, tableNumber } = sources;
  const { rows } = await readers.read(`SELECT count(*) ${from}`, parameters, tableNumber, { party });
  return Number(rows[0]?.[0]);
}

const aggregateSql: AggregateSql = {
  value: (field) => valueSql(field),
  sum: (field) => `comity_sum(${valueSql(field)})`,
};

export async function aggregateRows(
  sources: Rows & Pick<PlanSources, 'relatedNumbers'>,
  query: AggregateQuery,
  party: Party | undefined,
): Promise<Aggregate> {
  const { from, parameters } = await matching(sources, shapeFilter(query.filter, encoding), party);
  const { readers, tableNumber, relatedNumbers } = sources;
  const sql = aggregateStatement(query, aggregateSql, { from });
  const { rows, version } = await readers.read(sql, parameters, tableNumber, { party, relatedNumbers });
  return aggregateOf(rows, query, aggregateSql, versionText(version));
}

type Rows = Pick<PlanSources, 'readers' | 'layout' | 'layoutOf' | 'tableNumber'>;

/**
 * All undeleted rows that match, from FROM on. An index of words finds those of a search. Where indexes lead from the rows that references
 * name to those of the table, they are walked, because a count visits all that match anyway.
 */
async function matching(
  sources: Rows,
  { shape, values }: ShapedFilter<SqlValue>,
  party: Party | undefined,
): Promise<{ readonly from: string; readonly parameters: readonly SqlValue[] }> {
  const { layout } = sources;
  const slots: ValueSlot[] = [];
  const words = wordSearchOf(layout, shape);
  const drive = words === undefined ? driveOf(layout, sources.layoutOf, shape) : undefined;
  let from: string;
  let rest: readonly Shape[];
  if (drive !== undefined) {
    from = `${referringSql(layout, drive, `(${namedSql(drive.source, slots, layout.name)})`)} AND ${tickSql}`;
    rest = drive.rest;
  } else {
    if (words !== undefined) {
      await probe(words, values, sources, party);
      slots.push({ value: words.found.at });
    }
    from = `FROM ${source(layout, words?.found)} WHERE ${tickSql} AND deleted_at IS NULL`;
    rest = conjuncts(shape).filter((part) => !isFound(part, words?.found));
  }
  const conditions = rest.map((part) => ` AND ${compileFilter(part, slots, layout.name)}`);
  return {
    from: `${from}${conditions.join('')}`,
    parameters: slots.map(({ value }) => values[value] ?? null),
  };
}
