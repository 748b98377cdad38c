/**
 * The operations of a collection as a whole (§4.2, §4.4, §4.9) and of bulk deletion (§2.4), as in resources/collection/.
 */
import { listContent, memberContent, operationContent } from './answer-content.ts';
import type { Described } from './described.ts';
import { listParameters } from './list-parameters.ts';
import { contentCodes, storeCodes } from './member-traits.ts';
import type { Description } from './operation.ts';
import { queryContent, queryTypes } from './query-schemas.ts';
import { bodyContent, bodyTypes } from './resource-content.ts';
import { gateOf, plainRead, type Traits } from './traits.ts';

export function listDescription({
  collection,
  names,
  limits,
  components,
  examples,
  shared,
}: Described): Description {
  const listed = { fields: collection.fields, searched: collection.searchFields.length > 0 };
  return {
    ...shared,
    id: `list${names.plural}`,
    summary: `List ${names.many}`,
    traits: {
      ...plainRead,
      gate: gateOf([[collection.access.read, 'read']]),
      proposalCodes: ['query_parameter_invalid'],
    },
    parameters: listParameters(listed, limits, components),
    preferences: ['count=exact'],
    content: { representation: listContent(names, examples) },
    representationFields: ['Link', 'X-Total-Count'],
  };
}

export function createDescription({ collection, names, examples, shared }: Described): Description {
  const traits: Traits = {
    ...plainRead,
    method: 'POST',
    contentTypes: bodyTypes(collection),
    gate: gateOf([[collection.access.create, 'create']]),
    answersForms: true,
    idempotent: true,
    asynchronous: true,
    creates: 'always',
    validators: 'none',
    contentCodes,
    proposalCodes: ['field_missing', 'field_unpatchable', 'validation_failed'],
    resultCodes: storeCodes(collection, 'create'),
  };
  return {
    ...shared,
    id: `create${names.singular}`,
    summary: `Create ${names.one}`,
    description: 'A form whose Accept prefers text/html is answered 303 to the new resource.',
    traits,
    preferences: ['return=minimal', 'respond-async'],
    requestContent: bodyContent(collection, names, examples),
    content: { created: memberContent(names, examples), accepted: operationContent },
  };
}

export function queryDescription({
  collection,
  names,
  limits,
  components,
  examples,
  shared,
}: Described): Description {
  return {
    ...shared,
    id: `query${names.plural}`,
    summary: `Query ${names.many}`,
    description:
      'The same lists as GET, asked for in the content (RFC 10008): safe, idempotent and cacheable. Location repeats the query with GET, Content-Location is this very result; a query that is too long to be stored has neither. The query component must be empty.',
    traits: {
      ...plainRead,
      method: 'QUERY',
      contentTypes: queryTypes,
      gate: gateOf([[collection.access.read, 'read']]),
      contentCodes,
      proposalCodes: ['content_malformed', 'query_parameter_invalid', 'query_unprocessable'],
    },
    preferences: ['count=exact'],
    requestContent: queryContent(collection, names, limits, components),
    content: { representation: listContent(names, examples) },
    representationFields: ['Content-Location', 'Link', 'Location', 'X-Total-Count'],
  };
}

export function bulkDeleteDescription({ collection, names, limits, shared }: Described): Description {
  const ids = { type: 'array', items: { type: 'string' }, maxItems: limits.bulkDeleteIdsMax };
  const deleted = {
    type: 'object',
    properties: { deleted: { type: 'integer', minimum: 0 } },
    required: ['deleted'],
  };
  return {
    ...shared,
    id: `bulkDelete${names.plural}`,
    summary: `Delete several ${names.many}`,
    description:
      'All in one step. Counts those that existed and that the caller may delete; others count as missing.',
    traits: {
      ...plainRead,
      method: 'POST',
      contentTypes: ['application/json'],
      gate: gateOf([[collection.access.delete, 'delete']]),
      idempotent: true,
      asynchronous: true,
      validators: 'none',
      contentCodes,
      proposalCodes: ['field_missing', 'validation_failed'],
      resultCodes: storeCodes(collection, 'delete'),
    },
    preferences: ['return=minimal', 'respond-async'],
    requestContent: {
      'application/json': {
        schema: { type: 'object', properties: { ids }, required: ['ids'], additionalProperties: false },
        example: { ids: ['01k1jx7v2mh5s8b4c9d0e6f3ga'] },
      },
    },
    content: {
      changed: { 'application/json': { schema: deleted, example: { deleted: 1 } } },
      accepted: operationContent,
    },
  };
}
