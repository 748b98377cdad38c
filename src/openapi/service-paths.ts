/**
 * What the program serves about itself: health, metrics and this document.
 */
import type { Components } from './components.ts';
import type { Item } from './item.ts';
import type { Description } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { plainRead, type Traits } from './traits.ts';

const uncounted: Traits = { ...plainRead, unlimited: true };

export function servicePaths(components: Components): readonly PathDescription[] {
  const health = components.add('schemas', 'Health', {
    type: 'object',
    properties: { status: { enum: ['live', 'ready'] } },
    required: ['status'],
  });
  const healthy = (status: string): Pick<Description, 'traits' | 'content'> => ({
    traits: uncounted,
    content: { representation: { 'application/json': { schema: health, example: { status } } } },
  });
  return [
    {
      path: '/health/live',
      name: 'Live',
      noun: 'liveness',
      operations: [
        { ...healthy('live'), id: 'checkLive', tag: 'service', summary: 'Whether the process answers' },
      ],
    },
    {
      path: '/health/ready',
      name: 'Ready',
      noun: 'readiness',
      operations: [
        {
          ...healthy('ready'),
          id: 'checkReady',
          tag: 'service',
          summary: 'Whether requests can be served',
          description: '503 while the store cannot answer or the server drains.',
        },
      ],
    },
    {
      path: '/metrics',
      name: 'Metrics',
      noun: 'metrics',
      operations: [
        {
          id: 'readMetrics',
          tag: 'service',
          summary: 'Metrics in the Prometheus text format',
          description: 'Administrators only.',
          traits: { ...uncounted, gate: { anonymous: false, known: false } },
          content: { representation: { 'text/plain': { schema: { type: 'string' } } } },
        },
      ],
    },
    {
      path: '/openapi.json',
      name: 'OpenApi',
      noun: 'this document',
      operations: [
        {
          id: 'readOpenApi',
          tag: 'service',
          summary: 'This document',
          traits: { ...uncounted, proposalCodes: ['query_parameter_invalid'] },
          parameters: [versionParameter],
          content: { representation: { 'application/json': { schema: { type: 'object' } } } },
        },
      ],
    },
  ];
}

const versionParameter: Item = {
  name: 'version',
  in: 'query',
  description: 'Version of the OpenAPI Specification: 3.1 for tools that do not know 3.2 yet.',
  schema: { type: 'string', enum: ['3.2', '3.1'], default: '3.2' },
};
