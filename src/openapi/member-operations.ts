/**
 * The operations of a member of a collection (§4.2, §4.5 to §4.7), as in resources/collection/.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import { memberContent, operationContent, selectableContent } from './answer-content.ts';
import type { Described } from './described.ts';
import { selectionParameter } from './list-parameters.ts';
import { contentCodes, memberTraits, storeCodes } from './member-traits.ts';
import type { Description } from './operation.ts';
import { bodyContent, bodyTypes, patchContent, patchTypes } from './resource-content.ts';
import type { Traits } from './traits.ts';

export function readDescription({ collection, names, examples, shared }: Described): Description {
  return {
    ...shared,
    id: `read${names.singular}`,
    summary: `Read ${names.one}`,
    traits: { ...memberTraits(collection, 'read'), proposalCodes: ['query_parameter_invalid'] },
    parameters: [selectionParameter(collection.fields)],
    content: { representation: selectableContent(names, examples) },
  };
}

export function replaceDescription({ collection, names, examples, shared }: Described): Description {
  const traits: Traits = {
    ...memberTraits(collection, 'update', collection.putCreates),
    method: 'PUT',
    contentTypes: bodyTypes(collection),
    asynchronous: true,
    creates: collection.putCreates ? 'sometimes' : 'never',
    contentCodes,
    proposalCodes: ['field_missing', 'field_unpatchable', 'validation_failed'],
    resultCodes: storeCodes(collection, collection.putCreates ? 'create' : 'update'),
  };
  const creates = collection.putCreates ? ' Creates it where nothing stands, under the id of the path.' : '';
  return {
    ...shared,
    id: `replace${names.singular}`,
    summary: `Replace ${names.one}`,
    description: `Members left out are removed or reset.${creates}`,
    traits,
    preferences: ['return=minimal', 'respond-async'],
    requestContent: bodyContent(collection, names, examples),
    content: {
      changed: memberContent(names, examples),
      created: memberContent(names, examples),
      accepted: operationContent,
    },
  };
}

export function patchDescription({
  collection,
  names,
  components,
  examples,
  shared,
}: Described): Description {
  const proposalCodes: readonly ProblemCode[] = [
    'content_too_large',
    'field_unpatchable',
    'patch_malformed',
    'patch_not_applicable',
    'validation_failed',
  ];
  return {
    ...shared,
    id: `patch${names.singular}`,
    summary: `Change ${names.one}`,
    description: 'Atomic: all of the patch is applied, or none. `application/json` is read as a merge patch.',
    traits: {
      ...memberTraits(collection, 'update'),
      method: 'PATCH',
      contentTypes: patchTypes,
      idempotent: true,
      asynchronous: true,
      contentCodes: [...contentCodes, 'patch_malformed'],
      proposalCodes,
      resultCodes: storeCodes(collection, 'update'),
    },
    preferences: ['return=minimal', 'respond-async'],
    requestContent: patchContent(names, examples, components),
    content: { changed: memberContent(names, examples), accepted: operationContent },
  };
}

export function deleteDescription({ collection, names, examples, shared }: Described): Description {
  const soft = ' The resource is kept with `deletedAt` set and no longer served.';
  return {
    ...shared,
    id: `delete${names.singular}`,
    summary: `Delete ${names.one}`,
    description: `404 the second time.${collection.softDelete ? soft : ''}`,
    traits: {
      ...memberTraits(collection, 'delete'),
      method: 'DELETE',
      asynchronous: true,
      resultCodes: storeCodes(collection, 'delete'),
    },
    preferences: ['return=representation', 'respond-async'],
    content: {
      deleted_representation: memberContent(names, examples),
      accepted: operationContent,
    },
  };
}
