/** Asynchronous operations and what came of them (§4.1; RFC 7240 §4.1). */
import type { Components } from './components.ts';
import type { Content } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { pathParameter } from './path-parameter.ts';
import { plainRead } from './traits.ts';

const createdAt = '2026-08-01T09:30:00.000Z';

export function operationPaths(base: string, components: Components): readonly PathDescription[] {
  const schema = components.add('schemas', 'Operation', {
    description: 'How an asynchronous request goes.',
    type: 'object',
    properties: {
      id: { type: 'string' },
      status: { enum: ['pending', 'succeeded', 'failed'] },
      createdAt: { type: 'string', format: 'date-time' },
      updatedAt: { type: 'string', format: 'date-time' },
      result: { type: 'string', format: 'uri-reference', description: 'Where the result lies.' },
      outcome: { description: 'The representation after the change, or the error body.' },
    },
    required: ['id', 'status', 'createdAt', 'updatedAt'],
  });
  const id = 'op_01k1jx7v2mh5s8b4c9d0e6f3ga';
  const pending = { id, status: 'pending', createdAt, updatedAt: createdAt };
  const content: Content = { 'application/json': { schema, example: pending } };
  const parameters = [pathParameter('id', 'From Location of a 202.')];
  const gate = { anonymous: false, known: false };
  const traits = { ...plainRead, gate, mayBeMissing: true, mayBeHidden: true, validators: 'none' } as const;
  return [
    {
      path: `${base}/operations/{id}`,
      name: 'Operation',
      noun: 'an asynchronous operation',
      parameters,
      operations: [
        {
          id: 'readOperation',
          tag: 'operations',
          summary: 'Follow an asynchronous request',
          description:
            '303 to the result once it has succeeded. Only who asked, and an administrator, sees it.',
          traits: { ...traits, redirects: 'sometimes' },
          content: { representation: content },
          representationFields: ['ETag', 'Retry-After'],
        },
      ],
    },
    {
      path: `${base}/operations/{id}/result`,
      name: 'OperationResult',
      noun: 'the result of an operation',
      parameters,
      operations: [
        {
          id: 'readOperationResult',
          tag: 'operations',
          summary: 'Read what came of an asynchronous request',
          description: 'For requests whose result has no address of its own. 404 while it is pending.',
          traits,
          content: { representation: { 'application/json': { schema: {} } } },
          representationFields: ['ETag'],
        },
      ],
    },
  ];
}
