/**
 * Compiles WHERE to a filter: comparisons of a field with literals, joined by AND, OR and NOT, in SQL's three-valued
 * logic. A fault names any other construct.
 */
import type { Expr, ExprBinary, ExprCall, ExprRef, ExprTernary, ExprUnary } from 'pgsql-ast-parser';
import type { Field } from '../../model/field.ts';
import { allOf, always, anyOf, type Comparison, type Filter, never } from '../../model/filter.ts';
import { compare, hasNull, isLike, isNull, membership, patternComplaint } from './comparison.ts';
import { describeValue, readValue, type Value, valueType } from './field-value.ts';
import type { QueryLimits } from './list-query.ts';
import { cap, type FaultList, quote, show } from './query-faults.ts';
import { checkRelated, type Finding, findCompared } from './reference-path.ts';
import { describeConstruct, type Literal, literalOf, type SqlFields } from './sql-fields.ts';

const comparisons: ReadonlyMap<string, Comparison> = new Map([
  ['=', 'eq'],
  ['!=', 'ne'],
  ['<', 'lt'],
  ['<=', 'lte'],
  ['>', 'gt'],
  ['>=', 'gte'],
]);

const flipped: Readonly<Record<Comparison, Comparison>> = {
  eq: 'eq',
  ne: 'ne',
  lt: 'gt',
  lte: 'gte',
  gt: 'lt',
  gte: 'lte',
};

const opposite: Readonly<Record<Comparison, Comparison>> = {
  eq: 'ne',
  ne: 'eq',
  lt: 'gte',
  lte: 'gt',
  gt: 'lte',
  gte: 'lt',
};

export function compileSqlCondition(expression: Expr, fields: SqlFields, finding: Finding): Filter {
  const filter = new ConditionReading(fields, finding).condition(expression).holds;
  return finding.target.through === undefined ? filter : checkRelated(filter, finding);
}

/** One pass over one expression. It continues after a fault, to report further ones. */
class ConditionReading {
  readonly #fields: SqlFields;
  readonly #limits: QueryLimits;
  readonly #faults: FaultList;
  readonly #finding: Finding;
  #nodes = 0;

  constructor(fields: SqlFields, finding: Finding) {
    this.#fields = fields;
    this.#finding = finding;
    this.#limits = finding.limits;
    this.#faults = finding.faults;
  }

  condition(expression: Expr): Truth {
    this.#nodes += 1;
    const { filterNodesMax } = this.#limits;
    if (this.#nodes > filterNodesMax) {
      if (this.#nodes > filterNodesMax + 1) return unknown;
      return this.#fault(`a condition takes at most ${filterNodesMax} comparisons and connectives`);
    }
    switch (expression.type) {
      case 'binary':
        return this.#binary(expression);
      case 'unary':
        return this.#unary(expression);
      case 'ternary':
        return this.#between(expression);
      case 'ref':
        return this.#flag(expression);
      case 'boolean':
        return expression.value ? truth : negated(truth);
      case 'null':
        return unknown;
      default:
        return this.#notAllowed(expression);
    }
  }

  #binary(expression: ExprBinary): Truth {
    const { op, left, right } = expression;
    if (expression.opSchema !== undefined) return this.#fault('an operator must not have a schema');
    if (op === 'AND' || op === 'OR') {
      const one = this.condition(left);
      const other = this.condition(right);
      return op === 'AND' ? both(one, other) : either(one, other);
    }
    if (op === 'IN' || op === 'NOT IN') return negatedIf(op === 'NOT IN', this.#membership(left, right));
    if (op === 'LIKE' || op === 'NOT LIKE') return negatedIf(op === 'NOT LIKE', this.#like(left, right));
    const comparison = comparisons.get(op);
    return comparison === undefined
      ? this.#notAllowed(expression)
      : this.#comparison(comparison, left, right);
  }

  #unary({ op, operand, ...expression }: ExprUnary): Truth {
    switch (op) {
      case 'NOT':
        return negated(this.condition(operand));
      case 'IS NULL':
      case 'IS NOT NULL':
        return this.#nullness(operand, op === 'IS NULL');
      case 'IS TRUE':
      case 'IS NOT TRUE':
        return negatedIf(op === 'IS NOT TRUE', decided(this.condition(operand).holds));
      case 'IS FALSE':
      case 'IS NOT FALSE':
        return negatedIf(op === 'IS NOT FALSE', decided(this.condition(operand).fails));
      default:
        return this.#notAllowed({ op, operand, ...expression });
    }
  }

  #nullness(operand: Expr, expected: boolean): Truth {
    if (operand.type !== 'ref') return this.#fault('IS NULL takes a field');
    const field = this.#find(operand);
    if (field === undefined) return unknown;
    if (field.type === 'json') return this.#selectable(field);
    return { holds: isNull(field, expected), fails: isNull(field, !expected) };
  }

  /** A boolean field is a condition by itself. */
  #flag(ref: ExprRef): Truth {
    const field = this.#find(ref);
    if (field === undefined) return unknown;
    if (field.type !== 'boolean')
      return this.#fault(`${quote(field.name)} is not a condition; compare it with a literal`);
    return { holds: compare(field, 'eq', true), fails: compare(field, 'eq', false) };
  }

  #comparison(op: Comparison, left: Expr, right: Expr): Truth {
    const one = literalOf(left);
    const other = literalOf(right);
    if (left.type === 'ref' && other !== undefined) return this.#compareField(op, left, other);
    if (one !== undefined && right.type === 'ref') return this.#compareField(flipped[op], right, one);
    if (one !== undefined && right.type === 'call') return this.#element(op, one, right);
    if (one !== undefined && other !== undefined) return this.#compareLiterals(op, one.value, other.value);
    if (left.type === 'ref' && right.type === 'ref')
      return this.#fault('two fields cannot be compared with each other');
    return this.#notAllowed(one === undefined && left.type !== 'ref' ? left : right);
  }

  #compareField(op: Comparison, ref: ExprRef, literal: Literal): Truth {
    const field = this.#scalar(ref);
    if (field === undefined) return unknown;
    const value = this.#value(field, literal);
    if (value === undefined) return unknown;
    const holds = compare(field, op, value);
    const fails = compare(field, opposite[op], value);
    if (op === 'eq') return { holds, fails: present(field, fails) };
    return op === 'ne' ? { holds: present(field, holds), fails } : { holds, fails };
  }

  /**
   * `'x' = ANY (tags)`. An array that has a null but not the value is unknown. `NULL = ANY` is refused: it is false for
   * an empty array and unknown for others, which no filter can tell apart.
   */
  #element(op: Comparison, literal: Literal, call: ExprCall): Truth {
    const { name } = call.function;
    const [array, ...others] = call.args;
    if ((name !== 'any' && name !== 'some') || call.function.schema !== undefined)
      return this.#notAllowed(call);
    if (op !== 'eq' || literal.value === null || array?.type !== 'ref' || others.length > 0)
      return this.#fault(`write ANY as 'value' = ANY (field)`);
    const field = this.#find(array);
    if (field === undefined) return unknown;
    if (field.type !== 'array')
      return this.#fault(`ANY takes an array field; ${quote(field.name)} is not one`);
    const value = this.#value(field, literal);
    if (value === undefined) return unknown;
    const nothing: Filter = { op: 'not', filter: hasNull(field) };
    return {
      holds: compare(field, 'eq', value),
      fails: allOf([compare(field, 'ne', value), nothing, isNull(field, false)]),
    };
  }

  /** Programs that append conditions start with `WHERE 1 = 1`. */
  #compareLiterals(op: Comparison, one: Literal['value'], other: Literal['value']): Truth {
    if (one === null || other === null) return unknown;
    if (op === 'eq' && typeof one === typeof other) return negatedIf(one !== other, truth);
    if (op === 'ne' && typeof one === typeof other) return negatedIf(one === other, truth);
    return this.#fault('a literal must be compared with a field');
  }

  #membership(left: Expr, right: Expr): Truth {
    if (left.type !== 'ref') return this.#fault('IN takes a field on its left');
    const field = this.#scalar(left);
    if (field === undefined) return unknown;
    const items = right.type === 'list' ? right.expressions : [right];
    if (items.length > this.#limits.inValuesMax) {
      return this.#fault(`IN takes at most ${this.#limits.inValuesMax} values, not ${items.length}`);
    }
    const values: Value[] = [];
    for (const item of items) {
      const literal = literalOf(item);
      if (literal === undefined)
        return this.#fault(`IN takes a list of literals, not ${describeConstruct(item)}`);
      const value = this.#value(field, literal);
      if (value !== undefined) values.push(value);
    }
    const among = membership(field, values);
    // If the list has a null, a value that is not in the list may still equal it.
    const hasNull = values.length < items.length;
    return { holds: among, fails: hasNull ? never : present(field, negate(among)) };
  }

  #between({ op, value, lo, hi }: ExprTernary): Truth {
    const from = this.#comparison('gte', value, lo);
    const to = this.#comparison('lte', value, hi);
    return negatedIf(op === 'NOT BETWEEN', both(from, to));
  }

  #like(left: Expr, right: Expr): Truth {
    const literal = literalOf(right);
    if (left.type !== 'ref' || literal === undefined)
      return this.#fault(`write LIKE as field LIKE 'pattern'`);
    const field = this.#find(left);
    if (field === undefined) return unknown;
    if (field.type !== 'string')
      return this.#fault(`LIKE takes a string field; ${quote(field.name)} is not one`);
    const pattern = this.#value(field, literal);
    if (typeof pattern !== 'string') return unknown;
    const complaint = patternComplaint(pattern);
    if (complaint !== undefined) return this.#fault(complaint);
    const like = isLike(field, pattern);
    return { holds: like, fails: present(field, negate(like)) };
  }

  /** Returns undefined for null, and after a fault. */
  #value(field: Field, { value }: Literal): Value | undefined {
    if (value === null) return undefined;
    const type = valueType(field);
    const read = readValue(type, value);
    if (read === undefined)
      this.#fault(`${cap(field.name)} takes ${describeValue(field)}, not ${show(value)}`);
    return read;
  }

  #scalar(ref: ExprRef): Field | undefined {
    const field = this.#find(ref);
    if (field?.type === 'array')
      this.#fault(`${quote(field.name)} is an array; compare it as 'value' = ANY (${cap(field.name)})`);
    else if (field?.type === 'json') this.#selectable(field);
    else return field;
    return undefined;
  }

  #find(ref: ExprRef): Field | undefined {
    const field = this.#fields.find(ref);
    return field ?? findCompared(this.#fields.pathOf(ref), this.#finding);
  }

  #selectable(field: Field): Truth {
    return this.#fault(`${quote(field.name)} can be selected, not compared`);
  }

  #notAllowed(expression: Expr): Truth {
    return this.#fault(`${describeConstruct(expression)} is not allowed in a condition`);
  }

  #fault(message: string): Truth {
    this.#faults.unprocessable(message);
    return unknown;
  }
}

/**
 * A condition in SQL's three-valued logic, which model/filter.ts does not have: the rows where it is true and the rows where
 * it is false; on all others it is unknown. NOT swaps the two, AND and OR combine them (De Morgan), and WHERE keeps the
 * first. Both grow linearly with the text.
 */
type Truth = { readonly holds: Filter; readonly fails: Filter };

const unknown: Truth = { holds: never, fails: never };
const truth: Truth = { holds: always, fails: never };

function both(one: Truth, other: Truth): Truth {
  return { holds: allOf([one.holds, other.holds]), fails: anyOf([one.fails, other.fails]) };
}

function either(one: Truth, other: Truth): Truth {
  return { holds: anyOf([one.holds, other.holds]), fails: allOf([one.fails, other.fails]) };
}

function negated({ holds, fails }: Truth): Truth {
  return { holds: fails, fails: holds };
}

function negatedIf(condition: boolean, value: Truth): Truth {
  return condition ? negated(value) : value;
}

/** A condition that is never unknown, such as the result of IS TRUE. */
function decided(filter: Filter): Truth {
  return { holds: filter, fails: negate(filter) };
}

/** Matches every row that the filter does not, rows without the field included. */
function negate(filter: Filter): Filter {
  switch (filter.op) {
    case 'always':
      return never;
    case 'never':
      return always;
    case 'not':
      return filter.filter;
    default:
      return { op: 'not', filter };
  }
}

/** Limits a filter to rows that have the field; `ne` and `not` also match rows without it. */
function present(field: Field, filter: Filter): Filter {
  return allOf([filter, isNull(field, false)]);
}
