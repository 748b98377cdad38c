/**
 * Reads aggregates in SQL (§4.18): `SELECT field, count(*), avg(price) AS mean FROM ... GROUP BY field HAVING count(*) > 2
 * ORDER BY mean DESC`. Functions are count, sum, avg, min and max of one field, and `count(*)`. A result without AS is
 * named as in JSON (`avg_price`). HAVING and ORDER BY may use a result by its name or by its expression, selected or not.
 */
import {
  astMapper,
  type Expr,
  type ExprCall,
  type OrderByStatement,
  type SelectFromStatement,
} from 'pgsql-ast-parser';
import type { Field } from '../../model/field.ts';
import { always, type Filter, type Sort } from '../../model/filter.ts';
import { type AggregateFunction, AggregationReading, aggregateFunctions } from './aggregation.ts';
import type { Aggregation, QueryLimits, Target } from './list-query.ts';
import { cap, type FaultList, quote, unknownField } from './query-faults.ts';
import { compileSqlCondition } from './sql-condition.ts';
import { describeConstruct, nameOf, SqlFields } from './sql-fields.ts';

type Inputs = {
  /** The fields of the collection. */
  readonly fields: SqlFields;
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

export function isAggregate(select: SelectFromStatement): boolean {
  return (
    (select.groupBy ?? []).length > 0 ||
    (select.having ?? undefined) !== undefined ||
    (select.columns ?? []).some(({ expr }) => expr.type === 'call')
  );
}

export function readSqlAggregation(
  select: SelectFromStatement,
  inputs: Inputs,
): { readonly aggregation: Aggregation; readonly sort: readonly Sort[] } {
  const reading = new AggregationReading(inputs.target, inputs.limits, inputs.faults);
  const statement = new AggregateStatement(reading, inputs);
  for (const expression of select.groupBy ?? []) statement.group(expression);
  for (const [order, { expr, alias }] of (select.columns ?? []).entries()) {
    statement.column(expr, alias?.name.replaceAll('""', '"'), order);
  }
  const keys = statement.order(select.orderBy ?? []);
  const having = statement.having(select.having ?? undefined);
  return { aggregation: reading.finish(having), sort: reading.totalOrder(keys) };
}

class AggregateStatement {
  readonly #reading: AggregationReading;
  readonly #inputs: Inputs;

  constructor(reading: AggregationReading, inputs: Inputs) {
    this.#reading = reading;
    this.#inputs = inputs;
  }

  group(expression: Expr): void {
    const field = this.#field(expression, 'GROUP BY takes fields');
    if (field !== undefined) this.#reading.group(field, undefined);
  }

  column(expression: Expr, alias: string | undefined, order: number): void {
    if (expression.type === 'call') {
      this.#result(expression, { ...(alias === undefined ? {} : { name: alias }), order });
      return;
    }
    const field = this.#field(expression, 'SELECT takes fields of GROUP BY and aggregates');
    if (field === undefined) return;
    const column = this.#reading.groupColumn(field);
    if (column !== undefined) this.#reading.show(column, order, alias, undefined);
    else this.#fault(`${quote(field.name)} must be in GROUP BY or in an aggregate`);
  }

  order(order: readonly OrderByStatement[]): readonly Sort[] {
    const keys: Sort[] = [];
    for (const { by, order: direction, nulls } of order) {
      const descending = direction === 'DESC';
      if ((nulls ?? undefined) !== undefined && (nulls === 'LAST') !== descending) {
        this.#fault('null sorts before every value: use NULLS FIRST with ASC and NULLS LAST with DESC');
      }
      const field = this.#column(by);
      if (field !== undefined) this.#reading.addKey({ field, direction: descending ? 'desc' : 'asc' }, keys);
    }
    return keys;
  }

  /** Compiles HAVING as a condition on the columns, after each aggregate in it has become one. */
  having(expression: Expr | undefined): Filter {
    if (expression === undefined) return always;
    const { target, limits, faults } = this.#inputs;
    let isRefused = false;
    const mapped = astMapper(() => ({
      call: (call) => {
        if (!isFunction(call.function.name)) return call;
        const column = this.#result(call, {});
        if (column === undefined) isRefused = true;
        return column === undefined ? { type: 'null' } : { type: 'ref', name: column.name };
      },
    })).expr(expression);
    if (mapped === null || mapped === undefined || isRefused) return always;
    const results = { ...target, fields: this.#reading.named, through: undefined };
    const columns = new SqlFields(results, undefined);
    return compileSqlCondition(mapped, columns, { target: results, limits, faults });
  }

  /** The column that ORDER BY names. */
  #column(by: Expr): Field | undefined {
    if (by.type === 'call') return this.#result(by, {});
    if (by.type !== 'ref') {
      this.#fault(`ORDER BY takes results and fields of GROUP BY, not ${describeConstruct(by)}`);
      return undefined;
    }
    const { target } = this.#inputs;
    const column = new SqlFields({ ...target, fields: this.#reading.named }, undefined).find(by);
    if (column === undefined) this.#fault(unknownField(nameOf(by), this.#reading.named));
    return column;
  }

  #result(call: ExprCall, named: { readonly name?: string; readonly order?: number }): Field | undefined {
    const { name, schema } = call.function;
    const [argument, ...others] = call.args;
    const extra = [call.distinct, call.orderBy, call.filter, call.over, call.withinGroup];
    if (!isFunction(name) || schema !== undefined) {
      this.#fault(
        `the function ${cap(name)} is not allowed in a query; aggregates: ${aggregateFunctions.join(', ')}`,
      );
    } else if (argument === undefined || others.length > 0 || extra.some((part) => (part ?? '') !== '')) {
      this.#fault(`write ${name} as ${name}(field)${name === 'count' ? ' or count(*)' : ''}`);
    } else if (argument.type === 'ref' && argument.name === '*') {
      if (name === 'count') return this.#reading.result(name, undefined, { ...named, place: undefined });
      this.#fault(`${name} takes a field`);
    } else {
      const field = this.#field(argument, `${name} takes a field`);
      if (field !== undefined) return this.#reading.result(name, field, { ...named, place: undefined });
    }
    return undefined;
  }

  #field(expression: Expr, takes: string): Field | undefined {
    const { fields } = this.#inputs;
    if (expression.type !== 'ref' || fields.isEverything(expression)) {
      const what = expression.type === 'ref' ? '*' : describeConstruct(expression);
      this.#fault(`${takes}, not ${what}`);
      return undefined;
    }
    const field = fields.find(expression);
    if (field === undefined) this.#fault(unknownField(nameOf(expression), fields.fields));
    return field;
  }

  #fault(message: string): void {
    this.#inputs.faults.unprocessable(message);
  }
}

function isFunction(name: string): name is AggregateFunction {
  return aggregateFunctions.some((each) => each === name);
}
