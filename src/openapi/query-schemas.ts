/**
 * The content of QUERY (§4.9; RFC 10008) in its three media types: a JSON query with a filter over the collection's
 * fields, the same names as a form, and one SQL SELECT.
 */

import type { CollectionNames, Content, Item, ListLimits } from '../kernel/documentation.ts';
import type { Collection } from '../model/collection.ts';
import { type Components, ref } from './components.ts';

import { filterable, operatorSchema, orNullSchema } from './field-operators.ts';
import { sortKeys } from './list-parameters.ts';
import { queryExamples } from './resource-examples.ts';

export function queryContent(
  collection: Collection,
  names: CollectionNames,
  limits: ListLimits,
  components: Components,
): Content {
  const filter = components.add(
    'schemas',
    `${names.plural}Filter`,
    filterSchema(collection, `${names.plural}Filter`, components),
  );
  const examples = queryExamples(collection, names, components);
  const json = components.add('schemas', `${names.plural}Query`, jsonSchema(collection, limits, filter));
  const form = components.add(
    'schemas',
    `${names.plural}QueryForm`,
    formSchema(collection, limits, components),
  );
  const filters = filterable(collection.fields).map(({ name }) => [
    name,
    { style: 'deepObject', explode: true },
  ]);
  const lists = ['sort', 'fields'].map((name) => [name, { style: 'form', explode: false }]);
  return {
    'application/json': { schema: json, examples: examples.json },
    'application/x-www-form-urlencoded': {
      schema: form,
      encoding: Object.fromEntries([...filters, ...lists]) as Item,
    },
    'application/sql': {
      schema: {
        type: 'string',
        description: `One SELECT over the fields of \`${collection.name}\`, with WHERE, ORDER BY, LIMIT and OFFSET. Anything else is answered 422.`,
      },
      examples: examples.sql,
    },
  };
}

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

function jsonSchema(collection: Collection, limits: ListLimits, filter: Item): Item {
  const { fields } = collection;
  return {
    type: 'object',
    properties: {
      filter,
      sort: { type: 'array', items: { type: 'string', enum: sortKeys(fields) } },
      ...positions(limits, true),
      fields: { type: 'array', items: { type: 'string', enum: [...fields.keys()] } },
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
    },
    additionalProperties: false,
  };
}

function formSchema(collection: Collection, limits: ListLimits, components: Components): Item {
  const { fields } = collection;
  return {
    description: 'The parameters of a list.',
    type: 'object',
    properties: {
      // The list's own parameters take precedence over fields of the same name.
      ...Object.fromEntries(
        filterable(fields).map((field) => [field.name, operatorSchema(field, 'text', components)]),
      ),
      sort: { type: 'array', items: { type: 'string', enum: sortKeys(fields) } },
      order: { type: 'string', enum: ['asc', 'desc'] },
      ...positions(limits, false),
      fields: { type: 'array', items: { type: 'string', enum: [...fields.keys()] } },
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
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
