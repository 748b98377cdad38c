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
  json,
  type OperationDocumentation,
} from '../kernel/documentation.ts';
import { operationSchema } from '../kernel/operations/operation-routes.ts';
import type { Collection } from '../model/collection.ts';
import { type Components, ref } from './components.ts';
import { listParameters, selectionParameter } from './list-parameters.ts';
import { queryContent } from './query-schemas.ts';
import { bodyContent, patchContent, withExamples } from './resource-content.ts';
import type { ResourceExamples } from './resource-examples.ts';

export type Described = {
  readonly collection: Collection;
  readonly names: CollectionNames;
  readonly limits: CollectionLimits;
  readonly components: Components;
  readonly examples: ResourceExamples;
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
  'bulk-delete': bulkDeleteDescription,
};

function listDescription({
  collection,
  names,
  limits,
  components,
  examples,
}: Described): OperationDocumentation {
  const listed = { fields: collection.fields, searched: collection.searchFields.length > 0 };
  return {
    id: `list${names.plural}`,
    summary: `List ${names.many}`,
    codes: ['query_parameter_invalid'],
    parameters: listParameters(listed, limits, components),
    gives: { representation: listContent(names, examples) },
    representationFields: ['Link', 'X-Total-Count'],
  };
}

function createDescription({ collection, names, examples }: Described): OperationDocumentation {
  return {
    id: `create${names.singular}`,
    summary: `Create ${names.one}`,
    description: 'A form whose Accept prefers text/html gets a 303 redirect to the new resource.',
    creates: 'always',
    codes: [
      ...(['field_missing', 'field_unpatchable', 'validation_failed'] as const),
      ...storeCodes(collection, 'create'),
    ],
    takes: bodyContent(collection, names, examples),
    gives: { created: memberContent(names, examples), accepted: operationContent },
  };
}

function queryDescription({
  collection,
  names,
  limits,
  components,
  examples,
}: Described): OperationDocumentation {
  return {
    id: `query${names.plural}`,
    summary: `Query ${names.many}`,
    description:
      'The same lists as GET, with the query in the content (RFC 10008): safe, idempotent and cacheable. A GET of Location repeats the query; a GET of Content-Location returns this result. A query that is too long to be stored has neither. An aggregate query has groups in place of resources. The query component must be empty.',
    codes: ['content_malformed', 'query_parameter_invalid', 'query_unprocessable'],
    takes: queryContent(collection, names, limits, components),
    gives: { representation: queryResultContent(names, examples, components) },
    representationFields: ['Content-Location', 'Link', 'Location', 'X-Total-Count'],
  };
}

function bulkDeleteDescription({ collection, names, limits }: Described): OperationDocumentation {
  const ids = { type: 'array', items: { type: 'string' }, maxItems: limits.bulkDeleteIdsMax };
  const deleted = {
    type: 'object',
    properties: { deleted: { type: 'integer', minimum: 0 } },
    required: ['deleted'],
  };
  return {
    id: `bulkDelete${names.plural}`,
    summary: `Delete several ${names.many}`,
    description:
      'Atomic. The response counts the resources that existed and that the caller may delete; others count as missing.',
    codes: ['field_missing', 'validation_failed', ...storeCodes(collection, 'delete')],
    takes: {
      'application/json': {
        schema: { type: 'object', properties: { ids }, required: ['ids'], additionalProperties: false },
        example: { ids: ['01k1jx7v2mh5s8b4c9d0e6f3ga'] },
      },
    },
    gives: {
      changed: { 'application/json': { schema: deleted, example: { deleted: 1 } } },
      accepted: operationContent,
    },
  };
}

function readDescription({ collection, names, examples }: Described): OperationDocumentation {
  return {
    id: `read${names.singular}`,
    summary: `Read ${names.one}`,
    member: { collection, action: 'read' },
    codes: ['query_parameter_invalid'],
    parameters: [selectionParameter(collection.fields)],
    gives: { representation: selectableContent(names, examples) },
  };
}

function replaceDescription({ collection, names, examples }: Described): OperationDocumentation {
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
    takes: bodyContent(collection, names, examples),
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
    takes: patchContent(names, examples, components),
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
  const own = collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const);
  if (change === 'delete')
    return [...(collection.dependants.length === 0 ? [] : (['dependants_exist'] as const)), ...own];
  // A unique field that is fixed at creation cannot conflict in a later change.
  const contested = collection.unique.filter(
    ({ path }) => change === 'create' || !collection.unpatchable.has(path[0] ?? ''),
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

/** The same content if `fields` may select members. */
function selectableContent({ singular }: CollectionNames, { representation }: ResourceExamples): Content {
  const schema = { anyOf: [ref('schemas', singular), ref('schemas', `${singular}Selection`)] };
  return { 'application/json': withExamples(schema, representation) };
}

function listContent({ singular }: CollectionNames, { list: lists }: ResourceExamples): Content {
  return { 'application/json': withExamples(ref('schemas', `${singular}List`), lists) };
}

/** A page of resources, or of groups. */
function queryResultContent(
  { singular }: CollectionNames,
  { list: lists }: ResourceExamples,
  components: Components,
): Content {
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
  const schema = { anyOf: [ref('schemas', `${singular}List`), groups] };
  return { 'application/json': withExamples(schema, lists) };
}

const operationContent: Content = json(operationSchema);
