/** Schemas of requests on many documents (§4.19), and of their answers. */
import { type CollectionLimits, type Item, named } from '../kernel/documentation.ts';
import { bulkModes, existings } from '../resources/document/bulk-content.ts';

export const patchedMany = named('PatchOfMany', {
  type: 'object',
  properties: {
    filter: { description: 'As in a QUERY; `{}` finds all.', type: 'object' },
    q: { type: 'string' },
    patch: { description: 'A merge patch (RFC 7396).', type: 'object' },
    dryRun: { description: 'Counts, and changes nothing.', type: 'boolean', default: false },
  },
  required: ['filter', 'patch'],
  additionalProperties: false,
});

const count: Item = { type: 'integer', minimum: 0 };

export const patchedCounts = named('PatchedCounts', {
  type: 'object',
  properties: { changed: count, unchanged: count, refused: count },
  required: ['changed', 'unchanged', 'refused'],
  additionalProperties: false,
});

export function bulkCreation({ bulkItemsMax }: CollectionLimits): Item {
  const items = {
    description:
      'Each as the content of a POST. In an import, each as Comity serves it, with its owner in `owner` (`$owner` if the collection has a field `owner`).',
    type: 'array',
    items: { type: 'object' },
    maxItems: bulkItemsMax,
  };
  const atomic = {
    description: '`true`: all are created, or none. `false`: each has its own outcome.',
    type: 'boolean',
    default: true,
  };
  const options = {
    type: 'object',
    properties: {
      existing: { enum: existings, default: 'refuse' },
      events: { type: 'boolean', default: true },
    },
    additionalProperties: false,
  };
  const imports = {
    description:
      'Takes `id`, `createdAt`, `updatedAt` and the owner from the items, for administrators. `existing`: what happens to an id that exists; `events`: whether the writes append events.',
    anyOf: [{ type: 'boolean' }, options],
  };
  return named('BulkCreation', {
    type: 'object',
    properties: { items, atomic, mode: bulkMode, key: bulkKey, import: imports },
    required: ['items'],
    additionalProperties: false,
  });
}

const bulkMode: Item = {
  description:
    'What an item is to the document that it names by `key`. `create`: an existing one is refused. `replace`: it is replaced as by PUT, or created. `merge`: it must exist (else 404), and is patched as by a merge patch. `upsert`: it is patched so, or created.',
  enum: bulkModes,
  default: 'create',
};

const bulkKey: Item = {
  description: '`id`, or the fields of an entry of `unique`.',
  anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
  default: 'id',
};

export const bulkResults = named('BulkResults', {
  description:
    'One entry for each item, in their order: `status` and `id`, or `status` and the members of an error. If an atomic request is refused, nothing is created, and the pointers of `errors` begin with the item (`/items/3/name`).',
  type: 'object',
  properties: {
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          status: { type: 'integer' },
          id: { type: 'string' },
          unchanged: { const: true },
          error: { type: 'string' },
          code: { type: 'string' },
        },
        required: ['status'],
      },
    },
  },
  required: ['items'],
});

/** The query parameters of an import, which all collections share. */
export function importParameters(): readonly Item[] {
  const toggle = { type: 'boolean' };
  const described: readonly (readonly [name: string, description: string, schema: Item])[] = [
    ['dryRun', 'Counts and lists faults as an import would, and writes nothing.', toggle],
    ['mode', 'As in a bulk request.', { enum: bulkModes }],
    ['key', '`id`, or the fields of an entry of `unique`, with commas.', { type: 'string' }],
    ['columns', 'Members of the columns of CSV; an empty one is left out.', { type: 'string' }],
    ['atomic', 'All records are one unit.', toggle],
    ['existing', 'For administrators, as in a bulk request.', { enum: existings }],
    ['events', 'For administrators: `false` appends none.', toggle],
  ];
  return described.map(([name, description, schema]) => ({ name, in: 'query', description, schema }));
}

export const importCounts = named('ImportCounts', {
  description: 'Numbers of records, and the first 100 faults with the line on which the record begins.',
  type: 'object',
  properties: {
    ...{ created: count, updated: count, unchanged: count, refused: count },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          line: { type: 'integer', minimum: 1 },
          column: { description: 'Of CSV.', type: 'integer', minimum: 1 },
          member: { description: 'A JSON Pointer.', type: 'string' },
          code: { type: 'string' },
          message: { type: 'string' },
        },
        required: ['line', 'code', 'message'],
        additionalProperties: false,
      },
    },
    errorsMore: { description: 'Faults that are not listed; absent: none.', ...count },
  },
  required: ['created', 'updated', 'unchanged', 'refused', 'errors'],
  additionalProperties: false,
});
