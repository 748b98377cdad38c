/**
 * The query parameters of a list (§4.2). A filter is one object parameter for each field, because `deepObject` writes
 * `price[gte]=10`; `price=10` is short for `price[eq]=10`.
 */
import { queryParameters } from '../config/reserved-names.ts';
import type { Item, ListLimits } from '../kernel/documentation.ts';
import { type Collection, tagFieldOf } from '../model/collection.ts';
import { type Field, type Fields, rankFieldOf, type ScalarType } from '../model/field.ts';
import { type Operator, operatorsOf } from '../resources/query/conditions.ts';
import type { Components } from './components.ts';
import { inputParameter } from './input-schemas.ts';

/** A list's source: a collection, or the event log. */
type Listed = {
  readonly fields: Fields;
  /** It has fields that `q` searches. */
  readonly searched: boolean;
  /** The sort key by what `q` finds. */
  readonly rank?: string | undefined;
  /** Names the entity tag in `fields`. */
  readonly tag?: string | undefined;
};

export function listParameters(listed: Listed, limits: ListLimits, components: Components): readonly Item[] {
  return [
    ...pageParameters(components),
    limitParameter(limits, components),
    sortParameter(listed),
    shared('order', components),
    ...(listed.searched ? [shared('q', components)] : []),
    selectionParameter(listed),
    ...filterable(listed.fields).map((field) => ({
      name: field.name,
      in: 'query',
      ...filterNote(field),
      style: 'deepObject',
      explode: true,
      schema: operatorSchema(field, 'text', components),
    })),
  ];
}

/** The description of the document says what filters are. */
function filterNote({ name, column }: Field): { readonly description?: string } {
  if (column === 'owner')
    return { description: 'The owner, the id of an account. For administrators; others have no such field.' };
  return queryParameters.has(name) ? { description: `Requires an operator: \`${name}[eq]=\`.` } : {};
}

/** The parameters of a list without filters, sort keys or selection. */
export function pagingParameters(limits: ListLimits, components: Components): readonly Item[] {
  return [...pageParameters(components), limitParameter(limits, components)];
}

/** The start of a page: the only parameters of a stored query. */
export function pageParameters(components: Components): readonly Item[] {
  return [shared('page', components), shared('cursor', components)];
}

/** `fields=name,price`. */
export function selectionParameter(selectable: Pick<Listed, 'fields' | 'tag'>): Item {
  const { tag } = selectable;
  const tagged =
    tag === undefined ? '' : ` \`${tag}\` adds the entity tag of each resource, as \`If-Match\` takes it.`;
  return {
    name: 'fields',
    in: 'query',
    description: `Returns only these members; \`*\` returns all that representations have. The entity tag is that of the whole resource.${tagged}`,
    schema: selectionSchema(selectable),
  };
}

export function selectionSchema({ fields, tag }: Pick<Listed, 'fields' | 'tag'>): Item {
  const tagged = tag === undefined ? [] : [tag];
  return { type: 'array', items: { type: 'string', enum: [...fields.keys(), ...tagged, '*'] } };
}

/** Every sort key, ascending and descending. */
export function sortKeys(fields: Fields, rank: string | undefined): readonly string[] {
  const keys = sortable(fields).filter(({ column }) => column !== 'owner');
  const names = keys.map(({ name }) => name);
  return [...names, ...(rank === undefined ? [] : [rank])].flatMap((name) => [name, `-${name}`]);
}

/** The list of a collection. */
export function listedOf(collection: Collection): Listed {
  const { fields, searchFields, searchIndex } = collection;
  const rank = searchIndex === undefined ? undefined : rankFieldOf(fields).name;
  return { fields, searched: searchFields.length > 0, rank, tag: tagFieldOf(collection).name };
}

function sortParameter({ fields, rank }: Listed): Item {
  return {
    name: 'sort',
    in: 'query',
    description: `Sort keys in order; \`-\` sorts in descending order. Equal resources are sorted by id.${
      rank === undefined ? '' : ` \`-${rank}\` sorts what \`q\` finds, the best first.`
    }`,
    schema: { type: 'array', items: { type: 'string', enum: sortKeys(fields, rank) } },
  };
}

function limitParameter({ listLimitDefault, listLimitMax }: ListLimits, components: Components): Item {
  return components.add(
    'parameters',
    'limit',
    inputParameter({
      ...{ name: 'limit', in: 'query', description: 'Number of resources on a page; also `per_page`.' },
      schema: { type: 'integer', minimum: 1, maximum: listLimitMax, default: listLimitDefault },
    }),
  );
}

const described: Readonly<Record<'page' | 'cursor' | 'order' | 'q', { description: string; schema: Item }>> =
  {
    page: {
      description:
        'Number of the page, from 1. High numbers cost more; a cursor costs the same on every page.',
      schema: { type: 'integer', minimum: 1 },
    },
    cursor: {
      description:
        '`nextCursor` of the previous page. Valid only with the same query; an altered cursor is answered 400.',
      schema: { type: 'string', minLength: 1 },
    },
    order: {
      description: 'Sort order of the keys without `-`.',
      schema: { type: 'string', enum: ['asc', 'desc'] },
    },
    q: {
      description: 'Words that the resource must contain; upper and lower case are the same.',
      schema: { type: 'string' },
    },
  };

function shared(name: keyof typeof described, components: Components): Item {
  return components.add('parameters', name, { name, in: 'query', ...described[name] });
}

// Schemas of the operators for each type of field: those of `price[gte]=10` and of a JSON filter.

const scalar: Readonly<Record<ScalarType, Item>> = {
  string: { type: 'string' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  // A day and a time relative to the present are no date-time.
  timestamp: { type: 'string' },
};

export function filterable(fields: Fields): readonly Field[] {
  return [...fields.values()].filter((field) => operatorsOf(field).length > 0);
}

export function sortable(fields: Fields): readonly Field[] {
  return filterable(fields).filter(({ type }) => type !== 'array');
}

/** The schema of one value of the field; for an array, of one element. */
function valueSchema({ type, item }: Field): Item {
  const scalarType = type === 'array' ? item : type;
  return scalarType === undefined || scalarType === 'json' ? {} : scalar[scalarType];
}

/**
 * The field's operators as properties of an object, stored once for each type of field.
 * @param form in a query string, `in` is a comma list and `null` an operator; in JSON, `in` is an array, null a value, and a plain value
 * means equality
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
    ilike: pattern,
    eqi: { ...value, description: 'Equality without regard to case.' },
    null: { type: 'boolean', description: '`true`: absent or null; `false`: neither.' },
  };
  // In JSON, null is a value and needs no operator.
  const taken = operatorsOf(field).filter((operator) => form === 'text' || operator !== 'null');
  const properties = Object.fromEntries(taken.map((operator) => [operator, special[operator] ?? value]));
  const schema = {
    ...(field.type === 'timestamp' ? { description: instantNote } : {}),
    ...{ type: 'object', properties, additionalProperties: false },
  };
  return form === 'text' ? schema : { anyOf: [orNull, schema] };
}

/** A value for equality in JSON: null matches absent and null members. */
function orNullSchema(field: Field): Item {
  const value = valueSchema(field);
  return { ...value, type: [value.type, 'null'] };
}

const instantNote =
  'Instants of RFC 3339, a day (its first moment in UTC), or as `now-P7D`, `today[Europe/Berlin]`.';
const commaList: Item = { type: 'string', description: 'Any of these values, separated by commas.' };
const pattern: Item = {
  type: 'string',
  description: '`%` matches any characters, `_` any one character; `\\` escapes. `ilike` disregards case.',
};
