/**
 * The part of aggregates that both engines share (§4.18). An engine computes raw columns for each group, with one statement: the values of the group,
 * counts, sums as exact decimals, least and greatest values. This file builds the statement around the engine's expressions, and turns its
 * rows to groups, so that rounding and types are the same on both.
 *
 * The statement reads the groups only if neither their number nor the octets of their texts pass a bound; otherwise it says which does.
 */
import type { Field, Scalar } from '../model/field.ts';
import type { Filter } from '../model/filter.ts';
import { instantOfKey } from '../model/timestamp.ts';
import { meanOf, nearestDouble } from './decimal-sum.ts';
import { kindOf } from './field-value.ts';

/** One value of each group. `rows` counts rows, `count` values that are not null; the others are null without a value. */
export type Measure =
  | { readonly of: 'rows' }
  | { readonly of: 'count' | 'sum' | 'avg' | 'min' | 'max'; readonly field: Field };

export type AggregateQuery = {
  readonly table: string;
  readonly filter: Filter;
  /** Scalar fields whose values make a group, null among them. None: one group of all rows, even of none. */
  readonly groupBy: readonly Field[];
  readonly measures: readonly Measure[];
  readonly groupsMax: number;
  /** Octets of the texts in all groups together. */
  readonly bytesMax: number;
};

export type Group = {
  /** One value for each field of `groupBy`, as documents show it. */
  readonly key: readonly Scalar[];
  /** One value for each measure. */
  readonly values: readonly Scalar[];
};

export type Aggregate =
  /** In no particular order; `version` is the table's in their snapshot. */
  | { readonly outcome: 'groups'; readonly groups: readonly Group[]; readonly version: string }
  /** The groups pass `groupsMax` or `bytesMax`, and were not read. */
  | { readonly outcome: 'exceeded'; readonly by: 'groups' | 'octets' };

/** The SQL of an engine. */
export type AggregateSql = {
  readonly value: (field: Field) => string;
  /** The exact sum of a number field as text; null without a number. */
  readonly sum: (field: Field) => string;
};

export type AggregateStatement = {
  readonly sql: string;
  /** Columns of the statement: `total`, `octets`, then those of the groups. */
  readonly columns: readonly string[];
};

/**
 * @param from the table and the conditions: `FROM ... WHERE ...`
 * @param version an expression for the version of the table in the snapshot, if the engine reads it here
 */
export function aggregateStatement(
  query: AggregateQuery,
  engine: AggregateSql,
  { from, version = '0' }: { readonly from: string; readonly version?: string },
): string {
  const keys = query.groupBy.map(engine.value);
  const columns = columnsOf(query, engine);
  const named = [
    ...keys.map((sql, at) => `${sql} AS k${at}`),
    ...columns.map((sql, at) => `${sql} AS m${at}`),
  ];
  const grouped = keys.length === 0 ? '' : ` GROUP BY ${keys.map((_, at) => at + 1).join(', ')}`;
  const texts = [
    ...query.groupBy.flatMap((field, at) => (isText(field) ? [`k${at}`] : [])),
    ...columns.flatMap((sql, at) => (isTextColumn(query, engine, sql) ? [`m${at}`] : [])),
  ];
  const octets = texts.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ') || '0';
  const groups = `SELECT ${named.join(', ') || 'count(*)'} ${from}${grouped} LIMIT ${query.groupsMax + 1}`;
  return `WITH g AS MATERIALIZED (${groups}),
    t AS (SELECT count(*) AS total, coalesce(sum(${octets}), 0) AS octets FROM g)
    SELECT ${version}, t.total, t.octets, g.* FROM t LEFT JOIN g
    ON t.total <= ${query.groupsMax} AND t.octets <= ${query.bytesMax}`;
}

/** The columns before those of a group: version, number of groups, octets. */
const leading = 3;

/** @param rows of the statement */
export function aggregateOf(
  rows: readonly (readonly unknown[])[],
  query: AggregateQuery,
  engine: AggregateSql,
  version: string,
): Aggregate {
  const [first] = rows;
  const total = Number(first?.[1] ?? 0);
  const octets = Number(first?.[2] ?? 0);
  if (total > query.groupsMax) return { outcome: 'exceeded', by: 'groups' };
  if (octets > query.bytesMax) return { outcome: 'exceeded', by: 'octets' };
  if (total === 0) return { outcome: 'groups', groups: [], version };
  const { groupBy, measures } = query;
  const columns = columnsOf(query, engine);
  const at = leading + groupBy.length;
  const readers = measures.map((measure) => readerOf(measure, engine, columns));
  const groups = rows.map((cells) => ({
    key: groupBy.map((field, index) => shown(field, cells[leading + index])),
    values: readers.map((read) => read(cells.slice(at))),
  }));
  return { outcome: 'groups', groups, version };
}

/** The distinct expressions of all measures. */
function columnsOf({ measures }: AggregateQuery, engine: AggregateSql): readonly string[] {
  return [...new Set(measures.flatMap((measure) => expressionsOf(measure, engine)))];
}

function expressionsOf(measure: Measure, engine: AggregateSql): readonly string[] {
  switch (measure.of) {
    case 'rows':
      return ['count(*)'];
    case 'count':
      return [`count(${engine.value(measure.field)})`];
    case 'sum':
      return [engine.sum(measure.field)];
    case 'avg':
      return [engine.sum(measure.field), `count(${engine.value(measure.field)})`];
    default:
      return [`${measure.of}(${engine.value(measure.field)})`];
  }
}

function isText(field: Field): boolean {
  return kindOf(field) === 'text' || kindOf(field) === 'instant';
}

function isTextColumn({ measures }: AggregateQuery, engine: AggregateSql, sql: string): boolean {
  return measures.some(
    (measure) =>
      (measure.of === 'min' || measure.of === 'max') &&
      isText(measure.field) &&
      expressionsOf(measure, engine)[0] === sql,
  );
}

function readerOf(
  measure: Measure,
  engine: AggregateSql,
  columns: readonly string[],
): (cells: readonly unknown[]) => Scalar {
  const [one = 0, other = 0] = expressionsOf(measure, engine).map((sql) => columns.indexOf(sql));
  switch (measure.of) {
    case 'rows':
    case 'count':
      return (cells) => Number(cells[one]);
    case 'sum':
      return (cells) => (cells[one] === null ? null : nearestDouble(String(cells[one])));
    case 'avg':
      return (cells) => (cells[one] === null ? null : meanOf(String(cells[one]), Number(cells[other])));
    default:
      return (cells) => shown(measure.field, cells[one]);
  }
}

/** The value as documents show it. */
function shown(field: Field, cell: unknown): Scalar {
  if (cell === null || cell === undefined) return null;
  switch (kindOf(field)) {
    case 'boolean':
      return Number(cell) !== 0;
    case 'number':
      return Number(cell) + 0;
    case 'time':
      return new Date(Number(cell)).toISOString();
    case 'instant':
      return instantOfKey(String(cell));
    default:
      return String(cell);
  }
}
