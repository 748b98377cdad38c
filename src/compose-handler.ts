/** Wires what answers requests: all resources, behind one router and one walk. */

import type { Accounts } from './accounts/accounts.ts';
import { unguessableCredential } from './accounts/authenticate.ts';
import { challengesFor } from './accounts/challenges.ts';
import { jwksResource } from './accounts/tokens/jwks-route.ts';
import { composeDocument } from './compose-document.ts';
import type { Configuration } from './config/configuration.ts';
import type { LoadedSettings } from './config/load-settings.ts';
import type { Settings } from './config/settings.ts';
import type { Handler, Request, Response } from './http/message.ts';
import { createHttpDateCache } from './http/syntax/http-date.ts';
import type { CorsPolicy } from './kernel/answer/cors.ts';
import { decodeContent } from './kernel/content/decode-content.ts';
import { createIdempotency } from './kernel/idempotency.ts';
import { createOperations, type Operations } from './kernel/operations/operations.ts';
import type { CallerAddress } from './kernel/rate-limit/caller-address.ts';
import type { RateLimiter } from './kernel/rate-limit/rate-limiter.ts';
import type { Resource } from './kernel/resource.ts';
import { createRouter } from './kernel/router.ts';
import { Walk } from './kernel/walk.ts';
import type { WalkContext } from './kernel/walk-context.ts';
import type { Before } from './kernel/walk-start.ts';
import { memoryBounds } from './memory/bounds.ts';
import type { OctetLine } from './memory/octet-line.ts';
import { anonymous } from './model/principal.ts';
import type { LoopWatch } from './observe/loop-watch.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { docsAssets } from './openapi/docs-assets.ts';
import { realtimeResources } from './realtime/realtime-routes.ts';
import type { ContentThreads } from './resources/content-threads/content-threads.ts';
import { createEventViews } from './resources/events/seen-event.ts';
import { programResources } from './resources/program/program-routes.ts';
import { createRoutes } from './resources/routes.ts';
import type { MaybePromise, Store } from './store/store.ts';
import type { Received } from './webhooks/receiving/receiving.ts';
import type { Webhooks } from './webhooks/sending/sending.ts';

export type HandlerOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly observe: Observe;
  readonly metrics: Metrics;
  readonly store: Store;
  readonly clock: () => number;
  readonly randomDigit: () => number;
  readonly newId: () => string;
  readonly mac: (text: string) => string;
  readonly rates: RateLimiter;
  readonly cors: CorsPolicy;
  readonly random: (count: number) => Buffer;
  readonly addressOf: CallerAddress;
  readonly accounts: Accounts;
  readonly webhooks: Webhooks<Store>;
  readonly received: Received;
  readonly loop: LoopWatch;
  readonly contentThreads: ContentThreads;
  /** For pages that come from another process. */
  readonly pageLine: OctetLine;
};

export type ComposedHandler = {
  readonly handler: Handler;
  readonly operations: Operations;
  /** Readiness is negative from then on. */
  readonly drain: () => void;
};

export function composeHandler(options: HandlerOptions): ComposedHandler {
  const { configuration, settings, store, clock, newId, mac } = options;
  const { accounts, webhooks, received, loop, cors, rates } = options;
  let draining = false;
  const operations = operationsOf(options, (request, before) => new Walk(context, request, before).run());
  const router = createRouter([
    ...createRoutes({
      ...settings,
      ...{ store, newId, clock, mac, pageLine: options.pageLine },
      base: configuration.base,
      collections: configuration.collections,
      addressOf: options.addressOf,
      queryLimits: {
        ...settings,
        json: { depthMax: settings.jsonDepthMax, keysMax: settings.jsonMembersMax },
      },
      ...{ contentLimits: settings, longContent: options.contentThreads },
      streamLimits: streamLimitsOf(settings),
      builtIn: (serving) => [
        ...accounts.resources,
        ...accounts.builtIn(webhooks.generation)(serving),
        publicKeysOf(options),
        ...webhooks.builtIn(serving),
        ...webhooks.resources,
        ...received.builtIn(serving),
        ...received.resources,
      ],
      postedEvents: webhooks.postedEvents,
    }),
    ...realtimeOf(options),
    ...programResources({
      store,
      metrics: options.metrics,
      isDraining: () => draining,
      openApi: composeDocument({
        ...options,
        resources: () => router.resources,
        eventTypes: webhooks.eventTypes,
      }),
      assets: docsAssets(configuration.title),
    }),
  ]);
  const context: WalkContext = {
    router,
    limits: { ...settings, traceEnabled: settings.traceMethod },
    clock,
    authenticate: accounts.authenticate,
    decodeContent: (bytes, codings, memory) =>
      decodeContent(bytes, codings, { bytesMax: settings.decodedBytesMax, memory }),
    lines: store.lines,
    idempotency: createIdempotency({
      ...{ store, clock, newId, lifetimeSeconds: settings.idempotencySeconds },
      sealing: { secretOf: unguessableCredential, random: options.random },
    }),
    operations,
    ...{ cors, rates, loop },
    challengesFor,
    development: settings.development,
    formatDate: createHttpDateCache(httpDatesMax),
  };
  return {
    handler: (request) => new Walk(context, request).run(),
    operations,
    drain() {
      draining = true;
    },
  };
}

function publicKeysOf({ accounts, webhooks }: HandlerOptions): Resource {
  return jwksResource({
    keys: () => [...accounts.keys.published(), ...webhooks.keys.published()],
    publishedSeconds: Math.min(accounts.keys.publishedSeconds, webhooks.keys.publishedSeconds),
  });
}

function streamLimitsOf({ eventBatchBytesMax, streamHeartbeatMs }: Settings) {
  return { batchBytesMax: eventBatchBytesMax, heartbeatMs: streamHeartbeatMs };
}

function operationsOf(
  { configuration, store, newId, clock, randomDigit: random, observe, accounts }: HandlerOptions,
  walk: (request: Request, before: Before) => MaybePromise<Response>,
): Operations {
  const path = `${configuration.base}/operations`;
  return createOperations(
    { store, path, newId, clock, random, observe },
    async (request, { principal }, companions) => {
      const identify = () =>
        principal === null ? { principal: anonymous } : accounts.principalNow(principal);
      return walk(request, { identify, companions });
    },
  );
}

function realtimeOf({ configuration, settings, accounts, ...rest }: HandlerOptions): readonly Resource[] {
  const { base, collections } = configuration;
  const declared = [...collections.values()];
  return realtimeResources({
    ...settings,
    ...rest,
    base,
    collections: declared,
    views: createEventViews(declared),
    crossSite: accounts.isCrossSite,
    limits: settings,
  });
}

/** Cached dates: Last-Modified of a busy collection repeats by the second. */
const httpDatesMax = memoryBounds.httpDates.entries;
