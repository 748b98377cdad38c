/**
 * Wires sending webhooks (§6): the store that adds deliveries to every unit with events, the engine that sends them,
 * and their resources.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { keysTable, usersTable } from '../../accounts/account-tables.ts';
import type { OwnerPrincipal } from '../../accounts/owner-principal.ts';
import type { Configuration } from '../../config/configuration.ts';
import { createDialer, type Dial } from '../../egress/dial.ts';
import type { Exchange } from '../../egress/exchange.ts';
import { createLateExchanges } from '../../egress/late-http.ts';
import { createEgressPolicy, type EgressPolicy, type OwnListener } from '../../egress/policy.ts';
import { untilReleased } from '../../hold/hold.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { packageVersion } from '../../package-version.ts';
import type { ServedCollection } from '../../resources/collection/serve-collection.ts';
import type { Serving } from '../../resources/collection/served-collection.ts';
import { createEventViews } from '../../resources/events/seen-event.ts';
import type { Services } from '../../store/capabilities.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { withStages } from '../../store/stages.ts';
import type { Change, Store } from '../../store/store.ts';
import { createLanes, type ThisProcess } from '../../work/lane-leases.ts';
import type { Lanes } from '../../work/lanes.ts';
import { createStarts } from '../../work/starts.ts';
import type { Timers } from '../../work/timers.ts';
import type { DueWork } from '../../work/work-engine.ts';
import { DeliveryEngine } from './delivery-engine.ts';
import { deliveryResources } from './delivery-routes.ts';
import { createHealth, type Notify } from './endpoint-health.ts';
import { updateEarlierEndpoints } from './endpoints/endpoint-owner.ts';
import { endpointResources } from './endpoints/endpoint-routes.ts';
import { type EventTypes, eventTypeResources, eventTypesOf, mayConcern } from './event-types/event-types.ts';
import { type Expunction, expungeResource } from './events/expunge.ts';
import { postEventOperation } from './events/post-event.ts';
import { ContentFilters } from './fan-out/content-filter.ts';
import { createEndpointDirectory } from './fan-out/directory.ts';
import { generationStage } from './fan-out/generation.ts';
import { createWants } from './fan-out/matcher.ts';
import { makeOwedDeliveries } from './fan-out/owed-deliveries.ts';
import { deliveriesStage } from './fan-out/with-deliveries.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import { recoveryResources } from './recovery/recover-endpoint.ts';
import { createRecoveries } from './recovery/recovery.ts';
import { createSend } from './send-delivery.ts';
import type { SendingParts } from './sending-parts.ts';
import { sendingRetention } from './sending-tables.ts';
import { createEventSource, type EventSource } from './sent-event.ts';
import { createSettle } from './settle-delivery.ts';
import { createWakes, type Wakes } from './wakes.ts';
import { createWebhookKeys, type WebhookKeys } from './webhook-keys.ts';

export type WebhooksOptions<S extends Store> = Services & {
  readonly configuration: Configuration;
  readonly store: S;
  readonly principalOf: OwnerPrincipal;
  readonly notify: Notify | undefined;
  readonly turns: LoopTurns;
  /** Addresses on which this program listens; deliveries to them are refused. */
  readonly ownListeners: () => readonly OwnListener[];
  readonly timers: Timers;
  /** In place of the connections to receivers. */
  readonly outside?: { readonly exchange: Exchange };
  /** Absent in a process without workers. */
  readonly worker?: WorkerIdentity | undefined;
};

export type Webhooks<S extends Store> = {
  /** The store for all writes: its `commit` adds the deliveries of each event, and keeps the generation of endpoints in step. */
  readonly store: S;
  readonly keys: Pick<WebhookKeys, 'published' | 'publishedSeconds'>;
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly postedEvents: (serving: Serving, expunction?: Omit<Expunction, 'forget'>) => PostedEvents;
  /** For changes of owners' rights: see `EndpointGeneration` of accounts. */
  readonly generation: { readonly generationChanges: () => readonly Change[] };
  readonly eventTypes: EventTypes;
  /** For other outgoing requests, with the same address guard and connection pools. */
  readonly exchange: Exchange;
  readonly dial: Dial;
  /** For received messages. */
  readonly work: DueWork;
  /** For mails: as long as a restored copy is held, it has no lanes. */
  readonly sendingWork: DueWork;
  readonly resources: readonly Resource[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  start(): Promise<void>;
  /** Starts no further attempts and waits at most `ms` milliseconds for those under way. */
  drain(ms: number): Promise<void>;
  /** Releases the lanes, and closes connections and timers; called after `drain`. */
  close(): Promise<void>;
};

type Parts<S extends Store> = WebhooksOptions<S> & {
  readonly directory: EndpointDirectory;
  readonly wakes: Wakes;
  readonly policy: EgressPolicy;
  readonly events: EventSource;
  /** The store for all writes. */
  readonly written: S;
};

export async function createSending<S extends Store>(options: WebhooksOptions<S>): Promise<Webhooks<S>> {
  const { configuration, settings, store, memory } = options;
  const collections = [...configuration.collections.values()];
  const directory = await createEndpointDirectory(options, collections, options.principalOf, [
    usersTable,
    keysTable,
  ]);
  const generation = generationStage(directory, store.lines);
  await updateEarlierEndpoints(withStages(store, generation), directory);
  const wakes = await createWakes(options, directory);
  const owed = makeOwedDeliveries(options, directory, wakes);
  const events = createEventSource(options);
  const deliveries = deliveriesStage({
    ...{ ...options, directory, wakes, owed, events },
    fanOuts: memory.fanOuts,
  });
  const written = withStages(store, generation, deliveries);
  const policy = createEgressPolicy({ ...settings, ownListeners: options.ownListeners });
  const parts = { ...options, directory, wakes, policy, events, written };
  const sender = await composeSender(parts);
  return {
    store: written,
    generation: { generationChanges: () => directory.generationChanges() },
    keys: sender.keys,
    exchange: sender.exchange,
    dial: sender.dial,
    work: sender.work,
    sendingWork: sender.sendingWork,
    ...resourcesOf(parts),
    retention: sendingRetention(settings),
    gauges: gaugesOf(sender.engine, directory),
    start: sender.start,
    drain: (ms) => sender.engine.drain(ms),
    async close() {
      await sender.close();
      await owed.close();
      await wakes.close();
      await directory.close();
    },
  };
}

type Sender = {
  readonly keys: WebhookKeys;
  readonly engine: DeliveryEngine;
  readonly exchange: Exchange;
  readonly dial: Dial;
  readonly work: DueWork;
  readonly sendingWork: DueWork;
  start(): Promise<void>;
  close(): Promise<void>;
};

async function composeSender<S extends Store>(parts: Parts<S>): Promise<Sender> {
  const { configuration, settings, clock, observe, directory, wakes, policy } = parts;
  const { events, written, memory } = parts;
  const { work, sendingLanes } = await workOf(parts);
  const { lanes, starts, uniform } = work;
  const sendingWork = { ...work, lanes: sendingLanes };
  const keys = await createWebhookKeys(parts);
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
  const exchange = parts.outside?.exchange ?? exchanges.exchange;
  const send = createSend({
    ...settings,
    events,
    directory,
    exchange,
    view: createEventViews(configuration.collections.values()),
    ...{ keys, starts },
    clock,
    memory: memory.deliveries,
    tracing: parts.tracing,
    version: packageVersion(),
  });
  const health = createHealth({ ...parts, store: written }, directory, sendingLanes, parts.notify);
  const { schedules } = configuration;
  const settle = createSettle(parts, schedules, health, uniform);
  const engine = new DeliveryEngine(parts, sendingWork, { directory, wakes, send, settle });
  const wants = createWants(configuration.collections.values());
  const recoveries = createRecoveries(parts, lanes, wakes, wants);
  return {
    ...{ keys, engine, exchange, dial },
    ...{ work, sendingWork },
    async start() {
      await engine.start();
      recoveries.start();
    },
    async close() {
      await recoveries.close();
      await exchanges.close();
      await health.close();
      await starts.close();
      await sendingLanes.close();
      await keys.close();
    },
  };
}

async function workOf<S extends Store>(
  parts: Parts<S>,
): Promise<{ readonly work: DueWork; readonly sendingLanes: Lanes }> {
  const { directory, timers, worker = onlyWorker } = parts;
  const holder = { host: machine(), pid: process.pid, startedAt: worker.startedAt, worker: worker.id };
  const lanes = await createLanes(parts, { holder, isAlive, hasEnded: worker.hasEnded }, directory, timers);
  const starts = await createStarts(parts, (look) => lanes.onChange(look));
  const work = { lanes, starts, timers, uniform: Math.random };
  return { work, sendingLanes: await untilReleased(lanes, parts) };
}

function resourcesOf<S extends Store>(
  parts: Parts<S>,
): Pick<Webhooks<S>, 'builtIn' | 'postedEvents' | 'eventTypes' | 'resources'> {
  const { configuration, settings, policy } = parts;
  const eventTypes = eventTypesOf(configuration);
  const view = createEventViews(configuration.collections.values());
  const httpsRequired = settings.webhookHttpsRequired;
  const refuseUrl = (url: string): string | undefined => {
    const verdict = policy.checkUrl(url, { httpsRequired });
    return verdict.ok ? undefined : verdict.why;
  };
  const sampleOf = (type: string, principal: Principal) => {
    const found = eventTypes.get(type);
    return found !== undefined && mayConcern(found, principal) ? found.sample : undefined;
  };
  const forget = (id: string): void => parts.events.forget(id);
  const filters = new ContentFilters(configuration.collections.values());
  const own: SendingParts = { ...parts, eventTypes, filters, view, refuseUrl, sampleOf, forget };
  return {
    builtIn: (serving) => [
      endpointResources(own, serving),
      deliveryResources(own, serving),
      recoveryResources(serving),
    ],
    postedEvents: (serving, expunction) => postedEvents(own, serving, expunction),
    eventTypes,
    resources: eventTypeResources(eventTypes, `${configuration.base}/event-types`, settings),
  };
}

/** The routes that sending webhooks adds to `/events`: POST, and the removal of one subject's events. */
type PostedEvents = {
  /** For `EventsOptions.post`. */
  readonly post: Operation;
  readonly resources: readonly Resource[];
};

export function postedEvents(
  parts: Services & Pick<SendingParts, 'eventTypes' | 'forget'>,
  serving: Serving,
  expunction: Omit<Expunction, 'forget'> = {},
): PostedEvents {
  // With fan-out: a posted event is delivered.
  const services = { ...parts, store: serving.store };
  return {
    post: postEventOperation(services, serving, parts.eventTypes) as Operation,
    resources: [expungeResource(services, `${serving.base}/events`, { ...expunction, forget: parts.forget })],
  };
}

function gaugesOf(engine: DeliveryEngine, directory: EndpointDirectory): Webhooks<Store>['gauges'] {
  return [
    ['comity_deliveries_in_flight', 'Webhook attempts under way.', () => engine.counts().inFlight],
    ['comity_webhook_endpoints', 'Webhook endpoints of all owners.', () => directory.size()],
  ];
}

/**
 * Identifies the namespace of process numbers: containers may share a host name without sharing processes. Off Linux,
 * the host name.
 */
function machine(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${hostname()} ${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

/** One of several workers of a process. */
export type WorkerIdentity = {
  readonly id: string | undefined;
  /** Start of the process, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly hasEnded: ThisProcess['hasEnded'];
};

const onlyWorker: WorkerIdentity = {
  id: undefined,
  startedAt: Math.round(performance.timeOrigin),
  hasEnded: () => false,
};

/** Signal 0 only tests. EPERM: the process exists and belongs to another user. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
