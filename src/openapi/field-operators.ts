/** Schemas of the operators for each type of field: those of `price[gte]=10` and of a JSON filter. */

import type { Item } from '../kernel/documentation.ts';
import type { Field, Fields, ScalarType } from '../model/field.ts';
import { type Operator, operatorsOf } from '../resources/query/comparison.ts';
import type { Components } from './components.ts';

const scalar: Readonly<Record<ScalarType, Item>> = {
  string: { type: 'string' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  timestamp: {
    ...{ type: 'string', format: 'date-time' },
    description: 'An instant: any offset of RFC 3339, or a day, which means its first moment in UTC.',
  },
};

export function filterable(fields: Fields): readonly Field[] {
  return [...fields.values()].filter((field) => operatorsOf(field).length > 0);
}

export function sortable(fields: Fields): readonly Field[] {
  return filterable(fields).filter(({ type }) => type !== 'array');
}

/** The schema of one value of the field; for an array, of one element. */
export function valueSchema({ type, item }: Field): Item {
  const scalarType = type === 'array' ? item : type;
  return scalarType === undefined || scalarType === 'json' ? {} : scalar[scalarType];
}

/**
 * The field's operators as properties of an object, stored once for each type of field.
 * @param form in a query string, `in` is a comma list and `null` an operator; in JSON, `in` is an array, null a value
 */
export function operatorSchema(field: Field, form: 'text' | 'json', components: Components): Item {
  const type = field.type === 'array' ? `${field.item ?? ''}-array` : field.type;
  return components.add(
    'schemas',
    `${type}-${form === 'text' ? 'parameters' : 'condition'}`,
    operators(field, form),
  );
}

function operators(field: Field, form: 'text' | 'json'): Item {
  const value = valueSchema(field);
  const orNull = form === 'json' ? orNullSchema(field) : value;
  const special: Readonly<Partial<Record<Operator, Item>>> = {
    eq: orNull,
    ne: orNull,
    in: form === 'json' ? { type: 'array', items: orNull } : commaList,
    like: pattern,
    null: { type: 'boolean', description: '`true`: absent or null; `false`: neither.' },
  };
  // In JSON, null is a value and needs no operator.
  const taken = operatorsOf(field).filter((operator) => form === 'text' || operator !== 'null');
  const properties = Object.fromEntries(taken.map((operator) => [operator, special[operator] ?? value]));
  return { type: 'object', properties, additionalProperties: false };
}

/** A value for equality in JSON: null matches absent and null members. */
export function orNullSchema(field: Field): Item {
  const value = valueSchema(field);
  return { ...value, type: [value.type, 'null'] };
}

const commaList: Item = { type: 'string', description: 'Any of these values, separated by commas.' };
const pattern: Item = {
  type: 'string',
  description: '`%` matches any characters, `_` any one character; `\\` escapes.',
};
