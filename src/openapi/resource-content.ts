/** The content of POST, PUT and PATCH in each media type that a collection takes (§4.4.1, §4.6). */

import type { CollectionNames, Content, Item } from '../kernel/documentation.ts';
import type { BodyFormat, Collection } from '../model/collection.ts';
import { mediaTypeOf } from '../resources/collection/content.ts';
import { type Components, ref } from './components.ts';

import type { ResourceExamples } from './resource-examples.ts';

/** A complete resource, for POST and PUT. */
export function bodyContent(
  collection: Collection,
  names: CollectionNames,
  examples: ResourceExamples,
): Content {
  const schema = ref('schemas', `${names.singular}Input`);
  const encoding = formEncoding(collection);
  const form = { schema, ...(Object.keys(encoding).length === 0 ? {} : { encoding }) };
  const described: Readonly<Record<BodyFormat, Item>> = {
    json: withExamples(schema, examples.input),
    form,
    multipart: form,
    text: withExamples(
      { type: 'string', description: `The value of \`${collection.textField ?? ''}\`.` },
      examples.text,
    ),
  };
  return Object.fromEntries(
    [...collection.formats].map((format) => [mediaTypeOf[format], described[format]]),
  );
}

export function patchContent(
  names: CollectionNames,
  examples: ResourceExamples,
  components: Components,
): Content {
  const merge = withExamples(ref('schemas', `${names.singular}Patch`), examples.mergePatch);
  const schema = components.add('schemas', 'JsonPatch', jsonPatch);
  return {
    'application/merge-patch+json': merge,
    'application/json-patch+json': withExamples(schema, examples.jsonPatch),
    'application/json': merge,
  };
}

/** Arrays repeat their name; members of nested objects are written `address[city]`. */
function formEncoding({ fields }: Collection): Item {
  const nested = new Set(
    [...fields.values()].filter(({ path }) => path.length > 1).map(({ path }) => path[0] ?? ''),
  );
  const arrays = [...fields.values()].filter(({ type, path }) => type === 'array' && path.length === 1);
  return Object.fromEntries([
    ...arrays.map(({ name }) => [name, { style: 'form', explode: true }] as const),
    ...[...nested].map((name) => [name, { style: 'deepObject', explode: true }] as const),
  ]);
}

const pointer: Item = { type: 'string', description: 'JSON Pointer (RFC 6901).' };

const jsonPatch: Item = {
  description: 'A JSON Patch (RFC 6902): operations in order; all are applied or none.',
  type: 'array',
  items: {
    oneOf: [
      operation(['add', 'replace', 'test'], { value: {} }),
      operation(['remove'], {}),
      operation(['move', 'copy'], { from: pointer }),
    ],
  },
};

function operation(names: readonly string[], operands: Item): Item {
  return {
    type: 'object',
    properties: { op: { enum: names }, path: pointer, ...operands },
    required: ['op', 'path', ...Object.keys(operands)],
  };
}

/** A Media Type Object; without examples if there are none. */
export function withExamples(schema: Item, examples: Readonly<Record<string, Item>>): Item {
  return Object.keys(examples).length === 0 ? { schema } : { schema, examples };
}
