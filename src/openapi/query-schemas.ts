/**
 * The content of QUERY (§4.9; RFC 10008) in its three media types: a JSON query with a filter over the collection's
 * fields, the parameters of the list as a form, and one SQL SELECT.
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
import { periodUnits } from '../model/period.ts';
import { type Components, ref } from './components.ts';
import { inputSchema } from './input-schemas.ts';

import {
  filterable,
  listedOf,
  operatorSchema,
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
    aggregateSchema(collection, names.plural, { limits, filter, components }),
  );
  const json = components.add('schemas', `${names.plural}Query`, { anyOf: [list, grouped] });
  return {
    'application/json': { schema: json, examples: examples.json },
    'application/x-www-form-urlencoded': {
      schema: { type: 'object', description: 'The query parameters of GET here, as a form.' },
    },
    'application/sql': {
      schema: {
        type: 'string',
        description: `One SELECT from \`${collection.name}\`.`,
      },
      examples: examples.sql,
    },
  };
}

type Related = Readonly<Record<string, Item>>;

function filterSchema(collection: Collection, name: string, components: Components): Item {
  const self = ref('schemas', name);
  const fields = filterable(collection.fields).map((field) => {
    return [field.name, operatorSchema(field, 'json', components)] as const;
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
      ...positions(limits),
      fields: selectionSchema(listedOf(collection)),
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
      ...related,
    },
    additionalProperties: false,
  };
}

function periodGroup(fields: readonly Field[]): Item {
  const times = fields.filter(({ type }) => type === 'timestamp').map(({ name }) => name);
  return {
    description: 'The first day of the period that has the time, in a time zone of the IANA database.',
    type: 'object',
    properties: {
      by: { type: 'string', enum: times },
      unit: { type: 'string', enum: periodUnits },
      timeZone: { type: 'string', description: 'UTC if absent.' },
      as: { type: 'string', description: 'Name of the result; by default that of the field.' },
    },
    required: ['by', 'unit'],
    additionalProperties: false,
  };
}

/** An aggregate query (§4.18): `having` and `sort` name its results. */
function aggregateSchema(
  collection: Collection,
  plural: string,
  { limits, filter, components }: { limits: ListLimits; filter: Item; components: Components },
): Item {
  const scalars = sortable(collection.fields);
  const numbers = scalars.filter(({ type }) => type === 'number' || type === 'integer');
  const aggregated = (kind: string, names: readonly unknown[]): Item => {
    const field = { enum: names };
    return components.add('schemas', `${plural}Aggregate${kind}`, {
      anyOf: [field, { type: 'array', items: field }, { type: 'object', additionalProperties: field }],
    });
  };
  const all = scalars.map(({ name }) => name);
  const ofAll = aggregated('Fields', all);
  const ofNumbers = () =>
    aggregated(
      'Numbers',
      numbers.map(({ name }) => name),
    );
  const functions = {
    count: aggregated('Counts', [true, ...all]),
    ...(numbers.length === 0 ? {} : { sum: ofNumbers(), avg: ofNumbers() }),
    min: ofAll,
    max: ofAll,
  };
  const names = { type: 'array', items: { type: 'string' } };
  return {
    description:
      'Computes values over the resources of each group. A result is named like `count` or `avg_price`, or by the object that names it. `having` is a filter over the results, and `sort` names them.',
    type: 'object',
    properties: {
      filter,
      groupBy: { type: 'array', items: { anyOf: [{ type: 'string', enum: all }, periodGroup(scalars)] } },
      aggregate: { type: 'object', properties: functions, additionalProperties: false },
      having: { type: 'object' },
      sort: names,
      ...positions(limits),
      ...(collection.searchFields.length === 0 ? {} : { q: { type: 'string' } }),
    },
    anyOf: ['aggregate', 'groupBy'].map((name) => ({ properties: { [name]: {} }, required: [name] })),
    additionalProperties: false,
  };
}

function positions({ listLimitDefault, listLimitMax }: ListLimits): Item {
  return {
    limit: inputSchema({ type: 'integer', minimum: 1, maximum: listLimitMax, default: listLimitDefault }),
    cursor: { type: ['string', 'null'] },
    page: { type: 'integer', minimum: 1 },
  };
}
