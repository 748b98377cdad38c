/**
 * The part of aggregates that both engines share (§4.18). An engine computes raw columns for each group, with one statement: the values of the group,
 * counts, sums as exact decimals, least and greatest values. This file builds the statement around the engine's expressions, and turns its
 * rows to groups, so that rounding and types are the same on both.
 *
 * The statement reads the groups only if neither their number nor the octets of their texts pass a bound; otherwise it says which does.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OctetCache } from '../memory/octet-cache.ts';
import type { Field, Scalar } from '../model/field.ts';
import type { Filter } from '../model/filter.ts';
import { readZone, type ZoneOffsets } from '../model/period.ts';
import { instantOfKey } from '../model/timestamp.ts';
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

/** The tables of time zones that an engine has read (model/period.ts). */
export type Zones = OctetCache<ZoneOffsets>;

export function octetsOfZone({ changes }: ZoneOffsets): number {
  return 32 * (changes.length + 1);
}

export function zoneNow(zones: Zones, timeZone: string): ZoneOffsets {
  const known = zones.get(timeZone);
  if (known !== undefined) return known;
  const reading = readZone(timeZone);
  let step = reading.next();
  while (step.done !== true) step = reading.next();
  zones.set(timeZone, step.value);
  return step.value;
}

/** Steps between two turns of the event loop: 2 ms. */
const stepsPerTurn = 500;

/** The same in turns of the event loop. */
export async function zoneInTurns(zones: Zones, timeZone: string): Promise<ZoneOffsets> {
  const known = zones.get(timeZone);
  if (known !== undefined) return known;
  const reading = readZone(timeZone);
  for (let steps = 1; ; steps += 1) {
    const step = reading.next();
    if (step.done === true) {
      zones.set(timeZone, step.value);
      return step.value;
    }
    if (steps % stepsPerTurn === 0) await nextTurn();
  }
}

/** The SQL of an engine. */
export type AggregateSql = {
  readonly value: (field: Field) => string;
  /** The exact sum of a number field as text; null without a number. */
  readonly sum: (field: Field) => string;
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

/*
 * Exact sums of numbers. A number counts as the decimal that its document shows, so 0.1 + 0.2 is 0.3: the shortest decimal that reads as the
 * same double. A sum is exact however many numbers it has and in whatever order they come; it is rounded once, to a double, when it is shown.
 * Both engines therefore give the same sum: PostgreSQL adds its `numeric`, SQLite calls this class (about 60 ns a number).
 */

/** Integers of this size, and decimals scaled to millionths, are exact as doubles and have no shorter decimal of the same value. */
const digitsExact = 1e15;
const scale = 1e6;
const scaleDigits = 6;
/** An accumulator below this stays exact after one more addition. */
const accumulatedMax = Number.MAX_SAFE_INTEGER - digitsExact;

export class DecimalSum {
  #integers = 0;
  #millionths = 0;
  /** Sums that fit no accumulator, by the power of ten of their unit; at most some 650 of them. */
  readonly #byExponent = new Map<number, bigint>();

  add(value: number): void {
    if (Number.isInteger(value) && Math.abs(value) < digitsExact) {
      this.#integers += value;
      if (Math.abs(this.#integers) > accumulatedMax) {
        this.#carry(0, BigInt(this.#integers));
        this.#integers = 0;
      }
      return;
    }
    const scaled = Math.round(value * scale);
    if (Math.abs(scaled) >= digitsExact || scaled / scale !== value) {
      const { digits, exponent } = parseDecimal(String(value));
      this.#carry(exponent, digits);
      return;
    }
    this.#millionths += scaled;
    if (Math.abs(this.#millionths) > accumulatedMax) {
      this.#carry(-scaleDigits, BigInt(this.#millionths));
      this.#millionths = 0;
    }
  }

  /** The sum as a decimal without an exponent: `12`, `-0.5`. */
  toText(): string {
    const parts = [...this.#byExponent, [0, BigInt(this.#integers)] as const];
    if (this.#millionths !== 0) parts.push([-scaleDigits, BigInt(this.#millionths)]);
    const least = Math.min(...parts.map(([exponent]) => exponent));
    let digits = 0n;
    for (const [exponent, part] of parts) digits += part * 10n ** BigInt(exponent - least);
    return formatDecimal({ digits, exponent: least });
  }

  #carry(exponent: number, digits: bigint): void {
    this.#byExponent.set(exponent, (this.#byExponent.get(exponent) ?? 0n) + digits);
  }
}

/** `digits` times ten to the power of `exponent`. */
type Decimal = { readonly digits: bigint; readonly exponent: number };

function parseDecimal(text: string): Decimal {
  const [mantissa = '', power = '0'] = text.split('e');
  const point = mantissa.indexOf('.');
  const decimals = point === -1 ? 0 : mantissa.length - point - 1;
  return { digits: BigInt(mantissa.replace('.', '')), exponent: Number(power) - decimals };
}

function formatDecimal({ digits, exponent }: Decimal): string {
  if (exponent >= 0) return String(digits * 10n ** BigInt(exponent));
  const sign = digits < 0n ? '-' : '';
  const text = String(digits < 0n ? -digits : digits).padStart(1 - exponent, '0');
  return `${sign}${text.slice(0, exponent)}.${text.slice(exponent)}`;
}

/** The double nearest to a decimal; null beyond the greatest one, as JSON writes it. */
function nearestDouble(decimal: string): number | null {
  const value = Number(decimal) + 0;
  return Number.isFinite(value) ? value : null;
}

/** Digits of the quotient that decide its rounding; no double needs more. */
const quotientDigits = 800;

/** The double nearest to the mean of numbers with this sum; null for no number. */
function meanOf(sum: string, count: number): number | null {
  if (count === 0) return null;
  const { digits, exponent } = parseDecimal(sum);
  const divisor = exponent < 0 && exponent >= -scaleDigits ? 10 ** -exponent * count : count;
  // One division of two integers that are exact as doubles is rounded correctly.
  if (exponent <= 0 && exponent >= -scaleDigits && isExact(digits) && divisor <= Number.MAX_SAFE_INTEGER) {
    return Number(digits) / divisor + 0;
  }
  const parts = BigInt(count);
  const shifted = digits * 10n ** BigInt(quotientDigits);
  const quotient = shifted / parts;
  // A remainder is shown by one more digit, so that a quotient just beside the middle of two doubles is not rounded as the middle.
  const beyond = shifted % parts === 0n ? '0' : '1';
  return nearestDouble(`${quotient}${beyond}e${exponent - quotientDigits - 1}`);
}

function isExact(digits: bigint): boolean {
  return digits <= BigInt(Number.MAX_SAFE_INTEGER) && digits >= -BigInt(Number.MAX_SAFE_INTEGER);
}
