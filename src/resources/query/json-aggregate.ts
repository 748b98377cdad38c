/**
 * Reads `aggregate`, `groupBy` and `having` of a JSON QUERY (§4.18):
 *
 *     {"groupBy": ["categoryId"], "aggregate": {"count": true, "avg": ["price"], "sum": {"total": "price"}},
 *      "having": {"count": {"gt": 2}}, "sort": ["-avg_price"]}
 *
 * `count` takes `true`, for resources, or fields, whose values it counts. A function takes an array of fields, with
 * results named like `avg_price`, or an object of result names and fields. `having` is a filter over the results.
 */
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Fields } from '../../model/field.ts';
import { always, type Filter, type Sort } from '../../model/filter.ts';
import { type AggregateFunction, AggregationReading, aggregateFunctions } from './aggregation.ts';
import type { Aggregation, QueryLimits, Target } from './list-query.ts';
import { type FaultList, quote, show } from './query-faults.ts';

export type AggregateParts = {
  readonly aggregate: unknown;
  readonly groupBy: readonly { readonly text: string; readonly pointer: string }[];
  readonly having: unknown;
  readonly sort: readonly { readonly text: string; readonly pointer: string }[];
};

/** @param compileHaving compiles a filter over these columns */
export function readAggregation(
  parts: AggregateParts,
  { target, limits, faults }: { target: Target; limits: QueryLimits; faults: FaultList },
  compileHaving: (value: unknown, columns: Fields) => Filter,
): { readonly aggregation: Aggregation; readonly sort: readonly Sort[] } {
  const reading = new AggregationReading(target, limits, faults);
  for (const { text, pointer } of parts.groupBy) {
    const place = { pointer };
    const field = reading.find(text, place);
    if (field === undefined) continue;
    reading.group(field, place);
    const column = reading.groupColumn(field);
    if (column !== undefined) reading.show(column, 0, undefined, place);
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

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
