/**
 * The `filter` of a JSON query (§4.9): `{"price": 10}` equality, `{"price": {"gte": 10, "lt": 20}}` operators, `"and": [...]`,
 * `"or": [...]`, `"not": {...}`; several members must all hold. Null is absent or null. On an array field equality is
 * membership. An empty `and` holds for everything, an empty `or` or `in` for nothing.
 *
 * A field named `and`, `or` or `not` cannot be named here; a form (`and[eq]=`) and SQL (`"and"`) can.
 */
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Field, Fields, Scalar } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter } from '../../model/filter.ts';
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
import { cap, type FaultList, listed, quote, show, unknownField } from './faults.ts';
import { describeValue, readValue, valueType } from './field-value.ts';

type JsonOperator = Exclude<Operator, 'null'>;

const pointerTokenCharactersMax = 64;

/** Compiles within `filterDepthMax` and `filterNodesMax`; beyond them nothing more is looked at. */
export function compileJsonFilter(
  value: unknown,
  fields: Fields,
  limits: QueryLimits,
  faults: FaultList,
): Filter {
  return new FilterReading(fields, limits, faults).conjunction(value, 0);
}

/** One pass over one filter. `#path` is where it stands, for pointers. */
class FilterReading {
  readonly #fields: Fields;
  readonly #limits: QueryLimits;
  readonly #faults: FaultList;
  readonly #path: (string | number)[] = ['filter'];
  #nodes = 0;

  constructor(fields: Fields, limits: QueryLimits, faults: FaultList) {
    this.#fields = fields;
    this.#limits = limits;
    this.#faults = faults;
  }

  conjunction(value: unknown, depth: number): Filter {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#fault(`a filter is an object of fields, and, or, not; not ${show(value)}`);
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
    const field = this.#fields.get(name);
    if (field === undefined) return this.#fault(unknownField(name, this.#fields));
    if (operatorsOf(field).length === 0) return this.#fault(`${quote(name)} can be selected, not compared`);
    if (Array.isArray(value))
      return this.#fault(`to compare ${quote(name)} with several values, use {"in": [...]}`);
    if (typeof value !== 'object' || value === null) return this.#apply(field, 'eq', value);
    const filters: Filter[] = [];
    for (const [written, operand] of Object.entries(value)) {
      if (this.#isFull()) break;
      this.#path.push(written);
      const operator = written === 'null' ? undefined : findOperator(field, written);
      if (operator === undefined || operator === 'null') this.#unknownOperator(field, written);
      else filters.push(this.#apply(field, operator, operand));
      this.#path.pop();
    }
    if (filters.length === 0 && this.#faults.isEmpty) this.#fault(`${quote(name)} is given no operator`);
    return allOf(filters);
  }

  #apply(field: Field, operator: JsonOperator, operand: unknown): Filter {
    if (!this.#countNode()) return always;
    if (operator === 'in') return this.#membership(field, operand);
    if (operand === null && (operator === 'eq' || operator === 'ne')) return isNull(field, operator === 'eq');
    const value = readValue(valueType(field), operand);
    if (value === undefined) return this.#fault(wrongValue(field, operand));
    if (operator !== 'like') return compare(field, operator, value);
    const pattern = String(value);
    const complaint = patternComplaint(pattern);
    return complaint === undefined ? { op: 'like', field, pattern } : this.#fault(complaint);
  }

  #membership(field: Field, operand: unknown): Filter {
    if (!Array.isArray(operand)) return this.#fault(`in takes an array of values, not ${show(operand)}`);
    const { inValuesMax } = this.#limits;
    if (operand.length > inValuesMax) {
      return this.#fault(`in takes at most ${inValuesMax} values, not ${operand.length}`);
    }
    const type = valueType(field);
    const values: Scalar[] = [];
    for (const [index, item] of operand.entries()) {
      const value = item === null ? null : readValue(type, item);
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
    const operators = operatorsOf(field).filter((operator) => operator !== 'null');
    this.#fault(
      `unknown operator ${quote(written)} for ${quote(field.name)}; operators: ${listed(operators)}`,
    );
  }

  /** Counts one comparison or connective; false from the first one too many on. */
  #countNode(): boolean {
    this.#nodes += 1;
    const { filterNodesMax } = this.#limits;
    if (this.#nodes <= filterNodesMax) return true;
    const message = `a filter takes at most ${filterNodesMax} comparisons and connectives`;
    if (this.#nodes === filterNodesMax + 1) this.#faults.unprocessable(message, { pointer: '/filter' });
    return false;
  }

  #isFull(): boolean {
    return this.#nodes > this.#limits.filterNodesMax;
  }

  /** The filter it gives back is never run: the query has a fault. */
  #fault(message: string): Filter {
    this.#faults.unprocessable(message, { pointer: this.#pointer() });
    return always;
  }

  /** To the parent where a name is too long to be worth echoing. */
  #pointer(): string {
    const long = this.#path.findIndex((token) => String(token).length > pointerTokenCharactersMax);
    return formatJsonPointer(long === -1 ? this.#path : this.#path.slice(0, long));
  }
}

function wrongValue(field: Field, value: unknown): string {
  return `${cap(field.name)} takes ${describeValue(field)}, not ${show(value)}`;
}
