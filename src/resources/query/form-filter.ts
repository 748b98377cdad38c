/**
 * Filters of a query string or form: `field=value`, `field[operator]=value`. All must hold. The same name again widens
 * where it is an equality or `in` (any of the values), and narrows for every other operator.
 *
 * `field=null` compares with the text "null"; what is absent or null is found by `field[null]=true`. Commas separate
 * only in `in`: a value that holds one is written as a repeated `field=value`.
 */
import type { Field, Fields } from '../../model/field.ts';
import type { Filter } from '../../model/filter.ts';
import type { QueryLimits } from './asked.ts';
import {
  compare,
  findOperator,
  isNull,
  membership,
  type Operator,
  operatorsOf,
  patternComplaint,
} from './comparison.ts';
import { cap, type FaultList, listed, quote, unknownField } from './faults.ts';
import { describeValue, readText, type Value, valueType } from './field-value.ts';

type Pair = readonly [name: string, value: string];

/** What was said of one parameter name, its values in order. */
type Condition = {
  readonly field: Field;
  readonly operator: Operator;
  readonly values: Value[];
  readonly name: string;
};

/** One filter for each different name. Stops at the first condition beyond `filterNodesMax`. */
export function compileConditions(
  pairs: readonly Pair[],
  fields: Fields,
  limits: QueryLimits,
  faults: FaultList,
): Filter[] {
  const conditions = new Map<string, Condition | undefined>();
  let nodes = 0;
  for (const [name, text] of pairs) {
    let condition = conditions.get(name);
    if (condition === undefined) {
      if (conditions.has(name)) continue;
      condition = readName(name, fields, faults);
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
  return faults.isEmpty ? build(conditions) : [];
}

function readName(name: string, fields: Fields, faults: FaultList): Condition | undefined {
  const bracket = name.endsWith(']') ? name.indexOf('[') : -1;
  const fieldName = bracket === -1 ? name : name.slice(0, bracket);
  const field = fields.get(fieldName);
  const place = { parameter: cap(name) };
  if (field === undefined) {
    faults.unprocessable(unknownField(fieldName, fields), place);
    return undefined;
  }
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
  const value = readText(valueType(field), text);
  const place = { parameter: cap(name) };
  if (value === undefined) {
    faults.unprocessable(`${cap(field.name)} takes ${describeValue(field)}, not ${quote(text)}`, place);
    return;
  }
  const complaint = operator === 'like' ? patternComplaint(text) : undefined;
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
  return operator === 'like'
    ? { op: 'like', field, pattern: String(value) }
    : compare(field, operator, value);
}
