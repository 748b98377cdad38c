/**
 * Describes the operations of any collection, of its members and of bulk deletion (§2.4, §4.2, §4.4 to §4.9). What the
 * declared operations state themselves comes from them (resource-path.ts).
 */

import type { ProblemCode } from '../http/problem-registry.ts';
import {
  type CollectionLimits,
  type CollectionNames,
  type CollectionOperation,
  type Content,
  type Item,
  json,
  named,
  type OperationDocumentation,
} from '../kernel/documentation.ts';
import { operationSchema } from '../kernel/operations/operation-routes.ts';
import { type BodyFormat, type Collection, ownerMember } from '../model/collection.ts';
import { listFields } from '../resources/collection/list-answer.ts';
import { mediaTypeOf } from '../resources/collection/write-operations.ts';
import {
  bulkCreation,
  bulkResults,
  importCounts,
  importParameters,
  patchedCounts,
  patchedMany,
} from './bulk-schemas.ts';
import { type Components, ref } from './components.ts';
import { fileEncoding, withFileSchemas } from './file-schemas.ts';
import { listedOf, listParameters, selectionParameter } from './list-parameters.ts';
import { queryContent } from './query-schemas.ts';
import { type Relating, relatedMembers, relatedParameters } from './related-schemas.ts';
import type { ResourceExamples } from './resource-schemas.ts';

export type Described = {
  readonly collection: Collection;
  /** The same with the fields that queries may name. */
  readonly named: Collection;
  readonly names: CollectionNames;
  readonly limits: CollectionLimits;
  readonly components: Components;
  readonly examples: ResourceExamples;
  readonly relating: Relating;
};

export const collectionOperations: Readonly<
  Record<CollectionOperation, (described: Described) => OperationDocumentation>
> = {
  list: listDescription,
  create: createDescription,
  query: queryDescription,
  read: readDescription,
  replace: replaceDescription,
  patch: patchDescription,
  remove: deleteDescription,
  'patch-many': patchManyDescription,
  bulk: bulkDescription,
  export: exportDescription,
  import: importDescription,
  'bulk-delete': bulkDeleteDescription,
};

function listDescription({ named, names, limits, components, relating }: Described): OperationDocumentation {
  const listed = listedOf(named);
  return {
    id: `list${names.plural}`,
    summary: `List ${names.many}`,
    codes: ['query_parameter_invalid'],
    parameters: [...listParameters(listed, limits, components), ...relatedParameters(relating, limits)],
    gives: { representation: listContent(names) },
    representationFields: listFields,
  };
}

function createDescription({ collection, names, examples, components }: Described): OperationDocumentation {
  return {
    id: `create${names.singular}`,
    summary: `Create ${names.one}`,
    creates: 'always',
    codes: [
      ...(['field_missing', 'field_unpatchable', 'validation_failed'] as const),
      ...storeCodes(collection, 'create'),
    ],
    takes: bodyContent(collection, names, examples, components),
    gives: { created: memberContent(names, examples), accepted: operationContent },
  };
}

function queryDescription({ named, names, limits, components, relating }: Described): OperationDocumentation {
  return {
    id: `query${names.plural}`,
    summary: `Query ${names.many}`,
    description:
      'A GET of Location repeats the query, a GET of Content-Location returns this result. An aggregate query has groups in place of resources.',
    codes: ['content_malformed', 'query_parameter_invalid', 'query_unprocessable'],
    takes: queryContent({ ...relating, collection: named }, names, limits, components),
    gives: { representation: queryResultContent(names, components) },
    representationFields: [...listFields, 'Content-Location', 'Location'],
  };
}

function patchManyDescription({ collection, names, limits }: Described): OperationDocumentation {
  return {
    id: `patchMany${names.plural}`,
    summary: `Patch all ${names.many} that a filter finds`,
    description: `In one unit, up to ${limits.bulkItemsMax} documents. What the caller may not change is counted as refused; a fault of the patch for one document refuses the request.`,
    codes: [
      ...(['field_missing', 'field_unpatchable', 'validation_failed', 'query_unprocessable'] as const),
      ...storeCodes(collection, 'update'),
    ],
    takes: {
      'application/json': {
        schema: patchedMany,
        example: { filter: { id: { in: [] } }, patch: {}, dryRun: true },
      },
    },
    gives: {
      changed: {
        'application/json': { schema: patchedCounts, example: { changed: 12, unchanged: 3, refused: 0 } },
      },
      accepted: operationContent,
    },
  };
}

function bulkDescription({ collection, names, limits }: Described): OperationDocumentation {
  const [example = {}] = collection.examples;
  return {
    id: `bulkCreate${names.plural}`,
    summary: `Create or change several ${names.many}`,
    codes: [
      ...(['field_missing', 'field_unpatchable', 'validation_failed', 'forbidden', 'not_found'] as const),
      ...(collection.requireMatch ? (['precondition_required'] as const) : []),
      ...storeCodes(collection, 'create'),
    ],
    takes: {
      'application/json': { schema: bulkCreation(limits), example: { items: [example] } },
    },
    gives: {
      changed: {
        'application/json': {
          schema: bulkResults,
          example: { items: [{ status: 201, id: '01k1jx7v2mh5s8b4c9d0e6f3ga' }] },
        },
      },
      accepted: operationContent,
    },
  };
}

function importDescription({ collection, names }: Described): OperationDocumentation {
  const schema = { type: 'string' };
  return {
    id: `import${names.plural}`,
    summary: `Import ${names.many}`,
    description:
      'CSV with a header (RFC 4180), NDJSON or a JSON array, written while it arrives. Each record is a unit; with `atomic`, all are one.',
    codes: [
      ...(['content_malformed', 'query_parameter_invalid', 'forbidden'] as const),
      ...(['field_missing', 'field_unpatchable', 'validation_failed', 'not_found'] as const),
      ...(collection.requireMatch ? (['precondition_required'] as const) : []),
      ...storeCodes(collection, 'create'),
    ],
    parameters: importParameters(),
    takes: {
      'text/csv': { schema },
      'application/x-ndjson': { schema },
      'application/json': { schema: { type: 'array', items: { type: 'object' } } },
    },
    gives: { changed: json(importCounts) },
  };
}

function exportDescription({ named, names, limits, components }: Described): OperationDocumentation {
  const listed = listedOf(named);
  const document = { type: 'object' };
  const page = {
    description: `Documents as an import takes them, with the owner in \`${ownerMember(named)}\`.`,
    type: 'object',
    properties: {
      items: { type: 'array', items: document },
      nextCursor: { type: ['string', 'null'] },
    },
    required: ['items', 'nextCursor'],
  };
  return {
    id: `export${names.plural}`,
    audience: 'operator',
    summary: `Export ${names.many}`,
    description:
      'For administrators: documents as they are stored, with their owners, page by page. `afterRead` does not apply.',
    codes: ['query_parameter_invalid', 'forbidden'],
    parameters: listParameters(listed, limits, components),
    gives: { representation: { 'application/json': { schema: page } } },
    representationFields: listFields,
  };
}

function bulkDeleteDescription({ collection, names, limits }: Described): OperationDocumentation {
  const ids = { type: 'array', items: { type: 'string' }, maxItems: limits.bulkDeleteIdsMax };
  const deletion = named('BulkDeletion', {
    ...{ type: 'object', properties: { ids }, required: ['ids'], additionalProperties: false },
  });
  const deleted = named('BulkDeleted', {
    type: 'object',
    properties: { deleted: { type: 'integer', minimum: 0 } },
    required: ['deleted'],
  });
  return {
    id: `bulkDelete${names.plural}`,
    summary: `Delete several ${names.many}`,
    description:
      'Atomic. The response counts the resources that existed and that the caller may delete; others count as missing.',
    codes: ['field_missing', 'validation_failed', ...storeCodes(collection, 'delete')],
    takes: {
      'application/json': {
        schema: deletion,
        example: { ids: ['01k1jx7v2mh5s8b4c9d0e6f3ga'] },
      },
    },
    gives: {
      changed: { 'application/json': { schema: deleted, example: { deleted: 1 } } },
      accepted: operationContent,
    },
  };
}

function readDescription({
  collection,
  named,
  names,
  examples,
  relating,
  limits,
}: Described): OperationDocumentation {
  return {
    id: `read${names.singular}`,
    summary: `Read ${names.one}`,
    member: { collection, action: 'read' },
    codes: ['query_parameter_invalid'],
    parameters: [selectionParameter(listedOf(named)), ...relatedParameters(relating, limits)],
    gives: { representation: readContent(names, examples, relating) },
  };
}

function replaceDescription({ collection, names, examples, components }: Described): OperationDocumentation {
  const creates = collection.putCreates
    ? ' Creates the resource under the id in the path if it does not exist.'
    : '';
  return {
    id: `replace${names.singular}`,
    summary: `Replace ${names.one}`,
    description: `Removes members that the content leaves out, or resets them to their defaults.${creates}`,
    member: { collection, action: 'update' },
    codes: [
      ...(['field_missing', 'field_unpatchable', 'validation_failed'] as const),
      ...storeCodes(collection, collection.putCreates ? 'create' : 'update'),
    ],
    takes: bodyContent(collection, names, examples, components),
    gives: {
      changed: memberContent(names, examples),
      created: memberContent(names, examples),
      accepted: operationContent,
    },
  };
}

function patchDescription({ collection, names, components, examples }: Described): OperationDocumentation {
  return {
    id: `patch${names.singular}`,
    summary: `Change ${names.one}`,
    description:
      'Atomic: applies the whole patch or nothing. `application/json` is treated as a merge patch.',
    member: { collection, action: 'update' },
    codes: [
      ...(['content_too_large', 'field_unpatchable', 'patch_malformed', 'patch_not_applicable'] as const),
      'validation_failed',
      ...storeCodes(collection, 'update'),
    ],
    takes: patchContent(collection, names, examples, components),
    gives: { changed: memberContent(names, examples), accepted: operationContent },
  };
}

function deleteDescription({ collection, names, examples }: Described): OperationDocumentation {
  const soft = ' Comity keeps the resource with `deletedAt` set and no longer serves it.';
  return {
    id: `delete${names.singular}`,
    summary: `Delete ${names.one}`,
    description: `A second request is answered 404.${collection.softDelete ? soft : ''}`,
    member: { collection, action: 'delete' },
    codes: storeCodes(collection, 'delete'),
    gives: {
      deleted_representation: memberContent(names, examples),
      accepted: operationContent,
    },
  };
}

/** Codes that the store may refuse the change with. */
function storeCodes(collection: Collection, change: 'create' | 'update' | 'delete'): readonly ProblemCode[] {
  const own = [
    ...(collection.marked === undefined ? [] : (['deletion_running'] as const)),
    ...(collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const)),
  ];
  if (change === 'delete')
    return [...(collection.dependants.length === 0 ? [] : (['dependants_exist'] as const)), ...own];
  // A unique field that is fixed at creation cannot conflict in a later change.
  const contested = collection.unique.filter(
    (fields) => change === 'create' || !fields.every(({ path }) => collection.unpatchable.has(path[0] ?? '')),
  );
  return [
    ...(contested.length > 0 ? (['unique_taken'] as const) : []),
    ...(collection.references.length > 0 ? (['reference_missing'] as const) : []),
    ...own,
  ];
}

function memberContent({ singular }: CollectionNames, { representation }: ResourceExamples): Content {
  return { 'application/json': withExamples(ref('schemas', singular), representation) };
}

/** The same content with what `expand` and `counts` add. */
function readContent(names: CollectionNames, examples: ResourceExamples, relating: Relating): Content {
  if (Object.keys(relatedMembers(relating)).length === 0) return memberContent(names, examples);
  const parts = ['', 'Related'].map((part) => ref('schemas', `${names.singular}${part}`));
  return { 'application/json': withExamples({ allOf: parts }, examples.representation) };
}

function listContent({ singular }: CollectionNames): Content {
  return json(ref('schemas', `${singular}List`));
}

/** A page of resources, or of groups. */
function queryResultContent({ singular }: CollectionNames, components: Components): Content {
  const result = { type: ['string', 'number', 'boolean', 'null'] };
  const groups = components.add('schemas', 'Groups', {
    description: 'A page of the groups of an aggregate query: an object of results for each.',
    type: 'object',
    properties: {
      items: { type: 'array', items: { type: 'object', additionalProperties: result } },
      nextCursor: { type: ['string', 'null'] },
    },
    required: ['items', 'nextCursor'],
  });
  return json({ anyOf: [ref('schemas', `${singular}List`), groups] });
}

const operationContent: Content = json(operationSchema);

// The content of POST, PUT and PATCH in each media type that a collection takes (§4.4.1, §4.6).

/** A complete resource, for POST and PUT. */
function bodyContent(
  collection: Collection,
  names: CollectionNames,
  examples: ResourceExamples,
  components: Components,
): Content {
  const schema = ref('schemas', `${names.singular}Input`);
  const encoding = formEncoding(collection);
  const form = { schema, ...(Object.keys(encoding).length === 0 ? {} : { encoding }) };
  const described: Readonly<Record<BodyFormat, Item>> = {
    json: withExamples(schema, examples.input),
    form,
    multipart: collection.files === undefined ? form : multipartOf('Input', collection, names, components),
    text: withExamples(
      { type: 'string', description: `The value of \`${collection.textField ?? ''}\`.` },
      examples.text,
    ),
  };
  return Object.fromEntries(
    [...collection.formats].map((format) => [mediaTypeOf[format], described[format]]),
  );
}

/** A form with files, whose other members are those of the schema. @param of `Input` or `Patch` */
function multipartOf(
  of: string,
  collection: Collection,
  names: CollectionNames,
  components: Components,
): Item {
  const schema = components.once('schemas', `${names.singular}${of}Form`, () => {
    const { description: _, ...whole } = components.get('schemas', `${names.singular}${of}`) ?? {};
    const properties = withFileSchemas('part', whole.properties as Item, collection, components);
    return { ...whole, properties };
  });
  return { schema, encoding: { ...formEncoding(collection), ...fileEncoding(collection) } };
}

function patchContent(
  collection: Collection,
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
    ...(collection.files === undefined
      ? {}
      : { 'multipart/form-data': multipartOf('Patch', collection, names, components) }),
  };
}

/** Members of nested objects are written `address[city]`; arrays repeat their name, as `form` does by default. */
function formEncoding({ fields, files }: Collection): Item {
  const nested = new Set(
    [...fields.values()]
      .filter(({ path }) => path.length > 1 && files?.has(path[0] ?? '') !== true)
      .map(({ path }) => path[0] ?? ''),
  );
  return Object.fromEntries([...nested].map((name) => [name, { style: 'deepObject', explode: true }]));
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
function withExamples(schema: Item, examples: Readonly<Record<string, Item>>): Item {
  return Object.keys(examples).length === 0 ? { schema } : { schema, examples };
}
