/** The resources of endpoints and recoveries behind the walk, with the wakes that they announce. */

import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Settings } from '../../../src/config/settings.ts';
import { createEgressPolicy } from '../../../src/egress/policy.ts';
import { withStages } from '../../../src/store/stages.ts';
import type { Store } from '../../../src/store/store.ts';
import { endpointResources } from '../../../src/webhooks/sending/endpoints/endpoint-routes.ts';
import { ContentFilters } from '../../../src/webhooks/sending/fan-out/content-filter.ts';
import { generationStage } from '../../../src/webhooks/sending/fan-out/generation.ts';
import type { EndpointDirectory } from '../../../src/webhooks/sending/known-endpoint.ts';
import { recoveryResources } from '../../../src/webhooks/sending/recovery/recover-endpoint.ts';
import type { SendingParts } from '../../../src/webhooks/sending/sending-parts.ts';
import { servicesOver } from '../../harness/services-over.ts';
import {
  type Answered,
  type AskAs,
  askerOf,
  roomOf,
  routed,
  type Surroundings,
  surround,
} from '../../harness/walked-resources.ts';
import { openDirectory } from './directory.ts';

export type WalkedEndpoints = Surroundings & {
  readonly directory: EndpointDirectory;
  /** Endpoints that were announced to have something due, in order. */
  readonly woken: string[];
  readonly ask: AskAs;
  /** An endpoint of this person. */
  make(who: string, fields?: object): Promise<Answered['json']>;
};

export const goodUrl = 'https://shop.example/hooks';

export async function walkEndpoints(
  store: Store,
  context: { after(close: () => Promise<void>): void } = { after },
  bounds: Partial<Pick<Settings, 'endpointsMax' | 'endpointsPerOwnerMax'>> = {},
): Promise<WalkedEndpoints> {
  const plain = surround(store, bounds);
  const { settings, clock } = plain;
  const directory = await openDirectory(store, clock);
  const surroundings = { ...plain, store: withStages(store, generationStage(directory, store.lines)) };
  context.after(() => directory.close());
  const woken: string[] = [];
  const policy = createEgressPolicy({ ...settings, ownListeners: () => [] });
  const parts: SendingParts = {
    ...servicesOver(store, { clock, settings }),
    directory,
    wakes: { changesFor: () => [], announce: (ids) => void woken.push(...ids) },
    eventTypes: new Map(),
    filters: new ContentFilters([]),
    view: () => undefined,
    refuseUrl: (url) => {
      const verdict = policy.checkUrl(url);
      return verdict.ok ? undefined : verdict.why;
    },
    sampleOf: (type) => (type === 'orders.paid' ? { id: 'o1', total: 3 } : undefined),
    forget: () => undefined,
  };
  const resources = routed(surroundings, {
    builtIn: (serving) => [endpointResources(parts, serving), recoveryResources(serving)],
  });
  const ask = askerOf(roomOf(surroundings, resources));
  return {
    ...surroundings,
    directory,
    woken,
    ask,
    async make(who, fields = {}) {
      const json = { url: goodUrl, events: ['*'], ...fields };
      const made = await ask(who, 'POST', 'endpoints', { json });
      assert.equal(made.status, 201, JSON.stringify(made.json));
      return made.json;
    },
  };
}
