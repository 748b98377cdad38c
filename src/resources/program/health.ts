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

/** A phase of the program's life: requests are served in all of them, and a load balancer should send them in one. */
export type Phase = 'starting' | 'serving' | 'draining';

export type Life = {
  readonly phase: () => Phase;
  /** The start has ended. */
  serve(): void;
  drain(): void;
};

export function createLife(): Life {
  let phase: Phase = 'starting';
  return {
    phase: () => phase,
    serve: () => {
      if (phase === 'starting') phase = 'serving';
    },
    drain: () => {
      phase = 'draining';
    },
  };
}

export type HealthOptions = {
  readonly store: Store;
  readonly phase: () => Phase;
  readonly program: {
    /** Between this process's clock and another's, in words. */
    readonly clockDifference: () => string | undefined;
  };
};

export function healthResources({ store, phase, program }: HealthOptions): readonly Resource[] {
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
          description:
            '503 until the start has ended, while the store takes no writes, and while the server drains.',
          gives: { representation: json(healthSchema, { status: 'ready' }) },
        },
      },
      path: '/health/ready',
      read: async () => {
        // What is left of the start may still fail, and end the program.
        if (phase() === 'starting') throw new StoreUnavailable('starting', { retryAfterSeconds: 1 });
        if (phase() === 'draining') throw new StoreUnavailable('draining', { retryAfterSeconds: 5 });
        await store.ping();
        const difference = program.clockDifference();
        const detail = difference && `another process on the same store has ${difference}`;
        return { content: JSON.stringify({ status: 'ready', detail }) };
      },
    }),
  ];
}
