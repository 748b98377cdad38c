/**
 * The schemas of a collection, from its declaration: the representation as served (§2.1), what POST and PUT take, what a
 * merge patch takes (RFC 7396), and a page of a list.
 */
import { plainSchema } from '../config/plain-schema.ts';
import type { Collection } from '../model/collection.ts';
import type { Components } from './components.ts';
import { alwaysSeen, alwaysSent, withConduct } from './field-conduct.ts';
import type { Item } from './item.ts';
import type { SchemaNames } from './schema-names.ts';
import { withTextBounds } from './text-bounds.ts';

const time: Item = { type: 'string', format: 'date-time', readOnly: true };
const id: Item = {
  type: 'string',
  readOnly: true,
  description: 'Made by the server, or by the client where PUT creates.',
};

export function addResourceSchemas(collection: Collection, names: SchemaNames, components: Components): void {
  const bounded = withTextBounds(plainSchema(collection.schema), collection);
  const properties = withConduct(isItem(bounded.properties) ? bounded.properties : {}, collection);
  const declared = 'properties' in bounded ? { ...bounded, properties } : bounded;
  const required = Array.isArray(declared.required) ? (declared.required as readonly string[]) : [];
  const described = collection.description === '' ? {} : { description: collection.description };
  const members = {
    id,
    ...properties,
    createdAt: time,
    updatedAt: time,
    ...(collection.softDelete
      ? { deletedAt: { ...time, description: 'Only in the answer to the deletion itself.' } }
      : {}),
  };
  const whole = components.add('schemas', names.singular, {
    ...declared,
    ...described,
    properties: members,
    required: ['id', ...alwaysSeen(required, collection), 'createdAt', 'updatedAt'],
  });
  const selected = components.add('schemas', `${names.singular}Selection`, {
    description: 'The members that `fields` selected.',
    type: 'object',
    properties: members,
  });
  components.add('schemas', `${names.singular}Input`, {
    description:
      'A complete resource. PUT leaves out what it does not name, and may repeat the members that the server made as they stand.',
    ...closed(sent(declared, required, collection)),
  });
  components.add(
    'schemas',
    `${names.singular}Patch`,
    patchSchema(collection, closed(declared), properties, required),
  );
  components.add('schemas', `${names.singular}List`, {
    description: 'A page.',
    type: 'object',
    properties: {
      items: { type: 'array', items: { anyOf: [whole, selected] } },
      nextCursor: { type: ['string', 'null'], description: 'For the next page; null on the last.' },
    },
    required: ['items', 'nextCursor'],
  });
}

/** What a caller may leave out for any reason is not required. */
function sent(declared: Item, required: readonly string[], collection: Collection): Item {
  const always = alwaysSent(required, collection);
  if (always.length === required.length) return declared;
  const { required: _required, ...rest } = declared;
  return always.length === 0 ? rest : { ...rest, required: always };
}

/** Every member optional, and null where that removes one. */
function patchSchema(
  { unpatchable }: Collection,
  declared: Item,
  properties: Item,
  required: readonly string[],
): Item {
  const members = Object.entries(isItem(declared.properties) ? declared.properties : properties).map(
    ([name, schema]): [string, unknown] => {
      if (required.includes(name)) return [name, schema];
      const nullable = { anyOf: [schema, { type: 'null' }] };
      const fixed = 'Fixed at creation: may be repeated, not changed.';
      return [name, unpatchable.has(name) ? { ...nullable, description: fixed } : nullable];
    },
  );
  const { required: _required, ...rest } = declared;
  return {
    ...rest,
    description: 'A merge patch (RFC 7396): members that are named are set, null removes, the rest stays.',
    properties: Object.fromEntries(members),
  };
}

/** Objects take no property that they do not declare, unless they say so: what the server answers 422 to. */
function closed(schema: Item, isPart = false): Item {
  const composed = 'allOf' in schema || ('properties' in schema && ('anyOf' in schema || 'oneOf' in schema));
  const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    if (keyword === 'properties' && isItem(value)) {
      return [
        keyword,
        Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closedPart(part, false)])),
      ];
    }
    if (keyword === 'items') return [keyword, closedPart(value, false)];
    if (keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'allOf') {
      return [
        keyword,
        Array.isArray(value) ? value.map((part) => closedPart(part, isPart || composed)) : value,
      ];
    }
    return [keyword, value];
  });
  const isOpen = ['additionalProperties', 'unevaluatedProperties', 'patternProperties'].some(
    (key) => key in schema,
  );
  if (!isPart && !isOpen && composed) entries.push(['unevaluatedProperties', false]);
  else if (!isPart && !isOpen && 'properties' in schema) entries.push(['additionalProperties', false]);
  return Object.fromEntries(entries);
}

function closedPart(part: unknown, isPart: boolean): unknown {
  return isItem(part) ? closed(part, isPart) : part;
}

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
