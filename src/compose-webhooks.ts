/**
 * Wires what sends webhooks (§6): from the store that adds deliveries to every unit with events to the engine that sends them, and what of it has
 * a path. Apart from compose.ts because of its size alone; the same rule holds, that nothing is reached but by argument.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { OwnerPrincipal } from './auth/owner-principal.ts';
import { keysTable, usersTable } from './auth/tables.ts';
import type { Configuration } from './config/configuration.ts';
import type { Settings } from './config/settings.ts';
import { createDialer, type Dial } from './egress/dial.ts';
import type { Exchange } from './egress/exchange.ts';
import { createLateExchanges } from './egress/late-exchanges.ts';
import type { OwnListener } from './egress/own-listeners.ts';
import { createEgressPolicy, type EgressPolicy } from './egress/policy.ts';
import type { MemoryBudget } from './memory/budget.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import type { ServedCollection, Serving } from './resources/collection/serving.ts';
import { createEventViews } from './resources/events/seen-event.ts';
import type { Resource } from './resources/resource.ts';
import { deliveryResources } from './resources/webhooks/deliveries/resources.ts';
import { endpointResources } from './resources/webhooks/endpoints/resources.ts';
import { withGeneration } from './resources/webhooks/endpoints/with-generation.ts';
import { eventTypeResources } from './resources/webhooks/event-types/resources.ts';
import { type PostedEvents, postedEvents } from './resources/webhooks/events/resources.ts';
import { recoveryResources } from './resources/webhooks/recoveries/resources.ts';
import type { RetentionRule } from './store/retention.ts';
import type { Change, Store } from './store/store.ts';
import { moveHeaderValues } from './webhooks/outbound/endpoint-headers.ts';
import { createEngine, type Engine } from './webhooks/outbound/engine/engine.ts';
import { type EventTypes, eventTypesOf } from './webhooks/outbound/event-types/event-types.ts';
import { createEndpointDirectory, type FollowedDirectory } from './webhooks/outbound/fan-out/directory.ts';
import { createExpansion } from './webhooks/outbound/fan-out/expansion.ts';
import { createWants } from './webhooks/outbound/fan-out/wants.ts';
import { withDeliveries } from './webhooks/outbound/fan-out/with-deliveries.ts';
import { createHealth } from './webhooks/outbound/health/health.ts';
import type { Notify } from './webhooks/outbound/health/notice.ts';
import { createWebhookKeys, type WebhookKeys } from './webhooks/outbound/keys/webhook-keys.ts';
import { createLanes } from './webhooks/outbound/lanes/create-lanes.ts';
import type { Lanes } from './webhooks/outbound/lanes.ts';
import { createRecoveries } from './webhooks/outbound/recovery/recoveries.ts';
import { outboundRetention } from './webhooks/outbound/retention.ts';
import { createSend } from './webhooks/outbound/send/create-send.ts';
import { createEventSource, type EventSource } from './webhooks/outbound/send/event-source.ts';
import { createSettle } from './webhooks/outbound/settle.ts';
import { createWakes, type Wakes } from './webhooks/outbound/wakes.ts';

export type WebhooksOptions<S extends Store> = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly observe: Observe;
  readonly store: S;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly newId: () => string;
  readonly principalOf: OwnerPrincipal;
  readonly notify: Notify | undefined;
  /** For events that are being sent. */
  readonly memory: MemoryBudget;
  /** Where the program listens: nothing is sent there. */
  readonly ownListeners: () => readonly OwnListener[];
};

export type Webhooks<S extends Store> = {
  /** What rooms write through: its `commit` adds the deliveries of each event. */
  readonly store: S;
  readonly keys: Pick<WebhookKeys, 'published' | 'publishedSeconds'>;
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly postedEvents: (serving: Serving) => PostedEvents;
  /** For what changes the rights of owners: see `EndpointGeneration` of accounts. */
  readonly generation: {
    readonly generationChanges: () => readonly Change[];
    readonly inStep: (store: Store) => Store;
  };
  readonly eventTypes: EventTypes;
  /** For what goes out besides: through the guard, over the same pools. */
  readonly exchange: Exchange;
  readonly dial: Dial;
  readonly lanes: Lanes;
  readonly resources: readonly Resource[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Sends from now on. */
  start(): Promise<void>;
  /** Begins nothing more and waits for what is under way, at most so long (ms). */
  drain(ms: number): Promise<void>;
  /** After `drain`: gives the lanes back and lets go of connections and timers. */
  close(): Promise<void>;
};

/** What every part of it is given. */
type Parts<S extends Store> = WebhooksOptions<S> & {
  readonly directory: FollowedDirectory;
  readonly wakes: Wakes;
  readonly policy: EgressPolicy;
  readonly events: EventSource;
  readonly fannedOut: S;
};

export async function composeWebhooks<S extends Store>(options: WebhooksOptions<S>): Promise<Webhooks<S>> {
  const { configuration, settings, store } = options;
  const collections = [...configuration.collections.values()];
  const directory = await createEndpointDirectory({
    ...options,
    collections,
    principalTables: [usersTable, keysTable],
  });
  await moveHeaderValues(withGeneration(store, directory), directory);
  const wakes = await createWakes({ ...options, directory });
  const expansion = createExpansion({ ...options, directory, wakes });
  const fannedOut = withDeliveries(store, { ...options, directory, wakes, expansion });
  const policy = createEgressPolicy({ ...settings, ownListeners: options.ownListeners });
  const events = createEventSource(options);
  const parts = { ...options, directory, wakes, policy, events, fannedOut };
  const sender = await composeSender(parts);
  return {
    store: fannedOut,
    generation: {
      generationChanges: () => directory.generationChanges(),
      inStep: (inner) => withGeneration(inner, directory),
    },
    keys: sender.keys,
    exchange: sender.exchange,
    dial: sender.dial,
    lanes: sender.lanes,
    ...resourcesOf(parts),
    retention: outboundRetention(settings),
    gauges: gaugesOf(sender.engine, directory),
    start: sender.start,
    drain: (ms) => sender.engine.drain(ms),
    async close() {
      await sender.close();
      await expansion.close();
      await wakes.close();
      await directory.close();
    },
  };
}

type Sender = {
  readonly keys: WebhookKeys;
  readonly engine: Engine;
  readonly exchange: Exchange;
  readonly dial: Dial;
  readonly lanes: Lanes;
  start(): Promise<void>;
  close(): Promise<void>;
};

async function composeSender<S extends Store>(parts: Parts<S>): Promise<Sender> {
  const { configuration, settings, store, clock, observe, directory, wakes, policy } = parts;
  const { events, fannedOut, memory } = parts;
  const monotonic = (): number => performance.now();
  const random = Math.random;
  const lanes = await createLanes({
    ...{ store, directory, clock, monotonic, settings, observe, isAlive },
    holder: { host: machine(), pid: process.pid, startedAt: Math.round(performance.timeOrigin) },
  });
  const keys = await createWebhookKeys({ ...parts, ...settings });
  const dial = createDialer({
    policy,
    ...settings,
    onDecision: (decision) => {
      if (decision.outcome === 'allowed') return;
      const { hostname: to, port, reason, why } = decision;
      observe({ kind: 'egress-refused', hostname: to, port, reason, why });
    },
  });
  const exchanges = createLateExchanges({ dial, settings });
  const send = createSend({
    ...settings,
    events,
    directory,
    exchange: exchanges.exchange,
    view: createEventViews(configuration.collections.values()),
    keys,
    clock,
    memory,
    version: packageVersion(),
  });
  const health = createHealth({ ...parts, store: fannedOut, lanes });
  const { schedules } = configuration;
  const settle = createSettle({ store, schedules, health, random, observe, settings });
  const engine = createEngine({
    ...{ store, directory, wakes, lanes, send, settle, clock, monotonic, random, settings, observe },
  });
  const wants = createWants(configuration.collections.values());
  const recoveries = createRecoveries({ ...parts, lanes, wants });
  return {
    keys,
    engine,
    exchange: exchanges.exchange,
    dial,
    lanes,
    async start() {
      await engine.start();
      recoveries.start();
    },
    async close() {
      await recoveries.close();
      await exchanges.close();
      await health.close();
      await lanes.close();
      await keys.close();
    },
  };
}

function resourcesOf<S extends Store>(
  parts: Parts<S>,
): Pick<Webhooks<S>, 'builtIn' | 'postedEvents' | 'eventTypes' | 'resources'> {
  const { configuration, settings, store, policy } = parts;
  const eventTypes = eventTypesOf(configuration);
  const own = { ...settings, ...parts, plainStore: store, eventTypes };
  const forget = (id: string): void => parts.events.forget(id);
  const httpsRequired = settings.webhookHttpsRequired;
  const refuseUrl = (url: string): string | undefined => {
    const verdict = policy.checkUrl(url, { httpsRequired });
    return verdict.ok ? undefined : verdict.why;
  };
  const sampleOf = (type: string) => eventTypes.get(type)?.sample;
  return {
    builtIn: (serving) => [
      endpointResources({ ...own, refuseUrl, sampleOf }, serving),
      deliveryResources(own, serving),
      recoveryResources(serving),
    ],
    postedEvents: (serving) => postedEvents({ ...own, forget }, serving),
    eventTypes,
    resources: eventTypeResources(eventTypes, `${configuration.base}/event-types`, settings),
  };
}

function gaugesOf(engine: Engine, directory: FollowedDirectory): Webhooks<Store>['gauges'] {
  return [
    ['comity_deliveries_in_flight', 'Webhook attempts under way.', () => engine.counts().inFlight],
    ['comity_webhook_endpoints', 'Webhook endpoints of all owners.', () => directory.size()],
  ];
}

/**
 * Where process numbers mean what they mean here: containers may share a name and not their processes. Off Linux the name has to do.
 */
function machine(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${hostname()} ${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

/** Signal 0 only asks. EPERM: it lives, and is somebody else's. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
