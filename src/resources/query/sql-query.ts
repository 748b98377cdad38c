/**
 * Compiles SQL content of QUERY (§4.9): one SELECT over the fields of the target collection, which is parsed but never
 * run: `SELECT *|field, ... FROM collection [alias] [WHERE ...] [ORDER BY field [ASC|DESC], ...] [LIMIT n] [OFFSET n]`;
 * aggregates follow below.
 * Malformed (400) is what the parser rejects, also where PostgreSQL would accept it (`1e5`, ESCAPE, IS UNKNOWN); every
 * other construct is unprocessable (422) and named. Null sorts before every value, as in the other query syntaxes, so
 * NULLS FIRST goes with ASC and NULLS LAST with DESC.
 */

import {
  astMapper,
  type Expr,
  type ExprCall,
  type OrderByStatement,
  parse,
  type SelectFromStatement,
  type Statement,
} from 'pgsql-ast-parser';
import type { Field } from '../../model/field.ts';
import { always, type Filter, type Sort } from '../../model/filter.ts';
import { type AggregateFunction, AggregationReading, aggregateFunctions } from './aggregation.ts';
import type { Aggregation, AskedPosition, Compiled, QueryLimits, Target } from './list-query.ts';
import { cap, FaultList, quote, show, unknownField } from './query-faults.ts';
import { type Selected, selectedOf } from './selection.ts';
import { addKey, checkRange, totalOrder } from './sort-keys.ts';
import { compileSqlCondition } from './sql-condition.ts';
import { describeConstruct, isTable, literalOf, nameOf, SqlFields } from './sql-fields.ts';
import { scanSql, sqlForm } from './sql-scan.ts';

const parserPosition = /line (\d+) col (\d+)/;

/** Refused clauses of SELECT, by their member of the syntax tree. */
const refusedClauses: Readonly<Record<string, string>> = {
  distinct: 'DISTINCT',
  for: 'FOR UPDATE or FOR SHARE',
  skip: 'SKIP LOCKED or NOWAIT',
};

type Reading = {
  readonly fields: SqlFields;
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

/** Compiles one query; about 1 ms for a short one (the parser), so callers cache the result. */
export function compileSql(text: string, target: Target, limits: QueryLimits): Compiled {
  const faults = new FaultList(limits.validationErrorsMax);
  const select = readStatement(text, limits, faults);
  const alias = select === undefined ? undefined : readFrom(select, target, faults);
  if (select === undefined || alias === undefined) return { ok: false, faults: faults.faults };

  const reading: Reading = { fields: new SqlFields(target, alias.name), target, limits, faults };
  const { where } = select;
  const asked = {
    filter: isNothing(where)
      ? always
      : compileSqlCondition(where, reading.fields, { target, limits, faults }),
    sort: [] as readonly Sort[],
    limit: readLimit(select.limit?.limit, reading),
    position: readOffset(select.limit?.offset, reading),
    select: undefined,
    page: undefined,
    source: undefined,
  };
  const shown = isAggregate(select)
    ? readSqlAggregation(select, reading)
    : { sort: readOrder(select.orderBy ?? [], reading), ...readColumns(select, reading) };
  return faults.isEmpty ? { ok: true, asked: { ...asked, ...shown } } : { ok: false, faults: faults.faults };
}

function readStatement(
  text: string,
  limits: QueryLimits,
  faults: FaultList,
): SelectFromStatement | undefined {
  const bounds = { charactersMax: limits.sqlCharactersMax, nestingMax: limits.filterDepthMax };
  const scan = scanSql(text, bounds);
  if (!scan.ok) {
    faults[scan.kind](scan.message);
    return undefined;
  }
  const statements = parseStatements(scan.text, faults);
  if (statements === undefined) return undefined;
  const [statement, ...others] = statements;
  if (statement === undefined || others.length > 0) faults.unprocessable('only one statement is allowed');
  else if (statement.type !== 'select') {
    faults.unprocessable(`${cap(statement.type).toUpperCase()} is not allowed in a query; ${sqlForm}`);
  } else return statement;
  return undefined;
}

function parseStatements(text: string, faults: FaultList): readonly Statement[] | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof RangeError) faults.unprocessable('the query is too complex to parse; simplify it');
    else faults.malformed(parserComplaint(error));
    return undefined;
  }
}

/** Reports only the position: the parser's own message lists every token it expected, over many lines. */
function parserComplaint(error: unknown): string {
  const [, line, column] = parserPosition.exec(error instanceof Error ? error.message : '') ?? [];
  const where = line === undefined ? 'ends too early' : `does not parse at line ${line}, column ${column}`;
  return `the query ${where}; ${sqlForm}`;
}

/** Checks the clauses and FROM; returns the alias of the collection, if it has one. */
function readFrom(
  select: SelectFromStatement,
  target: Target,
  faults: FaultList,
): { readonly name: string | undefined } | undefined {
  for (const [clause, value] of Object.entries(select)) {
    const name = refusedClauses[clause];
    if (name === undefined || isNothing(value) || value === 'all') continue;
    faults.unprocessable(`${name} is not allowed in a query; ${sqlForm}`);
  }
  const [from, ...others] = select.from ?? [];
  if (from === undefined) faults.unprocessable(`FROM ${target.table} is missing`);
  else if (others.length > 0) faults.unprocessable(`a join is not allowed; FROM takes only ${target.table}`);
  else if (from.type !== 'table') {
    const what = from.type === 'call' ? 'a function' : 'a subquery';
    faults.unprocessable(`${what} is not allowed; FROM takes only ${target.table}`);
  } else if (from.join || from.lateral) {
    faults.unprocessable(`a join is not allowed; FROM takes only ${target.table}`);
  } else if (from.name.schema !== undefined || !isTable(from.name.name, target)) {
    const name = from.name.schema === undefined ? from.name.name : `${from.name.schema}.${from.name.name}`;
    faults.unprocessable(`unknown table ${quote(name)}; this resource is ${target.table}`);
  } else if (!isNothing(from.name.columnNames)) faults.unprocessable('columns cannot be renamed');
  else return { name: from.name.alias };
  return undefined;
}

function readColumns(select: SelectFromStatement, { fields, target, faults }: Reading): Selected {
  const chosen = new Set<Field>();
  let everything = false;
  for (const { expr, alias } of select.columns ?? []) {
    if (alias !== undefined) faults.unprocessable(`a field cannot be renamed to ${quote(alias.name)}`);
    if (expr.type !== 'ref') {
      faults.unprocessable(`SELECT takes * or fields, not ${describeConstruct(expr)}`);
      continue;
    }
    if (fields.isEverything(expr)) {
      everything = true;
      continue;
    }
    const field = fields.find(expr) ?? fields.findTag(expr);
    if (field === undefined) faults.unprocessable(unknownField(nameOf(expr), fields.fields));
    else chosen.add(field);
  }
  if (isNothing(select.columns)) faults.unprocessable('SELECT takes * or fields');
  return selectedOf(chosen, everything, target);
}

function readOrder(order: readonly OrderByStatement[], { fields, target, faults }: Reading): readonly Sort[] {
  const keys: Sort[] = [];
  const into = { keys, fields: target.fields, faults, place: undefined };
  for (const { by, order: direction, nulls } of order) {
    if (by.type !== 'ref') {
      faults.unprocessable(`ORDER BY takes fields, not ${describeConstruct(by)}`);
      continue;
    }
    const field = fields.find(by);
    const descending = direction === 'DESC';
    if (!isNothing(nulls) && (nulls === 'LAST') !== descending) {
      faults.unprocessable(
        'null sorts before every value: use NULLS FIRST with ASC and NULLS LAST with DESC',
      );
    }
    if (field === undefined) faults.unprocessable(unknownField(nameOf(by), fields.fields));
    else addKey({ field, direction: descending ? 'desc' : 'asc' }, into);
  }
  return totalOrder(keys, target.fields, false);
}

function readLimit(expression: Expr | null | undefined, { limits, faults }: Reading): number {
  if (isNothing(expression)) return limits.listLimitDefault;
  const value = literalOf(expression)?.value;
  const number = typeof value === 'number' ? value : undefined;
  const shown = value === undefined ? describeConstruct(expression) : show(value);
  const into = { shown, faults, place: undefined };
  return checkRange('LIMIT', number, limits.listLimitMax, into) ?? limits.listLimitDefault;
}

function readOffset(expression: Expr | null | undefined, { faults }: Reading): AskedPosition {
  if (isNothing(expression)) return { from: 'start' };
  const value = literalOf(expression)?.value;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) {
    return value === 0 ? { from: 'start' } : { from: 'offset', offset: value };
  }
  const shown = value === undefined ? describeConstruct(expression) : show(value);
  faults.unprocessable(`OFFSET must be an integer of at least 0, not ${shown}`);
  return { from: 'start' };
}

function isNothing<T>(value: T | null | undefined): value is null | undefined {
  return value === null || value === undefined;
}

// Reads aggregates in SQL (§4.18): `SELECT field, count(*), avg(price) AS mean FROM ... GROUP BY field HAVING count(*) > 2
// ORDER BY mean DESC`. Functions are count, sum, avg, min and max of one field, and `count(*)`. A result without AS is
// named as in JSON (`avg_price`). HAVING and ORDER BY may use a result by its name or by its expression, selected or not.

type Inputs = {
  /** The fields of the collection. */
  readonly fields: SqlFields;
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

function isAggregate(select: SelectFromStatement): boolean {
  return (
    (select.groupBy ?? []).length > 0 ||
    (select.having ?? undefined) !== undefined ||
    (select.columns ?? []).some(({ expr }) => expr.type === 'call')
  );
}

function readSqlAggregation(
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
