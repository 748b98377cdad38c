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
  properties: {
    status: { enum: ['live', 'ready'] },
    detail: {
      type: 'string',
      description: 'What an operator should look at although the process serves requests; absent if nothing.',
    },
  },
  required: ['status'],
});

export type HealthOptions = {
  readonly store: Store;
  /** True once the program has started to stop. */
  readonly isDraining: () => boolean;
  readonly program: {
    /** Between this process's clock and another's, in words. */
    readonly clockDifference: () => string | undefined;
  };
};

export function healthResources({ store, isDraining, program }: HealthOptions): readonly Resource[] {
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
        const difference = program.clockDifference();
        const detail = difference && `another process on the same store has ${difference}`;
        return { content: JSON.stringify({ status: 'ready', detail }) };
      },
    }),
  ];
}
