/**
 * The expressions that statements are made of: values of fields, parameters, conditions that steer the planner, words of the search text.
 *
 * The SQL value of a field is the value at its path if it has the field's type, otherwise null. A strict JSON path with its errors silenced
 * (no value, a member of an array) selects it, so that each value costs one parse of the document. Numbers are doubles as in JSON.parse,
 * texts compare by code point (`COLLATE "C"` in a UTF-8 database). Filters, sorts and indexes use the same text, by which PostgreSQL
 * recognises an expression index.
 */
import type { Field } from '../../../model/field.ts';
import { localSecondsMax, localSecondsMin, type Period, type ZoneOffsets } from '../../../model/period.ts';
import { columnNames, kindOf } from '../../field-value.ts';
import type { ValueSlot } from '../../filter-shape.ts';
import type { Slot } from '../../page-of-rows.ts';
import { quoteName } from '../../sql-text.ts';
import type { Bindable } from '../connection/connection.ts';

/**
 * @param of the table, with a dot, where a statement reads several
 * @param schema not quoted, of a field that may be folded
 */
export function valueSql({ folded, period, ...field }: Field, of = '', schema?: string): string {
  if (period !== undefined) throw new TypeError(`only aggregates take the ${period.unit} of ${field.name}`);
  if (folded === true) {
    if (schema === undefined) throw new TypeError(`${field.name} is compared with its case here`);
    return `${quoteName(schema)}.comity_fold(${valueSql(field, of)})`;
  }
  if (field.column !== undefined) return `${of}${columnNames[field.column]}`;
  switch (kindOf(field)) {
    case 'boolean':
      return `(${selected(field, ' ? (@.type() == "boolean")', of)}::boolean::int)`;
    case 'number':
      return `(${selected(field, ' ? (@.type() == "number")', of)}::float8)`;
    case 'text':
    case 'time':
      return `((${selected(field, ' ? (@.type() == "string")', of)} #>> '{}') COLLATE "C")`;
    case 'instant':
      return `(rtrim(${selected(field, ' ? (@.type() == "string")', of)} #>> '{}', '0Z') COLLATE "C")`;
    case 'none':
      return selected(field, ' ? (@ != null)', of);
  }
}

/** The number of a field as the decimal that the document shows. */
export function decimalSql(field: Field): string {
  if (field.column !== undefined) return `${columnNames[field.column]}::numeric`;
  return `(${selected(field, ' ? (@.type() == "number")')}::numeric)`;
}

/**
 * The first day of the period that has the time, as `periodOf` of model/period.ts computes it: by the offsets of the zone, so that the zones of
 * the server have no part in it. The subselect computes the seconds once.
 */
export function periodSql(field: Field, { unit }: Period, { changes, offsets }: ZoneOffsets): string {
  const seconds =
    field.column === undefined
      ? `floor(extract(epoch FROM ${timestampSql(valueSql({ ...field, type: 'string' }))}))`
      : `floor(${columnNames[field.column]} / 1000.0)`;
  const place = changes.length === 0 ? '0' : `width_bucket(s, '{${changes.join()}}'::bigint[])`;
  const local = `least(greatest(s + ('{${offsets.join()}}'::int[])[${place} + 1], ${localSecondsMin}), ${localSecondsMax})`;
  // `least` and `greatest` leave nulls out.
  const first = `date_trunc('${unit}', to_timestamp(CASE WHEN s IS NOT NULL THEN ${local} END) AT TIME ZONE 'UTC')`;
  return `(SELECT to_char(${first}, 'YYYY-MM-DD') FROM (SELECT ${seconds}::bigint AS s OFFSET 0) AS seconds)`;
}

const leapYear = '([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)';
const date = `((?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(?!0000)[0-9]{4}-(0[13-9]|1[0-2])-(29|30)|(?!0000)[0-9]{4}-(0[13578]|1[02])-31|(?!0000)${leapYear}-02-29)`;
const time = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-](0[0-9]|1[0-4]):[0-5][0-9])';

/** Only dates that exist: the cast of another would be an error. */
export function timestampSql(value: string): string {
  return `(CASE WHEN ${value} ~ '^${date}[Tt]${time}$' THEN ${value}::timestamptz END)`;
}

/** The value at the field's path, of any type, as `jsonb`; SQL's null if there is none. */
export function memberSql(field: Field): string {
  return selected(field, '');
}

function selected(field: Field, condition: string, of = ''): string {
  let path = 'strict $';
  for (const label of field.path) path += `.${JSON.stringify(label)}`;
  return `jsonb_path_query_first(${of}${field.within ?? 'doc'}::jsonb, ${quoteText(path + condition)}, '{}', true)`;
}

/**
 * A literal in single quotes; one with a backslash does not depend on the server's settings. For JSON paths of expression indexes, which must
 * be literals to match a query, and marks: values from clients are always bound as parameters.
 */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/*
 * The parameters of one statement, in the order of their marks. Every mark has its type, so no type is inferred, and the text does not
 * depend on the values.
 * A prepared statement hides its values from the planner behind scalar subselects: its plan is then the same for all values, which bounded
 * reads rely on, and the server, which gains nothing from planning again, keeps it (it planned `id = ANY ($1)` each time, for
 * 47 µs of 66). A statement that runs once shows its values.
 */

export type ParameterType =
  | 'text'
  | 'float8'
  | 'bigint'
  | 'int'
  | 'jsonb'
  | 'tsquery'
  | 'text[]'
  | 'float8[]'
  | 'bigint[]'
  | 'int[]';

/** A known value, one of the filter's, or one of the position's. */
export type Parameter = Bindable | ValueSlot | Slot;

export class Parameters {
  readonly list: Parameter[] = [];
  readonly #hidden: boolean;
  readonly #slots = new Map<number, string>();

  constructor(hidden: boolean) {
    this.#hidden = hidden;
  }

  /** Adds a known value. @returns its mark */
  add(value: Bindable, type: ParameterType): string {
    this.list.push(value);
    return this.#mark(type);
  }

  /** Adds a value of the filter. @returns its mark */
  addValue(at: number, type: ParameterType): string {
    this.list.push({ value: at });
    return this.#mark(type);
  }

  /** Adds a value of the position, once per slot. @returns its mark */
  addSlot(slot: number, type: ParameterType): string {
    const kept = this.#slots.get(slot);
    if (kept !== undefined) return kept;
    this.list.push({ slot });
    const mark = this.#mark(type);
    this.#slots.set(slot, mark);
    return mark;
  }

  #mark(type: ParameterType): string {
    const mark = `$${this.list.length}::${type}`;
    if (!this.#hidden) return mark;
    // Without the outer cast `= ANY ((SELECT ...))` would compare with the rows of the subselect.
    return type.endsWith('[]') ? `(SELECT ${mark})::${type}` : `(SELECT ${mark})`;
  }
}

/** Fills in the values of the filter, in a statement without a position. */
export function bindValues(list: readonly Parameter[], values: readonly Bindable[]): readonly Bindable[] {
  return list.map((entry) => {
    if (!isSlot(entry)) return entry;
    if ('value' in entry) return values[entry.value] ?? null;
    throw new TypeError('a statement without a position must not have slots of one');
  });
}

export function isSlot(entry: Parameter): entry is ValueSlot | Slot {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry);
}

/*
 * Makes the planner walk the index that serves a bounded read, without session settings, which a pooler would lose or leak. Otherwise it
 * does not: on a table of 10^5 rows just loaded, whose statistics come a minute later, a page of 20 by an indexed prefix was a bitmap scan
 * and a sort of 50,000 rows (318 ms; the walk takes 0.13 ms); likewise 1000 rows of an analysed one (53 ms; 0.7 ms).
 * `comity_costly` is never called. Its cost in the catalogue is 25 units, more than a random page read (4), so it is placed where other
 * plans pay for it; it also prevents parallel plans. `Parameters` hides the values.
 */

/**
 * True for every undeleted row, for walks of indexes that omit deleted rows: their predicate implies the second half too, so the planner
 * drops it from such a walk. Any other plan (a scan, a bitmap, the primary key) is charged for each row that it would touch.
 */
export function liveInIndex(schema: string): string {
  return `deleted_at IS NULL AND (deleted_at IS NULL OR ${costly(schema)})`;
}

/**
 * True for every undeleted row, for walks of the primary key. It implies no predicate, so no other index applies, and among the remaining
 * plans the walk touches the fewest rows. No revision is negative.
 */
export function liveInTable(schema: string): string {
  return `(deleted_at IS NULL OR (rev < 0 AND ${costly(schema)}))`;
}

/** True for every row, deleted or not. */
export function anyInTable(schema: string): string {
  return `(rev >= 0 OR ${costly(schema)})`;
}

/**
 * An equality from which the planner does not conclude that the key is constant, so that only an index that begins with the key provides an
 * order that begins with it. A kept plan knows no values: if the statistics of a column saw one owner, it would search a rare second one
 * along an index of the sort alone, through all rows of the first (20,000 of 20,000, measured).
 */
export function inOne(value: string, mark: string): string {
  return `${value} = ANY (ARRAY[${mark}])`;
}

/**
 * The condition, of which no index can serve a part: the walk along the order stays the only plan. Of the log, the index of histories begins
 * with the collection, by which a filtered tail was found and sorted.
 */
export function passedOver(condition: string): string {
  return `coalesce(${condition}, FALSE)`;
}

/**
 * A limit that the planner cannot evaluate: it assumes a tenth of the rows, whatever the statistics say, so that a walk never looks more
 * expensive than a sort. A literal limit around it keeps the estimate below the threshold of JIT.
 */
export function hiddenLimit(rows: number): string {
  return `LIMIT (SELECT ${rows})`;
}

/** Never true, at a cost that no plan for a bounded read takes. */
function costly(schema: string): string {
  return `${quoteName(schema)}.comity_costly(id) IS NULL`;
}

/*
 * The index of words of a table (`Table.words`) in SQL: a GIN index over the words of the search text as `tsvector`. The text holds single
 * words between spaces, which the cast reads without any dictionary or locale of the server. Texts of another declaration have no words:
 * the mark decides, within the indexed expression, so that no other text is ever cast.
 *
 * The index has no positions. It finds the rows with all words, and the terms, which are substrings of the text, decide (filter.ts).
 */

export function isMarkedSql(mark: string): string {
  return `starts_with(search, ${quoteText(mark)})`;
}

export function wordsSql(mark: string): string {
  return `(CASE WHEN ${isMarkedSql(mark)} THEN substr(search, ${mark.length + 1})::tsvector END)`;
}

/** True for rows whose text the declaration of the mark did not make. */
export function pendingSql(mark: string): string {
  return `deleted_at IS NULL AND ${isOtherSql(mark)}`;
}

/** The same, for a look that only the index of such rows serves: it implies the second half, and any other plan is charged for each row. */
export function pendingInIndex(mark: string, schema: string): string {
  return `${pendingSql(mark)} AND (${isOtherSql(mark)} OR ${costly(schema)})`;
}

function isOtherSql(mark: string): string {
  return `(search IS NULL OR NOT ${isMarkedSql(mark)})`;
}
