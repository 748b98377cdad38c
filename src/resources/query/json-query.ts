/**
 * Compiles JSON content of QUERY (§4.9): `{"filter": {...}, "sort": ["-price"], "limit": 20, "cursor": null, "page": 2,
 * "fields": [...], "q": "..."}`. Every member is optional; null counts as absent. `sort` and `fields` also take a
 * comma-separated list. `aggregate`, `groupBy` and `having` make it an aggregate query (§4.18). Faults are 422 and carry JSON Pointers; only a malformed cursor is 400.
 */
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Field, Fields, Scalar } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter, type Sort } from '../../model/filter.ts';
import type { Expansion } from '../relations/relations.ts';
import { type AggregateFunction, AggregationReading, aggregateFunctions } from './aggregation.ts';
import {
  checkRelated,
  compare,
  compileSearch,
  describeValue,
  type FilterLimits,
  type Finding,
  findCompared,
  findOperator,
  isLike,
  isNull,
  isPattern,
  membership,
  type Operator,
  operatorsOf,
  patternComplaint,
  readValue,
} from './conditions.ts';
import { type Aggregation, type Compiled, type QueryLimits, sortKeysMax, type Target } from './list-query.ts';
import { cap, FaultList, listed, quote, show } from './query-faults.ts';
import { compileExpansion, type NamedAt, type Selected, selectedOf, selectFields } from './selection.ts';
import { addSortKey, checkPage, checkRange, checkRank, positionOf, totalOrder } from './sort-keys.ts';

const members: ReadonlySet<string> = new Set([
  ...['filter', 'sort', 'limit', 'cursor', 'page', 'fields', 'q'],
  ...['aggregate', 'groupBy', 'having'],
  ...['expand', 'counts'],
]);

type Members = Readonly<Record<string, unknown>>;

type Reading = {
  readonly query: Members;
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

export function compileJson(value: unknown, target: Target, limits: QueryLimits): Compiled {
  const faults = new FaultList(limits.validationErrorsMax);
  if (!isObject(value)) {
    faults.unprocessable(
      `a query must be an object with the members ${[...members].join(', ')}, not ${show(value)}`,
      {
        pointer: '',
      },
    );
    return { ok: false, faults: faults.faults };
  }
  for (const name of Object.keys(value)) {
    if (members.has(name)) continue;
    const message = `unknown member ${quote(name)}; members: ${[...members].join(', ')}`;
    faults.unprocessable(message, { pointer: '' });
  }
  const reading: Reading = { query: value, target, limits, faults };
  const page = readPage(reading);
  const limit = readLimit(reading);
  const grouped = readGrouped(reading);
  const sort = grouped === undefined ? readSort(reading) : grouped.sort;
  const selected = grouped === undefined ? readSelect(reading) : { select: undefined };
  const { filter } = value;
  const conditions: Filter = isGiven(filter) ? compileJsonFilter(filter, { target, limits, faults }) : always;
  const search = readSearch(reading);
  if (grouped === undefined && faults.isEmpty)
    checkRank(sort, search, { faults, place: { pointer: '/sort' } });
  const expansion = grouped === undefined ? readExpansion(reading) : undefined;
  const place = { pointer: '/cursor' };
  const position = positionOf(readText(reading, 'cursor'), page, { faults, place });
  if (!faults.isEmpty) return { ok: false, faults: faults.faults };
  const asked = {
    filter: allOf([conditions, search]),
    sort,
    limit,
    position,
    ...selected,
    page,
    source: undefined,
    ...(grouped === undefined ? {} : { aggregation: grouped.aggregation }),
    ...(expansion === undefined ? {} : { expansion }),
  };
  return { ok: true, asked };
}

/** Reads an aggregate query; undefined for a list. */
function readGrouped(reading: Reading): ReturnType<typeof readAggregation> | undefined {
  const { query, target, limits, faults } = reading;
  const { aggregate, groupBy, having, fields } = query;
  if (![aggregate, groupBy, having].some(isGiven)) return undefined;
  if (isGiven(fields)) {
    faults.unprocessable('fields selects members of resources; an aggregate query has results', {
      pointer: '/fields',
    });
  }
  for (const member of ['expand', 'counts']) {
    const message = `${member} adds to resources; an aggregate query has results`;
    if (isGiven(query[member])) faults.unprocessable(message, { pointer: `/${member}` });
  }
  const names = {
    groupBy: readGroupNames(reading),
    sort: readNames(reading, 'sort', sortKeysMax),
  };
  return readAggregation({ aggregate, having, ...names }, reading, (value, columns) =>
    compileJsonFilter(
      value,
      { target: { ...target, fields: columns, through: undefined }, limits, faults },
      'having',
    ),
  );
}

function readPage({ query: { page }, faults }: Reading): number | undefined {
  if (!isGiven(page)) return undefined;
  const number = typeof page === 'number' ? page : undefined;
  return checkPage(number, { shown: show(page), faults, place: { pointer: '/page' } });
}

function readLimit({ query: { limit }, limits, faults }: Reading): number {
  const { listLimitDefault, listLimitMax } = limits;
  if (!isGiven(limit)) return listLimitDefault;
  const number = typeof limit === 'number' ? limit : undefined;
  const into = { shown: show(limit), faults, place: { pointer: '/limit' } };
  return checkRange('limit', number, listLimitMax, into) ?? listLimitDefault;
}

function readSort(reading: Reading): readonly Sort[] {
  const { fields, rank } = reading.target;
  const keys: Sort[] = [];
  for (const { text, pointer } of readNames(reading, 'sort', sortKeysMax)) {
    addSortKey(text, false, { keys, fields, rank, faults: reading.faults, place: { pointer } });
  }
  return totalOrder(keys, fields, false);
}

function readSelect(reading: Reading): Selected {
  if (!isGiven(reading.query.fields)) return { select: undefined };
  const { target, faults } = reading;
  const { fields } = target;
  const chosen = new Set<Field>();
  let everything = false;
  for (const { text, pointer } of readNames(reading, 'fields', fields.size + 2)) {
    const { select, owner, tag } = selectFields([text], target, { faults, place: { pointer } });
    if (select === undefined) everything = true;
    for (const field of [...(select ?? []), owner ?? [], tag ?? []].flat()) chosen.add(field);
  }
  return selectedOf(chosen, everything, target);
}

function readExpansion(reading: Reading): Expansion | undefined {
  const { target, limits, faults } = reading;
  const named = (member: string): readonly NamedAt[] =>
    readNames(reading, member, limits.expandPathsMax).map(({ text, pointer }) => ({
      text,
      place: { pointer },
    }));
  return compileExpansion({ expand: named('expand'), counts: named('counts') }, target, { limits, faults });
}

function readSearch(reading: Reading): Filter {
  const { target, limits, faults } = reading;
  const text = readText(reading, 'q');
  return text === undefined
    ? always
    : compileSearch(text, target, { limits, faults, place: { pointer: '/q' } });
}

function readText({ query, faults }: Reading, member: string): string | undefined {
  const value = query[member];
  if (!isGiven(value)) return undefined;
  if (typeof value === 'string') return value;
  faults.unprocessable(`${member} takes a string, not ${show(value)}`, { pointer: `/${member}` });
  return undefined;
}

function readNames(
  { query, faults }: Reading,
  member: string,
  max: number,
): { text: string; pointer: string }[] {
  const value = query[member];
  if (!isGiven(value)) return [];
  const pointer = `/${member}`;
  if (typeof value === 'string') return value.split(',').map((text) => ({ text, pointer }));
  const names: { text: string; pointer: string }[] = [];
  if (!Array.isArray(value)) {
    faults.unprocessable(`${member} takes an array of field names, not ${show(value)}`, { pointer });
    return names;
  }
  const items: readonly unknown[] = value;
  if (items.length === 0 && member === 'fields')
    faults.unprocessable('fields must name at least one field', { pointer });
  if (items.length > max) {
    faults.unprocessable(`${member} takes at most ${max} names, not ${items.length}`, { pointer });
    return names;
  }
  for (const [index, text] of items.entries()) {
    const place = `${pointer}/${index}`;
    if (typeof text === 'string') names.push({ text, pointer: place });
    else faults.unprocessable(`${member} takes field names, not ${show(text)}`, { pointer: place });
  }
  return names;
}

/** Names of fields, and objects that take the period of a time: `{ by: 'createdAt', unit: 'month', timeZone: 'Europe/Berlin' }`. */
function readGroupNames(reading: Reading): readonly Grouping[] {
  const { query, limits, faults } = reading;
  const { groupBy } = query;
  if (!Array.isArray(groupBy) || !groupBy.some(isObject))
    return readNames(reading, 'groupBy', limits.aggregateColumnsMax);
  const items: readonly unknown[] = groupBy.slice(0, limits.aggregateColumnsMax + 1);
  return items.flatMap((item, index): Grouping | readonly Grouping[] => {
    const pointer = `/groupBy/${index}`;
    if (typeof item === 'string') return { text: item, pointer };
    if (isObject(item) && typeof item.by === 'string') {
      const unknown = Object.keys(item).find((name) => !periodMembers.has(name));
      if (unknown === undefined) return { text: item.by, pointer, period: item };
      const message = `unknown member ${quote(unknown)}; members: ${[...periodMembers].join(', ')}`;
      faults.unprocessable(message, { pointer });
      return [];
    }
    const message = `groupBy takes field names, and { by, unit, timeZone } for times, not ${show(item)}`;
    faults.unprocessable(message, { pointer });
    return [];
  });
}

const periodMembers: ReadonlySet<string> = new Set(['by', 'unit', 'timeZone', 'as']);

type Grouping = { readonly text: string; readonly pointer: string; readonly period?: Members };

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type JsonOperator = Exclude<Operator, 'null'>;

const pointerTokenCharactersMax = 64;

/**
 * Compiles `filter` (§4.9): `{"price": 10}` is equality, `{"price": {"gte": 10, "lt": 20}}` uses operators, `"and":
 * [...]`, `"or": [...]` and `"not": {...}` combine filters. All members must match. Null means absent or null. On an
 * array field equality is membership. An empty `and` matches everything, an empty `or` or `in` nothing.
 *
 * Fields named `and`, `or` or `not` can be compared only in a form (`and[eq]=`) or in SQL (`"and"`). Compilation stops
 * at `filterDepthMax` and `filterNodesMax`.
 */
export function compileJsonFilter(
  value: unknown,
  finding: Finding<FilterLimits>,
  member: 'filter' | 'having' | 'where' = 'filter',
): Filter {
  const filter = new FilterReading(finding, member).conjunction(value, 0);
  return finding.target.through === undefined ? filter : checkRelated(filter, finding);
}

/** One pass over one filter; `#path` is the current position, for JSON Pointers. */
class FilterReading {
  readonly #finding: Finding<FilterLimits>;
  readonly #limits: FilterLimits;
  readonly #faults: FaultList;
  readonly #path: (string | number)[];
  #nodes = 0;

  constructor(finding: Finding<FilterLimits>, member: 'filter' | 'having' | 'where') {
    this.#finding = finding;
    this.#limits = finding.limits;
    this.#faults = finding.faults;
    this.#path = [member];
  }

  conjunction(value: unknown, depth: number): Filter {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#fault(`a filter must be an object of fields, and, or and not; it is ${show(value)}`);
      return always;
    }
    const filters: Filter[] = [];
    for (const [name, member] of Object.entries(value)) {
      if (this.#isFull()) break;
      this.#path.push(name);
      filters.push(this.#member(name, member, depth));
      this.#path.pop();
    }
    return allOf(filters);
  }

  #member(name: string, value: unknown, depth: number): Filter {
    if (name !== 'and' && name !== 'or' && name !== 'not') return this.#condition(name, value);
    if (!this.#countNode()) return always;
    if (depth >= this.#limits.filterDepthMax) {
      this.#fault(`and, or and not nest at most ${this.#limits.filterDepthMax} levels`);
      return always;
    }
    if (name === 'not') return { op: 'not', filter: this.conjunction(value, depth + 1) };
    if (!Array.isArray(value)) {
      this.#fault(`${name} takes an array of filters, not ${show(value)}`);
      return always;
    }
    const parts: Filter[] = [];
    for (const [index, part] of value.entries()) {
      if (this.#isFull()) break;
      this.#path.push(index);
      parts.push(this.conjunction(part, depth + 1));
      this.#path.pop();
    }
    return name === 'and' ? allOf(parts) : anyOf(parts);
  }

  #condition(name: string, value: unknown): Filter {
    const field = findCompared(name, this.#finding, { pointer: this.#pointer() });
    if (field === undefined) return always;
    if (operatorsOf(field).length === 0) return this.#fault(`${quote(name)} can be selected, not compared`);
    if (Array.isArray(value))
      return this.#fault(`to compare ${quote(name)} with several values, use {"in": [...]}`);
    if (typeof value !== 'object' || value === null) return this.#apply(field, 'eq', value);
    const filters: Filter[] = [];
    for (const [written, operand] of Object.entries(value)) {
      if (this.#isFull()) break;
      this.#path.push(written);
      const operator = findOperator(field, written);
      if (operator === undefined) this.#unknownOperator(field, written);
      else if (operator === 'null') filters.push(this.#nullness(field, operand));
      else filters.push(this.#apply(field, operator, operand));
      this.#path.pop();
    }
    if (filters.length === 0 && this.#faults.isEmpty)
      this.#fault(`${quote(name)} needs an operator, such as {"eq": ...}`);
    return allOf(filters);
  }

  #apply(field: Field, operator: JsonOperator, operand: unknown): Filter {
    if (!this.#countNode()) return always;
    if (operator === 'in') return this.#membership(field, operand);
    if (operand === null && (operator === 'eq' || operator === 'ne')) return isNull(field, operator === 'eq');
    const value = readValue(field, operand);
    if (value === undefined) return this.#fault(wrongValue(field, operand));
    if (!isPattern(operator)) return compare(field, operator, value);
    const pattern = String(value);
    const complaint = patternComplaint(pattern);
    return complaint === undefined ? isLike(field, operator, pattern) : this.#fault(complaint);
  }

  #nullness(field: Field, operand: unknown): Filter {
    if (!this.#countNode()) return always;
    if (typeof operand === 'boolean') return isNull(field, operand);
    return this.#fault(`null takes true or false, not ${show(operand)}`);
  }

  #membership(field: Field, operand: unknown): Filter {
    if (!Array.isArray(operand)) return this.#fault(`in takes an array of values, not ${show(operand)}`);
    const { inValuesMax } = this.#limits;
    if (operand.length > inValuesMax) {
      return this.#fault(`in takes at most ${inValuesMax} values, not ${operand.length}`);
    }
    const values: Scalar[] = [];
    for (const [index, item] of operand.entries()) {
      const value = item === null ? null : readValue(field, item);
      if (value !== undefined) values.push(value);
      else {
        this.#path.push(index);
        this.#fault(wrongValue(field, item));
        this.#path.pop();
      }
    }
    return membership(field, values);
  }

  #unknownOperator(field: Field, written: string): void {
    this.#fault(
      `unknown operator ${quote(written)} for ${quote(field.name)}; operators: ${listed(operatorsOf(field))}`,
    );
  }

  /** Counts a comparison or connective; false once the limit is passed. */
  #countNode(): boolean {
    this.#nodes += 1;
    const { filterNodesMax } = this.#limits;
    if (this.#nodes <= filterNodesMax) return true;
    const message = `a filter takes at most ${filterNodesMax} comparisons and connectives`;
    if (this.#nodes === filterNodesMax + 1)
      this.#faults.unprocessable(message, { pointer: `/${this.#path[0]}` });
    return false;
  }

  #isFull(): boolean {
    return this.#nodes > this.#limits.filterNodesMax;
  }

  /** Records a fault. The returned filter never runs, because a query with faults is refused. */
  #fault(message: string): Filter {
    this.#faults.unprocessable(message, { pointer: this.#pointer() });
    return always;
  }

  /** Points to the parent of a name that is too long to echo. */
  #pointer(): string {
    const long = this.#path.findIndex((token) => String(token).length > pointerTokenCharactersMax);
    return formatJsonPointer(long === -1 ? this.#path : this.#path.slice(0, long));
  }
}

function wrongValue(field: Field, value: unknown): string {
  return `${cap(field.name)} takes ${describeValue(field)}, not ${show(value)}`;
}

// Reads `aggregate`, `groupBy` and `having` of a JSON QUERY (§4.18): {"groupBy": ["categoryId"], "aggregate": {"count": true, "avg":
// ["price"], "sum": {"total": "price"}}, "having": {"count": {"gt": 2}}, "sort": ["-avg_price"]} `count` takes `true`, for resources, or
// fields, whose values it counts. A function takes an array of fields, with results named like `avg_price`, or an object of result names
// and fields. `having` is a filter over the results.

type AggregateParts = {
  readonly aggregate: unknown;
  readonly groupBy: readonly Grouping[];
  readonly having: unknown;
  readonly sort: readonly { readonly text: string; readonly pointer: string }[];
};

/** @param compileHaving compiles a filter over these columns */
function readAggregation(
  parts: AggregateParts,
  { target, limits, faults }: { target: Target; limits: QueryLimits; faults: FaultList },
  compileHaving: (value: unknown, columns: Fields) => Filter,
): { readonly aggregation: Aggregation; readonly sort: readonly Sort[] } {
  const reading = new AggregationReading(target, limits, faults);
  for (const { text, pointer, period } of parts.groupBy) {
    const place = { pointer };
    const { unit, timeZone = 'UTC', as } = period ?? {};
    const field =
      period === undefined ? reading.find(text, place) : reading.periodField(text, unit, timeZone, place);
    if (field === undefined) continue;
    if (as !== undefined && typeof as !== 'string')
      faults.unprocessable(`as takes a name, not ${show(as)}`, place);
    reading.group(field, place);
    const column = reading.groupColumn(field);
    if (column !== undefined) reading.show(column, 0, typeof as === 'string' ? as : text, place);
  }
  readFunctions(parts.aggregate, reading, faults);
  const keys: Sort[] = [];
  for (const { text, pointer } of parts.sort) reading.addSortKey(text, keys, { pointer });
  const having = isGiven(parts.having) ? compileHaving(parts.having, reading.named) : always;
  return { aggregation: reading.finish(having), sort: reading.totalOrder(keys) };
}

function readFunctions(value: unknown, reading: AggregationReading, faults: FaultList): void {
  if (!isGiven(value)) return;
  if (!isObject(value)) {
    const message = `aggregate takes an object of ${aggregateFunctions.join(', ')}, not ${show(value)}`;
    faults.unprocessable(message, { pointer: '/aggregate' });
    return;
  }
  for (const [name, operand] of Object.entries(value)) {
    const known = aggregateFunctions.find((each) => each === name);
    if (known !== undefined) readFunction(known, operand, reading, faults);
    else {
      const message = `unknown function ${quote(name)}; functions: ${aggregateFunctions.join(', ')}`;
      faults.unprocessable(message, { pointer: '/aggregate' });
    }
  }
}

function readFunction(
  of: AggregateFunction,
  operand: unknown,
  reading: AggregationReading,
  faults: FaultList,
): void {
  const path = ['aggregate', of];
  const add = (name: string | undefined, written: unknown, pointer: string): void => {
    const place = { pointer };
    const named = { ...(name === undefined ? {} : { name }), order: 1, place };
    if (written === true && of === 'count') reading.result(of, undefined, named);
    else if (typeof written !== 'string') {
      const takes = of === 'count' ? 'true or a field' : 'a field';
      faults.unprocessable(`${of} takes ${takes}, not ${show(written)}`, place);
    } else {
      const field = reading.find(written, place);
      if (field !== undefined) reading.result(of, field, named);
    }
  };
  const pointer = formatJsonPointer(path);
  if (Array.isArray(operand)) {
    for (const [index, written] of operand.entries()) add(undefined, written, `${pointer}/${index}`);
  } else if (isObject(operand)) {
    for (const [name, written] of Object.entries(operand)) add(name, written, pointer);
  } else if (operand !== false && isGiven(operand)) add(undefined, operand, pointer);
}
