/**
 * The compiled form of an aggregate query (§4.18), which JSON and SQL share: the fields that make a group, the values
 * computed for each, and the columns of the result, by which `having` filters and `sort` orders.
 *
 * Only fields that are visible in every resource can be named, as in filters. If `afterRead` changes what the caller
 * reads, only `id` and the times can, because an aggregate shows stored values.
 */
import type { Field, Fields } from '../../model/field.ts';
import type { Filter, Sort } from '../../model/filter.ts';
import { isTimeZone, periodUnits } from '../../model/period.ts';
import type { Measure } from '../../store/aggregate.ts';
import { type Aggregation, type QueryLimits, type Target, textOfGroup } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote, show, unknownField } from './query-faults.ts';
import { addSortKey } from './sort-keys.ts';

export const aggregateFunctions = ['count', 'sum', 'avg', 'min', 'max'] as const;

export type AggregateFunction = (typeof aggregateFunctions)[number];

const nameCharactersMax = 64;
const nameGrammar = /^[\p{L}_][\p{L}\p{N}_.]*$/u;
/** Words of a filter, which `having` could not use as names. */
const reservedNames: ReadonlySet<string> = new Set(['and', 'or', 'not']);

type Column = { readonly field: Field; readonly order: number };

/** Collects the columns of one query. */
export class AggregationReading {
  readonly #target: Target;
  readonly #limits: QueryLimits;
  readonly #faults: FaultList;
  readonly #groups: { readonly of: Field; readonly column: Field }[] = [];
  readonly #results: { readonly measure: Measure; readonly column: Field }[] = [];
  readonly #shown: Column[] = [];
  /** Columns by the names that `having` and `sort` may use. */
  readonly #named = new Map<string, Field>();
  #isFull = false;

  constructor(target: Target, limits: QueryLimits, faults: FaultList) {
    this.#target = target;
    this.#limits = limits;
    this.#faults = faults;
  }

  get named(): Fields {
    return this.#named;
  }

  group(of: Field, place: Place): void {
    if (this.groupColumn(of) !== undefined) {
      this.#faults.unprocessable(`groupBy names ${quote(of.name)} twice`, place);
      return;
    }
    if (!this.#canName(of, 'groupBy', place) || !this.#hasRoom(place)) return;
    const type = of.period === undefined ? of.type : 'string';
    const column = columnOf(textOfGroup(of), type);
    this.#groups.push({ of, column });
    this.#named.set(column.name, column);
  }

  /** The field by the period of its time; undefined after a fault. @param timeZone default UTC */
  periodField(by: string, unit: unknown, timeZone: unknown, place: Place): Field | undefined {
    const field = this.find(by, place);
    if (field === undefined) return undefined;
    const known = periodUnits.find((each) => each === unit);
    if (field.type !== 'timestamp') {
      this.#faults.unprocessable(`${quote(by)} has no times to group by`, place);
    } else if (known === undefined) {
      this.#faults.unprocessable(`unit takes ${periodUnits.join(', ')}, not ${show(unit)}`, place);
    } else if (typeof timeZone !== 'string' || !isTimeZone(timeZone)) {
      const message = `timeZone takes a name of the IANA database such as Europe/Berlin, not ${show(timeZone)}`;
      this.#faults.unprocessable(message, place);
    } else return { ...field, period: { unit: known, timeZone } };
    return undefined;
  }

  /** The column of a field of groupBy. */
  groupColumn(of: Field): Field | undefined {
    return this.#groups.find((group) => textOfGroup(group.of) === textOfGroup(of))?.column;
  }

  /** Shows a group's column, under another name if one is given. */
  show(column: Field, order: number, name: string | undefined, place: Place): void {
    if (name !== undefined && name !== column.name) {
      if (!this.#isNameFree(name, place)) return;
      this.#named.set(name, column);
      this.#shown.push({ field: { ...column, name }, order });
    } else if (this.#shown.some(({ field }) => field.name === column.name)) {
      this.#faults.unprocessable(`two results are named ${quote(column.name)}`, place);
    } else this.#shown.push({ field: column, order });
  }

  /**
   * Adds a result, or finds the same one.
   * @param field absent: counts resources
   * @param name absent: `count`, or as in `sum_price`
   * @returns its column; undefined after a fault
   */
  result(
    of: AggregateFunction,
    field: Field | undefined,
    { name, order, place }: { readonly name?: string; readonly order?: number; readonly place: Place },
  ): Field | undefined {
    const measure = this.#measureOf(of, field, place);
    if (measure === undefined) return undefined;
    const same = this.#results.find((result) => isSame(result.measure, measure))?.column;
    // A condition or an order needs no column of its own.
    if (order === undefined && same !== undefined) return same;
    if (!this.#hasRoom(place)) return undefined;
    const chosen = name ?? (field === undefined ? of : `${of}_${field.name}`);
    const isHidden = order === undefined;
    const column = columnOf(isHidden ? `${of}(${field?.name ?? '*'})` : chosen, typeOf(of, field));
    if (!isHidden) {
      if (!this.#isNameFree(chosen, place)) return undefined;
      this.#shown.push({ field: column, order });
    }
    this.#named.set(column.name, column);
    this.#results.push({ measure, column });
    return column;
  }

  finish(having: Filter): Aggregation {
    if (this.#groups.length + this.#results.length === 0 && this.#faults.isEmpty) {
      this.#faults.unprocessable('an aggregate query computes at least one value, or groups by a field');
    }
    const columns = [...this.#groups, ...this.#results].map(({ column }) => column);
    return {
      groupBy: this.#groups.map(({ of }) => of),
      measures: this.#results.map(({ measure }) => measure),
      columns,
      shown: [...this.#shown].sort((one, other) => one.order - other.order).map(({ field }) => field),
      having,
      groupsMax: this.#limits.aggregateGroupsMax,
    };
  }

  /** Completes the order by the groups that it does not name, so that it is total. */
  totalOrder(keys: readonly Sort[]): readonly Sort[] {
    const rest = this.#groups.filter(({ column }) => !keys.some(({ field }) => field === column));
    return [...keys, ...rest.map(({ column }): Sort => ({ field: column, direction: 'asc' }))];
  }

  addSortKey(text: string, keys: Sort[], place: Place): void {
    addSortKey(text, false, { keys, fields: this.#named, faults: this.#faults, place });
  }

  /** Finds a field of the collection by its name. */
  find(name: string, place: Place): Field | undefined {
    const field = this.#target.fields.get(name);
    if (field === undefined) this.#faults.unprocessable(unknownField(name, this.#target.fields), place);
    return field;
  }

  #measureOf(of: AggregateFunction, field: Field | undefined, place: Place): Measure | undefined {
    if (field === undefined) {
      if (of === 'count') return { of: 'rows' };
      this.#faults.unprocessable(`${of} takes a field`, place);
      return undefined;
    }
    if (!this.#canName(field, of, place)) return undefined;
    const isNumber = field.type === 'number' || field.type === 'integer';
    if ((of === 'sum' || of === 'avg') && !isNumber) {
      const numbers = [...this.#target.fields.values()].filter(
        ({ type }) => type === 'number' || type === 'integer',
      );
      const message = `${of} takes a number; ${quote(field.name)} is not one; numbers: ${listed(numbers.map(({ name }) => name)) || 'none'}`;
      this.#faults.unprocessable(message, place);
      return undefined;
    }
    return { of, field };
  }

  #canName(field: Field, by: string, place: Place): boolean {
    const { aggregated } = this.#target;
    if (field.type === 'array' || field.type === 'json') {
      this.#faults.unprocessable(
        `${by} takes a single value; ${quote(field.name)} is an array or an object`,
        place,
      );
    } else if (aggregated !== undefined && !aggregated.has(field.name)) {
      const message = `${quote(field.name)} cannot be aggregated, because the collection changes what is read; fields: ${listed(aggregated.keys())}`;
      this.#faults.unprocessable(message, place);
    } else return true;
    return false;
  }

  #hasRoom(place: Place): boolean {
    const { aggregateColumnsMax: max } = this.#limits;
    if (this.#groups.length + this.#results.length < max) return true;
    if (!this.#isFull) {
      this.#faults.unprocessable(`an aggregate query has at most ${max} groups and results`, place);
    }
    this.#isFull = true;
    return false;
  }

  #isNameFree(name: string, place: Place): boolean {
    if (name.length > nameCharactersMax || !nameGrammar.test(name) || reservedNames.has(name)) {
      const message = `the name of a result has up to ${nameCharactersMax} letters, digits, "_" and "."; ${quote(name)} has not`;
      this.#faults.unprocessable(message, place);
    } else if (this.#named.has(name)) {
      this.#faults.unprocessable(`two results are named ${quote(cap(name))}`, place);
    } else return true;
    return false;
  }
}

function columnOf(name: string, type: Field['type']): Field {
  return { name, path: [name], type };
}

function typeOf(of: AggregateFunction, field: Field | undefined): Field['type'] {
  if (of === 'count' || field === undefined) return 'integer';
  return of === 'min' || of === 'max' ? field.type : 'number';
}

function isSame(one: Measure, other: Measure): boolean {
  if (one.of === 'rows' || other.of === 'rows') return one.of === other.of;
  return one.of === other.of && one.field === other.field;
}
