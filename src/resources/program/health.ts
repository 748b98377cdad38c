/**
 * `/health/live`: the process responds. `/health/ready`: it can serve requests; 503 while the store is unavailable or
 * the server drains.
 */

import { json, named } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { type Store, StoreUnavailable } from '../../store/store.ts';
import { documentResource } from './document.ts';

const healthSchema = named('Health', {
  type: 'object',
  properties: { status: { enum: ['live', 'ready'] } },
  required: ['status'],
});

/** @param isDraining true once the program has started to stop */
export function healthResources(store: Store, isDraining: () => boolean): readonly Resource[] {
  const common = { mediaType: 'application/json', cacheControl: 'no-store', stable: false, inReserve: true };
  return [
    documentResource({
      ...common,
      documentation: {
        name: 'Live',
        noun: 'liveness',
        read: {
          id: 'checkLive',
          summary: 'Check that the process responds',
          gives: { representation: json(healthSchema, { status: 'live' }) },
        },
      },
      path: '/health/live',
      read: () => ({ content: '{"status":"live"}' }),
    }),
    documentResource({
      ...common,
      documentation: {
        name: 'Ready',
        noun: 'readiness',
        read: {
          id: 'checkReady',
          summary: 'Check that the process can serve requests',
          description: '503 while the store does not respond or the server drains.',
          gives: { representation: json(healthSchema, { status: 'ready' }) },
        },
      },
      path: '/health/ready',
      read: async () => {
        if (isDraining()) throw new StoreUnavailable('draining', { retryAfterSeconds: 5 });
        await store.ping();
        return { content: '{"status":"ready"}' };
      },
    }),
  ];
}
