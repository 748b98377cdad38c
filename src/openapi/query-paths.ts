/** Stored queries and their results (§4.9.3). */
import { permission } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { anonymous } from '../model/principal.ts';
import type { Components } from './components.ts';
import { pageParameters } from './list-parameters.ts';
import type { Content } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { pathParameter } from './path-parameter.ts';
import { openGate, plainRead } from './traits.ts';

export function queryPaths(
  base: string,
  collections: Iterable<Collection>,
  components: Components,
): readonly PathDescription[] {
  const readable = [...collections].every(
    ({ access }) => permission(access.read, 'read', anonymous) !== 'denied',
  );
  const standing = { ...plainRead, gate: openGate, mayBeMissing: true, mayBeClosed: !readable } as const;
  const page = components.add('schemas', 'QueryResult', {
    description: 'A page of the collection that was queried.',
    type: 'object',
    properties: {
      items: { type: 'array', items: { type: 'object' } },
      nextCursor: { type: ['string', 'null'] },
    },
    required: ['items', 'nextCursor'],
  });
  const content: Content = { 'application/json': { schema: page } };
  const token = pathParameter('token', 'From Location of a QUERY.');
  return [
    {
      path: `${base}/queries/{token}`,
      name: 'Query',
      noun: 'a stored query',
      parameters: [token],
      operations: [
        {
          id: 'repeatQuery',
          tag: 'queries',
          summary: 'Repeat a stored query',
          description: 'Where Location of a QUERY leads: the same query, on what stands now, page by page.',
          traits: { ...standing, proposalCodes: ['query_parameter_invalid'] },
          parameters: pageParameters(components),
          preferences: ['count=exact'],
          content: { representation: content },
          representationFields: ['Link', 'X-Total-Count'],
        },
      ],
    },
    {
      path: `${base}/queries/{token}/results/{version}`,
      name: 'QueryResult',
      noun: 'the result of a query',
      parameters: [token, pathParameter('version', 'From Content-Location of a QUERY.')],
      operations: [
        {
          id: 'readQueryResult',
          tag: 'queries',
          summary: 'Read the result of a query',
          description:
            'Where Content-Location of a QUERY leads: that very result, while it still stands or is kept.',
          traits: { ...standing, validators: 'none', proposalCodes: ['result_gone'] },
          content: { representation: content },
          representationFields: ['ETag', 'Link'],
        },
      ],
    },
  ];
}
