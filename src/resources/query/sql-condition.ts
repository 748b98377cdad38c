/**
 * Compiles WHERE and HAVING to a filter: comparisons of a field with literals, joined by AND, OR and NOT, in SQL's three-valued logic. A
 * fault names any other construct.
 */
import type { Field, Fields } from '../../model/field.ts';
import {
  allOf,
  always,
  anyOf,
  type Comparison,
  type Filter,
  negated,
  never,
  type Reach,
} from '../../model/filter.ts';
import {
  checkRelated,
  compare,
  describeValue,
  type Finding,
  findCompared,
  hasNull,
  isLike,
  isNull,
  membership,
  patternComplaint,
  readValue,
  type Value,
} from './conditions.ts';
import { cap, quote, show, unknownField } from './query-faults.ts';
import { nothing, type SqlCall, type SqlExpression, type SqlField, type SqlValue } from './sql-parse.ts';

type Comparisons = Readonly<Record<Comparison, Comparison>>;

const signs: Readonly<Record<string, Comparison>> = {
  '=': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'lte',
  '>': 'gt',
  '>=': 'gte',
};
const flipped: Comparisons = { eq: 'eq', ne: 'ne', lt: 'gt', lte: 'gte', gt: 'lt', gte: 'lte' };
const opposite: Comparisons = { eq: 'ne', ne: 'eq', lt: 'gte', lte: 'gt', gt: 'lte', gte: 'lt' };

export function compileSqlCondition(expression: SqlExpression, fields: SqlFields): Filter {
  const filter = new ConditionReading(fields).condition(expression).holds;
  const { finding } = fields;
  return finding.target.through === undefined ? filter : checkRelated(filter, finding);
}

/** One pass over one expression. It continues after a fault, to report further ones. */
class ConditionReading {
  readonly #fields: SqlFields;
  #nodes = 0;

  constructor(fields: SqlFields) {
    this.#fields = fields;
  }

  condition(expression: SqlExpression): Truth {
    this.#nodes += 1;
    const { filterNodesMax } = this.#fields.finding.limits;
    if (this.#nodes > filterNodesMax) {
      if (this.#nodes > filterNodesMax + 1) return unknown;
      return this.#fault(`a condition takes at most ${filterNodesMax} comparisons and connectives`);
    }
    if (expression.type === 'operation') {
      // NOT IN and IS NOT NULL are IN and IS NULL, inverted.
      const positive = expression.name.replace('NOT ', '');
      const found = this.#operation(positive, expression.items) ?? this.#notAllowed(expression);
      return positive === expression.name ? found : inverted(found);
    }
    if (this.#fields.isField(expression)) return this.#flag(expression);
    const value = expression.type === 'literal' ? expression.value : undefined;
    if (value === true || value === false) return value ? truth : inverted(truth);
    return value === null ? unknown : this.#notAllowed(expression);
  }

  #operation(op: string, items: readonly SqlExpression[]): Truth | undefined {
    const [left = nothing, right = nothing, high = nothing] = items;
    const comparison = signs[op];
    if (comparison !== undefined) return this.#comparison(comparison, left, right);
    switch (op) {
      case 'AND':
        return both(this.condition(left), this.condition(right));
      case 'OR':
        return either(this.condition(left), this.condition(right));
      case 'NOT':
        return inverted(this.condition(left));
      case 'IS NULL':
        return this.#nullness(left);
      case 'IS TRUE':
        return decided(this.condition(left).holds);
      case 'IS FALSE':
        return decided(this.condition(left).fails);
      case 'IN':
        return this.#membership(left, right.type === 'list' ? right.items : [right]);
      case 'BETWEEN':
        return both(this.#comparison('gte', left, right), this.#comparison('lte', left, high));
      case 'LIKE':
      case 'ILIKE':
        return this.#like(op, left, right);
      default:
        return undefined;
    }
  }

  #nullness(operand: SqlExpression): Truth {
    if (!this.#fields.isField(operand)) return this.#fault('IS NULL takes a field');
    const field = this.#fields.findCompared(operand);
    if (field === undefined) return unknown;
    if (field.type === 'json') return this.#selectable(field);
    return { holds: isNull(field, true), fails: isNull(field, false) };
  }

  /** A boolean field is a condition by itself. */
  #flag(named: SqlField): Truth {
    const field = this.#fields.findCompared(named);
    if (field === undefined) return unknown;
    if (field.type !== 'boolean')
      return this.#fault(`${quote(field.name)} is not a condition; compare it with a literal`);
    return { holds: compare(field, 'eq', true), fails: compare(field, 'eq', false) };
  }

  #comparison(op: Comparison, left: SqlExpression, right: SqlExpression): Truth {
    if (left.type === 'literal') {
      if (right.type === 'literal') return this.#compareLiterals(op, left.value, right.value);
      if (this.#fields.isField(right)) return this.#compareField(flipped[op], right, left.value);
      return right.type === 'any' ? this.#element(op, left.value, right.items) : this.#notAllowed(right);
    }
    if (!this.#fields.isField(left)) return this.#notAllowed(left);
    if (right.type === 'literal') return this.#compareField(op, left, right.value);
    if (!this.#fields.isField(right)) return this.#notAllowed(right);
    return this.#fault('two fields cannot be compared with each other');
  }

  #compareField(op: Comparison, named: SqlField, literal: SqlValue): Truth {
    const field = this.#scalar(named);
    const value = this.#value(field, literal);
    if (field === undefined || value === undefined) return unknown;
    const holds = compare(field, op, value);
    const fails = compare(field, opposite[op], value);
    if (op === 'eq') return { holds, fails: present(field, fails) };
    return op === 'ne' ? { holds: present(field, holds), fails } : { holds, fails };
  }

  /**
   * `'x' = ANY (tags)`. An array that has a null but not the value is unknown. `NULL = ANY` is refused: it is false for
   * an empty array and unknown for others, which no filter can tell apart.
   */
  #element(op: Comparison, literal: SqlValue, [array, ...others]: readonly SqlExpression[]): Truth {
    if (op !== 'eq' || literal === null || array?.type !== 'field' || others.length > 0)
      return this.#fault(`write ANY as 'value' = ANY (field)`);
    const field = this.#fields.findCompared(array);
    if (field === undefined) return unknown;
    if (field.type !== 'array')
      return this.#fault(`ANY takes an array field; ${quote(field.name)} is not one`);
    const value = this.#value(field, literal);
    if (value === undefined) return unknown;
    const nullFree: Filter = { op: 'not', filter: hasNull(field) };
    return {
      holds: compare(field, 'eq', value),
      fails: allOf([compare(field, 'ne', value), nullFree, isNull(field, false)]),
    };
  }

  /** Programs that append conditions start with `WHERE 1 = 1`. */
  #compareLiterals(op: Comparison, one: SqlValue, other: SqlValue): Truth {
    if (one === null || other === null) return unknown;
    if ((op === 'eq' || op === 'ne') && typeof one === typeof other)
      return (one === other) === (op === 'eq') ? truth : inverted(truth);
    return this.#fault('a literal must be compared with a field');
  }

  #membership(left: SqlExpression, items: readonly SqlExpression[]): Truth {
    if (!this.#fields.isField(left)) return this.#fault('IN takes a field on its left');
    const field = this.#scalar(left);
    if (field === undefined) return unknown;
    const { inValuesMax } = this.#fields.finding.limits;
    if (items.length > inValuesMax) {
      return this.#fault(`IN takes at most ${inValuesMax} values, not ${items.length}`);
    }
    const values: Value[] = [];
    for (const item of items) {
      if (item.type !== 'literal') return this.#fault(`IN takes a list of literals, not ${item.words}`);
      const value = this.#value(field, item.value);
      if (value !== undefined) values.push(value);
    }
    const among = membership(field, values);
    // If the list has a null, a value that is not in the list may still equal it.
    const isNullListed = values.length < items.length;
    return { holds: among, fails: isNullListed ? never : present(field, negated(among)) };
  }

  #like(op: 'LIKE' | 'ILIKE', left: SqlExpression, right: SqlExpression): Truth {
    if (!this.#fields.isField(left) || right.type !== 'literal')
      return this.#fault(`write ${op} as field ${op} 'pattern'`);
    const field = this.#fields.findCompared(left);
    if (field === undefined) return unknown;
    if (field.type !== 'string')
      return this.#fault(`${op} takes a string field; ${quote(field.name)} is not one`);
    const pattern = this.#value(field, right.value);
    if (typeof pattern !== 'string') return unknown;
    const complaint = patternComplaint(pattern);
    if (complaint !== undefined) return this.#fault(complaint);
    const like = isLike(field, op === 'LIKE' ? 'like' : 'ilike', pattern);
    return { holds: like, fails: present(field, negated(like)) };
  }

  /** Returns undefined for null, and after a fault. */
  #value(field: Field | undefined, value: SqlValue): Value | undefined {
    if (field === undefined || value === null) return undefined;
    const read = readValue(field, value);
    if (read === undefined)
      this.#fault(`${cap(field.name)} takes ${describeValue(field)}, not ${show(value)}`);
    return read;
  }

  #scalar(named: SqlField): Field | undefined {
    const field = this.#fields.findCompared(named);
    if (field?.type === 'array')
      this.#fault(`${quote(field.name)} is an array; compare it as 'value' = ANY (${cap(field.name)})`);
    else if (field?.type === 'json') this.#selectable(field);
    else return field;
    return undefined;
  }

  #selectable(field: Field): Truth {
    return this.#fault(`${quote(field.name)} can be selected, not compared`);
  }

  #notAllowed(expression: SqlExpression): Truth {
    return this.#fault(`${expression.words} is not allowed in a condition`);
  }

  #fault(message: string): Truth {
    this.#fields.finding.faults.unprocessable(message);
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
  return inverted(both(inverted(one), inverted(other)));
}

function inverted({ holds, fails }: Truth): Truth {
  return { holds: fails, fails: holds };
}

/** A condition that is never unknown, such as the result of IS TRUE. */
function decided(filter: Filter): Truth {
  return { holds: filter, fails: negated(filter) };
}

/** Limits a filter to rows that have the field; `ne` and `not` also match rows without it. */
function present(field: Field, filter: Filter): Filter {
  return allOf([filter, isNull(field, false)]);
}

// The names of fields in SQL. A name is looked up as written, which is in lower case without quotes, and then without regard to case.
// `address.city` is the nested field, unless `address` names the collection.

export class SqlFields {
  readonly finding: Finding;
  readonly #qualifiers: ReadonlySet<string>;
  readonly #columnOf: ((call: SqlCall) => Field | undefined) | undefined;

  /**
   * @param alias the name that FROM gives the collection, if any
   * @param columnOf the column of an aggregate, where one may stand for a field; undefined after a fault
   */
  constructor(finding: Finding, alias: string | undefined, columnOf?: (call: SqlCall) => Field | undefined) {
    const table = finding.target.table.toLowerCase();
    this.finding = finding;
    this.#qualifiers = new Set([table, alias?.toLowerCase() ?? table]);
    this.#columnOf = columnOf;
  }

  isField(expression: SqlExpression): expression is SqlField {
    return expression.type === 'field' || (expression.type === 'call' && this.#columnOf !== undefined);
  }

  /** Finds a field by its name, or the column of an aggregate. @param takes begins the fault of any other expression */
  find(expression: SqlExpression, takes: string): Field | undefined {
    if (expression.type === 'call' && this.#columnOf !== undefined) return this.#columnOf(expression);
    const { faults, target } = this.finding;
    const isEverything = this.isEverything(expression);
    if (expression.type === 'field' && !isEverything) {
      const field = this.#named(expression.name);
      if (field === undefined) faults.unprocessable(unknownField(expression.name, target.fields));
      return field;
    }
    faults.unprocessable(`${takes}, not ${isEverything ? '*' : expression.words}`);
    return undefined;
  }

  /** The same in a condition, which also compares fields beyond references. */
  findCompared(expression: SqlField): Field | undefined {
    if (expression.type === 'call') return this.#columnOf?.(expression);
    return this.#named(expression.name) ?? findCompared(this.#pathOf(expression.name), this.finding);
  }

  /** The entity tag, which SELECT alone takes. */
  findTag(expression: SqlExpression): Field | undefined {
    const { tag } = this.finding.target;
    if (expression.type !== 'field' || this.#named(expression.name) !== undefined) return undefined;
    return this.#unqualified(expression.name).toLowerCase() === tag?.name ? tag : undefined;
  }

  /** True if the expression is `*` or `collection.*`. */
  isEverything(expression: SqlExpression): boolean {
    return expression.type === 'field' && this.#unqualified(expression.name) === '*';
  }

  /** The name of a field beyond references, as its collections spell it: `customerid.organisationid` is unquoted. */
  #pathOf(name: string): string {
    const [first = '', ...rest] = name.split('.');
    const isQualified = rest.length > 1 && this.#qualifiers.has(first.toLowerCase());
    const written = isQualified && this.#spelt(first) === undefined ? rest : [first, ...rest];
    const spelt: string[] = [];
    let at: Reach | undefined = this.finding.target;
    for (const part of written) {
      const known: string = at === undefined ? part : spelling(at.fields, part);
      spelt.push(known);
      at = at?.through?.(known);
    }
    return spelt.join('.');
  }

  #named(name: string): Field | undefined {
    return this.#spelt(this.#unqualified(name)) ?? this.#spelt(name);
  }

  /** The name without that of the collection before it. */
  #unqualified(name: string): string {
    const dot = name.indexOf('.');
    const isQualified = dot !== -1 && this.#qualifiers.has(name.slice(0, dot).toLowerCase());
    return isQualified ? name.slice(dot + 1) : name;
  }

  #spelt(name: string): Field | undefined {
    return this.finding.target.fields.get(spelling(this.finding.target.fields, name));
  }
}

/** The one name that differs at most in case; otherwise the name as written. */
function spelling(fields: Fields, name: string): string {
  if (fields.has(name)) return name;
  const folded = name.toLowerCase();
  const [only, other] = [...fields.keys()].filter((known) => known.toLowerCase() === folded);
  return only === undefined || other !== undefined ? name : only;
}
