/**
 * The content of QUERY (§4.9; RFC 10008) in its three media types: a JSON query with a filter over the collection's
 * fields, the same names as a form, and one SQL SELECT.
 */

import type {
  CollectionLimits,
  CollectionNames,
  Content,
  Item,
  ListLimits,
} from '../kernel/documentation.ts';
import type { Collection } from '../model/collection.ts';
import type { Field } from '../model/field.ts';
import { type Components, ref } from './components.ts';

import {
  filterable,
  listedOf,
  operatorSchema,
  orNullSchema,
  selectionSchema,
  sortable,
  sortKeys,
} from './list-parameters.ts';
import { type Relating, relatedLists } from './related-schemas.ts';
import { queryExamples } from './resource-schemas.ts';

export function queryContent(
  relating: Relating,
  names: CollectionNames,
  limits: CollectionLimits,
  components: Components,
): Content {
  const { collection } = relating;
  const related = relatedLists(relating, limits);
  const filter = components.add(
    'schemas',
    `${names.plural}Filter`,
    filterSchema(collection, `${names.plural}Filter`, components),
  );
  const examples = queryExamples(collection, names, components);
  const list = components.add(
    'schemas',
    `${names.plural}ListQuery`,
    jsonSchema(collection, limits, filter, related),
  );
  const grouped = components.add(
    'schemas',
    `${names.plural}AggregateQuery`,
    aggregateSchema(collection, limits, filter),
  );
  const json = components.add('schemas', `${names.plural}Query`, { anyOf: [list, grouped] });
  const form = components.add(
    'schemas',
    `${names.plural}QueryForm`,
    formSchema(collection, limits, components, related),
  );
  const filters = filterable(collection.fields).map(({ name }) => [
    name,
    { style: 'deepObject', explode: true },
  ]);
  const lists = ['sort', 'fields', ...Object.keys(related)].map((name) => [
    name,
    { style: 'form', explode: false },
  ]);
  return {
    'application/json': { schema: json, examples: examples.json },
    'application/x-www-form-urlencoded': {
      schema: form,
      encoding: Object.fromEntries([...filters, ...lists]) as Item,
    },
    'application/sql': {
      schema: {
        type: 'string',
        description: `One SELECT over the fields of \`${collection.name}\`, with WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET, and the aggregates count, sum, avg, min and max. Anything else is answered 422.`,
      },
      examples: examples.sql,
    },
  };
}

type Related = Readonly<Record<string, Item>>;

function filterSchema(collection: Collection, name: string, components: Components): Item {
  const self = ref('schemas', name);
  const fields = filterable(collection.fields).map((field) => {
    return [field.name, { anyOf: [orNullSchema(field), operatorSchema(field, 'json', components)] }] as const;
  });
  return {
    description:
      'All conditions must hold. A plain value means equality or, for an array, that the array contains it.',
    type: 'object',
    properties: {
      ...Object.fromEntries(fields),
      and: { type: 'array', items: self },
      or: { type: 'array', items: self },
      not: self,
    },
    additionalProperties: false,
  };
}

function jsonSchema(collection: Collection, limits: ListLimits, filter: Item, related: Related): Item {
  const { fields } = collection;
  return {
    type: 'object',
    properties: {
      filter,
      sort: { type: 'array', items: { type: 'string', enum: sortKeys(fields, listedOf(collection).rank) } },
      ...positions(limits, true),
      fields: selectionSchema(listedOf(collection)),
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
      ...related,
    },
    additionalProperties: false,
  };
}

/** An aggregate query (§4.18): `having` and `sort` name its results. */
function aggregateSchema(collection: Collection, limits: ListLimits, filter: Item): Item {
  const scalars = sortable(collection.fields);
  const numbers = scalars.filter(({ type }) => type === 'number' || type === 'integer');
  const results = (fields: readonly Field[], special: readonly unknown[] = []): Item => {
    const field = { enum: [...special, ...fields.map(({ name }) => name)] };
    return {
      anyOf: [field, { type: 'array', items: field }, { type: 'object', additionalProperties: field }],
    };
  };
  const functions = {
    count: results(scalars, [true]),
    ...(numbers.length === 0 ? {} : { sum: results(numbers), avg: results(numbers) }),
    min: results(scalars),
    max: results(scalars),
  };
  const names = { type: 'array', items: { type: 'string' } };
  return {
    description:
      'Computes values over the resources of each group. A result is named like `count` or `avg_price`, or by the object that names it. `having` is a filter over the results, and `sort` names them.',
    type: 'object',
    properties: {
      filter,
      groupBy: { type: 'array', items: { type: 'string', enum: scalars.map(({ name }) => name) } },
      aggregate: { type: 'object', properties: functions, additionalProperties: false },
      having: { type: 'object' },
      sort: names,
      ...positions(limits, true),
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
    },
    anyOf: [{ required: ['aggregate'] }, { required: ['groupBy'] }],
    additionalProperties: false,
  };
}

function formSchema(
  collection: Collection,
  limits: ListLimits,
  components: Components,
  related: Related,
): Item {
  const { fields } = collection;
  return {
    description: 'The parameters of a list.',
    type: 'object',
    properties: {
      // The list's own parameters take precedence over fields of the same name.
      ...Object.fromEntries(
        filterable(fields).map((field) => [field.name, operatorSchema(field, 'text', components)]),
      ),
      sort: { type: 'array', items: { type: 'string', enum: sortKeys(fields, listedOf(collection).rank) } },
      order: { type: 'string', enum: ['asc', 'desc'] },
      ...positions(limits, false),
      fields: selectionSchema(listedOf(collection)),
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
      ...related,
    },
    additionalProperties: false,
  };
}

function positions({ listLimitDefault, listLimitMax }: ListLimits, nullable: boolean): Item {
  return {
    limit: { type: 'integer', minimum: 1, maximum: listLimitMax, default: listLimitDefault },
    cursor: { type: nullable ? ['string', 'null'] : 'string' },
    page: { type: 'integer', minimum: 1 },
  };
}
