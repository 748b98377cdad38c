/**
 * Conditions of access functions on the fields of a resource (§5.1): `resource.region.in([...])`. Each builds a
 * `Filter`, which judges one resource and selects many, so that a rule is written once. Values are checked at once.
 *
 * Two-valued, like filters. No value equals null: `owner.is(null)`, which a caller without an id would produce, never
 * holds, and `isNot(null)` always does. Use `isAbsent` to test for absence.
 */
import type { Field, Scalar, ScalarType } from './field.ts';
import {
  allOf,
  along,
  always,
  anyOf,
  type Comparison,
  type Filter,
  negated,
  never,
  type Reach,
  type Step,
} from './filter.ts';
import { instantWords, keptInstant } from './timestamp.ts';

export const ruleValuesMax = 1000;
/** References that a path of a rule may lead through. */
export const ruleReferencesMax = 3;

export class AccessFunctionError extends Error {
  override readonly name = 'AccessFunctionError';
}

/** A condition on a resource. Combine conditions with `and`, `or`, `not`: JavaScript's operators see only an object. */
export class Condition {
  readonly #filter: Filter;
  readonly #writing: Writing;

  constructor(filter: Filter, writing: Writing) {
    this.#filter = filter;
    this.#writing = writing;
    writing.unused.add(this);
  }

  and(...others: readonly (Condition | boolean)[]): Condition {
    return new Condition(
      allOf([this.#take(this), ...others.map((other) => this.#take(other))]),
      this.#writing,
    );
  }

  or(...others: readonly (Condition | boolean)[]): Condition {
    return new Condition(
      anyOf([this.#take(this), ...others.map((other) => this.#take(other))]),
      this.#writing,
    );
  }

  not(): Condition {
    return new Condition(negated(this.#take(this)), this.#writing);
  }

  static filterOf(result: unknown, writing: Writing): Filter {
    const filter = taken(result, writing);
    if (writing.unused.size > 0) {
      throw new AccessFunctionError(
        'a condition is not part of the result; join conditions with .and(), .or() and .not(), never with &&, ! or ?:',
      );
    }
    return filter;
  }

  #take(part: Condition | boolean): Filter {
    return taken(part, this.#writing);
  }

  /** The filter of a condition of this call; undefined for anything else. */
  static of(value: unknown, writing: Writing): Filter | undefined {
    return value instanceof Condition && value.#writing === writing ? value.#filter : undefined;
  }
}

/** One call of an access function: its conditions belong to it alone, and each must be part of its result. */
export type Writing = { readonly unused: Set<Condition> };

function taken(value: unknown, writing: Writing): Filter {
  if (typeof value === 'boolean') return value ? always : never;
  const filter = Condition.of(value, writing);
  if (filter === undefined) {
    throw new AccessFunctionError(
      `an access function must return true, false or a condition on its resource, not ${kindOf(value)}`,
    );
  }
  writing.unused.delete(value as Condition);
  return filter;
}

function kindOf(value: unknown): string {
  if (value instanceof Condition) return 'a condition of another call';
  if (value instanceof Promise) return 'a promise';
  return value === null ? 'null' : `a value of type ${typeof value}`;
}

/**
 * The resource as an access function sees it: an expression for every field, and on that of a reference the fields of the resource that it
 * names, which are made when the function asks for them.
 */
export function expressionsOf(
  { fields, through }: Pick<Reach, 'fields' | 'through'>,
  owner: Field,
  writing: Writing,
  steps: readonly Step[] = [],
): object {
  const root: Expressions = Object.create(null) as Expressions;
  for (const field of fields.values()) {
    let at = root;
    for (const name of field.path.slice(0, -1)) {
      at[name] ??= Object.create(null) as Expressions;
      at = at[name] as Expressions;
    }
    const expression = expressionOf(field, steps, writing);
    const beyond = steps.length < ruleReferencesMax ? through?.(field.name) : undefined;
    at[field.path.at(-1) ?? ''] =
      beyond === undefined
        ? expression
        : withFieldsOf(beyond, expression, () =>
            expressionsOf(beyond, owner, writing, [...steps, { field, table: beyond.table }]),
          );
  }
  root.owner = expressionOf(owner, steps, writing);
  return root;
}

type Expressions = { [name: string]: object };

/** A field whose name is that of a comparison cannot be reached so; `where` can name it. */
function withFieldsOf({ fields }: Reach, expression: object, make: () => object): object {
  let made: Expressions | undefined;
  const names = new Set(['owner', ...[...fields.values()].map(({ path }) => path[0] ?? '')]);
  for (const name of names) {
    if (Object.hasOwn(expression, name)) continue;
    const get = (): unknown => {
      made ??= make() as Expressions;
      return made[name];
    };
    Object.defineProperty(expression, name, { get, enumerable: true });
  }
  return expression;
}

function expressionOf(field: Field, steps: readonly Step[], writing: Writing): object {
  if (field.type === 'json') return Object.create(null) as object;
  const type = field.type === 'array' ? (field.item ?? 'string') : field.type;
  const write = (filter: Filter) => new Condition(filter, writing);
  /** A condition on the resource at the end of the path. */
  const there = (filter: Filter) => (filter.op === 'never' ? never : along(steps, filter));
  if (field.type === 'array') {
    return {
      has: (value: unknown) =>
        write(isNothing(value) ? never : there({ op: 'has', field, value: checked(field, type, value) })),
    };
  }
  const compare = (op: Exclude<Comparison, 'ne'>) => (value: unknown) =>
    write(isNothing(value) ? never : there({ op, field, value: checked(field, type, value) }));
  return {
    is: compare('eq'),
    isNot: (value: unknown) =>
      write(isNothing(value) ? always : differs(field, steps, checked(field, type, value))),
    in: (values: Iterable<unknown>) => write(there(within(field, type, values))),
    isAbsent: () => write(equals(field, steps, null)),
    isPresent: () => write(there({ op: 'ne', field, value: null })),
    gt: compare('gt'),
    gte: compare('gte'),
    lt: compare('lt'),
    lte: compare('lte'),
  };
}

/** The field at the end of the path has the value, or is absent: it is where the path leads to nothing. */
export function equals(field: Field, steps: readonly Step[], value: Scalar): Filter {
  if (value !== null || steps.length === 0) return along(steps, { op: 'eq', field, value });
  return { op: 'not', filter: along(steps, { op: 'ne', field, value }) };
}

function differs(field: Field, steps: readonly Step[], value: Scalar): Filter {
  if (steps.length === 0) return { op: 'ne', field, value };
  return { op: 'not', filter: along(steps, { op: 'eq', field, value }) };
}

function within(field: Field, type: ScalarType, values: Iterable<unknown>): Filter {
  const kept: Scalar[] = [];
  for (const value of values) if (!isNothing(value)) kept.push(checked(field, type, value));
  if (kept.length > ruleValuesMax) {
    throw new AccessFunctionError(`${field.name} is compared with more than ${ruleValuesMax} values`);
  }
  return kept.length === 0 ? never : { op: 'in', field, values: kept };
}

function isNothing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

const wanted: Readonly<Record<ScalarType, string>> = {
  string: 'a string without U+0000',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  timestamp: instantWords,
};

function checked(field: Field, type: ScalarType, value: unknown): Scalar {
  const kept = type === 'timestamp' && typeof value === 'string' ? keptInstant(value) : value;
  if (fits(type, kept)) return kept;
  throw new AccessFunctionError(`${field.name} can be compared only with ${wanted[type]}`);
}

function fits(type: ScalarType, value: unknown): value is Scalar {
  switch (type) {
    case 'string':
      return typeof value === 'string' && !value.includes('\0') && value.isWellFormed();
    case 'timestamp':
      return typeof value === 'string';
    case 'number':
      return Number.isFinite(value);
    case 'integer':
      return Number.isInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
  }
}
