/**
 * Wires what answers requests: everything that has a path, behind one router and one walk. Apart from compose.ts because of its size alone; the
 * same rule holds, that nothing is reached but by argument.
 */
import { unguessableCredential } from './auth/authenticate.ts';
import { challengesFor } from './auth/challenges.ts';
import type { Accounts } from './compose-accounts.ts';
import { composeDocument } from './compose-document.ts';
import type { Received } from './compose-received.ts';
import type { Webhooks } from './compose-webhooks.ts';
import type { Configuration } from './config/configuration.ts';
import type { LoadedSettings } from './config/load-settings.ts';
import type { Settings } from './config/settings.ts';
import type { Handler, Request, Response } from './http/message.ts';
import { createHttpDateCache } from './http/syntax/http-date.ts';
import { memoryBounds } from './memory/bounds.ts';
import type { OctetLine } from './memory/octet-line.ts';
import { anonymous } from './model/principal.ts';
import type { LoopWatch } from './observe/loop-watch.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { docsAssets } from './openapi/docs-assets.ts';
import { jwksResource } from './resources/accounts/jwks.ts';
import type { CorsPolicy } from './resources/answer/cors.ts';
import { decodeContent } from './resources/content/decode-content.ts';
import type { ContentThreads } from './resources/content-threads/content-threads.ts';
import { createEventViews } from './resources/events/seen-event.ts';
import { createIdempotency } from './resources/idempotency.ts';
import { createOperations, type Operations } from './resources/operations/operations.ts';
import { programResources } from './resources/program/resources.ts';
import type { CallerAddress } from './resources/rate-limit/caller-address.ts';
import type { RateLimiter } from './resources/rate-limit/rate-limiter.ts';
import { realtimeResources } from './resources/realtime/resources.ts';
import type { Resource } from './resources/resource.ts';
import type { Room } from './resources/room.ts';
import { createRouter } from './resources/router.ts';
import { createRoutes } from './resources/routes.ts';
import { Walk } from './resources/walk.ts';
import type { Before } from './resources/walk-start.ts';
import type { MaybePromise, Store } from './store/store.ts';

export type HandlerOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly observe: Observe;
  readonly metrics: Metrics;
  readonly store: Store;
  readonly clock: () => number;
  /** From 0 to 31. */
  readonly randomDigit: () => number;
  readonly newId: () => string;
  readonly mac: (text: string) => string;
  readonly rates: RateLimiter;
  readonly cors: CorsPolicy;
  readonly random: (count: number) => Buffer;
  /** The address that limits count a caller by. */
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
  /** Readiness says no from then on. */
  readonly drain: () => void;
};

export function composeHandler(options: HandlerOptions): ComposedHandler {
  const { configuration, settings, store, clock, newId, mac } = options;
  const { accounts, webhooks, received, loop, cors, rates } = options;
  let draining = false;
  const operations = operationsOf(options, (request, before) => new Walk(room, request, before).run());
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
        ...accounts.builtIn(webhooks.generation)(serving),
        ...webhooks.builtIn(serving),
        ...received.builtIn(serving),
      ],
      postedEvents: webhooks.postedEvents,
    }),
    ...realtimeOf(options),
    ...accounts.resources,
    ...webhooks.resources,
    ...received.resources,
    jwksResource({
      keys: () => [...accounts.keys.published(), ...webhooks.keys.published()],
      publishedSeconds: Math.min(accounts.keys.publishedSeconds, webhooks.keys.publishedSeconds),
    }),
    ...programResources({
      store,
      metrics: options.metrics,
      isDraining: () => draining,
      openApi: composeDocument({ ...options, eventTypes: webhooks.eventTypes }),
      assets: docsAssets(configuration.title),
    }),
  ]);
  const room: Room = {
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
    handler: (request) => new Walk(room, request).run(),
    operations,
    drain() {
      draining = true;
    },
  };
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

/** Formatted dates kept: Last-Modified of a busy collection repeats by the second. */
const httpDatesMax = memoryBounds.httpDates.entries;
