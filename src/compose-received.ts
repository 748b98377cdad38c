/**
 * Wires what receives webhooks (§4.14): senders with a path each, the inbox, and what hands messages on. Apart from compose.ts because of its
 * size alone; the same rule holds, that nothing is reached but by argument.
 */
import type { Configuration } from './config/configuration.ts';
import { ConfigurationError } from './config/configuration-error.ts';
import type { DeclaredSender } from './config/senders.ts';
import type { Settings } from './config/settings.ts';
import type { Dial } from './egress/dial.ts';
import type { Exchange } from './egress/exchange.ts';
import { createGuardedFetch, type GuardedFetch } from './egress/guarded-fetch.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import type { ServedCollection, Serving } from './resources/collection/serving.ts';
import type { Resource } from './resources/resource.ts';
import { createOpenTransaction } from './resources/webhooks/handling/transaction.ts';
import { receiveResources } from './resources/webhooks/receive/resources.ts';
import { receivedResources } from './resources/webhooks/received/resources.ts';
import { senderResources } from './resources/webhooks/senders/resources.ts';
import type { RetentionRule } from './store/retention.ts';
import type { Store } from './store/store.ts';
import { createAccept } from './webhooks/inbound/accept/accept.ts';
import { createHandingOn, type HandingOn } from './webhooks/inbound/engine/engine.ts';
import { createForward } from './webhooks/inbound/forward/forward.ts';
import type { HandOn, OpenTransaction } from './webhooks/inbound/hand-on.ts';
import { createHandlerThreads, type HandlerThreads } from './webhooks/inbound/handle/handler-threads.ts';
import { inboundRetention } from './webhooks/inbound/retention.ts';
import { loadSenderSecrets } from './webhooks/inbound/secrets/load.ts';
import { rotateSenderSecret } from './webhooks/inbound/secrets/rotate.ts';
import type { MadeSecret, SenderSecrets } from './webhooks/inbound/sender-secrets.ts';
import type { EventTypes } from './webhooks/outbound/event-types/event-types.ts';
import type { Lanes } from './webhooks/outbound/lanes.ts';

export type ReceivedOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly observe: Observe;
  /** Whose commits add deliveries: what handlers write is announced. */
  readonly store: Store;
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly newId: () => string;
  /** Secrets of the environment by variable. */
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration as a module, which the threads of handlers import; undefined: there is none. */
  readonly module: string | undefined;
  readonly exchange: Exchange;
  /** For keys that senders publish. */
  readonly dial: Dial;
  readonly lanes: Lanes;
  readonly eventTypes: EventTypes;
};

export type Received = {
  /** Made at this start, to be shown this once. */
  readonly made: readonly MadeSecret[];
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly resources: readonly Resource[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Hands on from now on. */
  start(): Promise<void>;
  /** Begins nothing more and waits for what is under way, at most so long (ms). */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
};

/** @throws ConfigurationError where a handler is declared and no module is there to import it from */
export async function composeReceived(options: ReceivedOptions): Promise<Received> {
  const { configuration, settings } = options;
  const { senders } = configuration;
  const { secrets, made } = await loadSenderSecrets({ ...options, senders, given: options.senderSecrets });
  // Known when the collections are served, which is before any message is handed on.
  let openTransaction: OpenTransaction | undefined;
  const threads = threadsOf(options, () => {
    if (openTransaction === undefined) throw new Error('a handler ran before the collections were served');
    return openTransaction();
  });
  const engine = engineOf(options, secrets, threads);
  const keys = createGuardedFetch({ ...options, ...settings });
  return {
    made,
    builtIn: (serving) => {
      const { eventTypes } = options;
      const { collections } = configuration;
      openTransaction = createOpenTransaction({ serving, collections, eventTypes, limits: settings });
      return [receivedResources({ senders, ...settings }, serving)];
    },
    resources: resourcesOf(options, secrets, keys, engine),
    retention: inboundRetention(settings),
    gauges: gaugesOf(engine),
    start: () => engine.start(),
    drain: (ms) => engine.drain(ms),
    async close() {
      await engine.close();
      await threads?.close();
      await keys.close();
      await secrets.close();
    },
  };
}

function threadsOf(options: ReceivedOptions, openTransaction: OpenTransaction): HandlerThreads | undefined {
  const { configuration, settings, module } = options;
  const handled = [...configuration.senders.values()].filter(({ handOn }) => handOn.kind === 'handler');
  if (handled.length === 0) return undefined;
  if (module === undefined) {
    const names = handled.map(({ name }) => name).join(', ');
    throw new ConfigurationError([
      `senders with a handler (${names}) need a module that threads can import: give createComity { module: new URL('./comity.config.ts', import.meta.url) }, whose default export is this configuration`,
    ]);
  }
  const monotonic = (): number => performance.now();
  return createHandlerThreads({ ...options, module, openTransaction, settings, monotonic });
}

function engineOf(
  options: ReceivedOptions,
  secrets: SenderSecrets,
  threads: HandlerThreads | undefined,
): HandingOn {
  const { configuration, settings } = options;
  const forward = createForward({ ...options, ...settings, secrets, version: packageVersion() });
  const handOnOf = ({ handOn }: DeclaredSender): HandOn | undefined => {
    if (handOn.kind === 'forward') return forward;
    return handOn.kind === 'handler' ? threads?.handOn : undefined;
  };
  return createHandingOn({
    ...options,
    senders: configuration.senders,
    handOnOf,
    random: Math.random,
    settings,
  });
}

function resourcesOf(
  options: ReceivedOptions,
  secrets: SenderSecrets,
  { fetch: fetchKeys }: GuardedFetch,
  engine: HandingOn,
): readonly Resource[] {
  const { configuration, settings, store, clock, random } = options;
  const { base, senders } = configuration;
  const accept = createAccept({
    ...{ ...options, ...settings, senders, secrets, fetchKeys },
    accepted: (sender) => engine.wake(sender),
  });
  return [
    ...receiveResources({ ...settings, senders, base, accept }),
    ...senderResources({
      ...{ base, senders, secrets, clock, ...settings, limits: settings, listLimits: settings },
      rotate: (name, how) => rotateSenderSecret({ store, clock, random }, name, how),
    }),
  ];
}

function gaugesOf(engine: HandingOn): Received['gauges'] {
  return [
    [
      'comity_received_in_flight',
      'Received messages that are being handed on.',
      () => engine.counts().inFlight,
    ],
    [
      'comity_senders_paused',
      'Senders whose messages wait because handing them on failed.',
      () => engine.counts().paused,
    ],
  ];
}
