/** Wires receiving webhooks (§4.14): a path for each sender, the inbox, and the processing of messages. */
import type { Configuration } from '../../config/configuration.ts';
import { moduleSentence } from '../../config/define.ts';
import { ConfigurationError } from '../../config/inspection.ts';
import type { Source } from '../../config/sources.ts';
import type { Dial } from '../../egress/dial.ts';
import type { Exchange } from '../../egress/exchange.ts';
import { createGuardedFetch, type GuardedFetch } from '../../egress/guarded-fetch.ts';
import type { Resource } from '../../kernel/resource.ts';
import { createHandlerThreads, type HandlerThreads } from '../../logic/threads/handler-threads.ts';
import type { OpenTransaction } from '../../logic/transaction/resource-call.ts';
import type { ServedCollection, Serving } from '../../resources/collection/serving.ts';
import type { Services } from '../../store/capabilities.ts';
import type { RetentionRule } from '../../store/retention.ts';
import type { Lanes } from '../../work/lanes.ts';
import type { Starts } from '../../work/starts.ts';
import { createAccept } from './accept-message.ts';
import { createForward } from './forward-message.ts';
import { type HandOn, handlersOn } from './hand-on.ts';
import { createHandingOn, type HandingOn } from './handing-on-engine.ts';
import { receivedResources } from './received/received-routes.ts';
import { receivingRetention } from './received-tables.ts';
import { receiveResources } from './receiver-routes.ts';
import { loadSenderSecrets, type MadeSecret, type SenderSecrets } from './sender-secrets.ts';
import { senderResources } from './senders/sender-routes.ts';

export type ReceivedOptions = Services & {
  readonly configuration: Configuration;
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration as a module, which the threads of handlers import; undefined: there is none. */
  readonly module: string | undefined;
  readonly exchange: Exchange;
  readonly dial: Dial;
  readonly lanes: Lanes;
  readonly starts?: Starts;
  /** For the functions of handlers; called when the first message is handled. */
  readonly openTransaction: OpenTransaction;
};

export type Received = {
  readonly made: readonly MadeSecret[];
  readonly builtIn: (serving: Serving) => readonly ServedCollection[];
  readonly resources: readonly Resource[];
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Wakes a source: this process stored a message of it. */
  wake(source: string): void;
  start(): Promise<void>;
  /** Starts no further attempts and waits at most `ms` milliseconds for those under way. */
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
};

/** @throws ConfigurationError if a handler is declared without a module to import it from */
export async function createReceiving(options: ReceivedOptions): Promise<Received> {
  const { configuration, settings } = options;
  const { senders } = configuration;
  const { secrets, made } = await loadSenderSecrets({ ...options, senders, given: options.senderSecrets });
  const threads = threadsOf(options);
  const engine = engineOf(options, secrets, threads);
  const keys = createGuardedFetch({ ...options, ...settings });
  return {
    made,
    builtIn: (serving) => [receivedResources(options, sourcesOf(configuration), serving)],
    resources: resourcesOf(options, secrets, keys, engine),
    retention: receivingRetention(settings),
    gauges: gaugesOf(engine),
    wake: (source) => engine.wake(source),
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

function threadsOf(options: ReceivedOptions): HandlerThreads | undefined {
  const { configuration, settings, module } = options;
  const handled = [...sourcesOf(configuration).values()].filter(({ handOn }) => isFunction(handOn));
  if (handled.length === 0) return undefined;
  if (module === undefined) {
    const names = handled.map(({ name }) => name).join(', ');
    throw new ConfigurationError([`handlers of senders, subscribers and jobs (${names}) ${moduleSentence}`]);
  }
  const monotonic = (): number => performance.now();
  return createHandlerThreads({ ...options, module, settings, monotonic });
}

function isFunction({ kind }: Source['handOn']): boolean {
  return kind === 'handler' || kind === 'subscriber' || kind === 'job';
}

/** By their names in the inbox. */
function sourcesOf({ senders, subscribers, jobs }: Configuration): ReadonlyMap<string, Source> {
  const functions = [...subscribers.values(), ...jobs.values()].map(({ source }) => source);
  return new Map([...senders.values(), ...functions].map((source) => [source.name, source]));
}

function engineOf(
  options: ReceivedOptions,
  secrets: SenderSecrets,
  threads: HandlerThreads | undefined,
): HandingOn {
  const { configuration, settings } = options;
  const forward = createForward(options, options.exchange, secrets);
  const handlers = threads === undefined ? undefined : handlersOn(threads, settings.subscriberDepthMax);
  const handOnOf = ({ handOn }: Source): HandOn | undefined => {
    if (handOn.kind === 'forward') return forward;
    return isFunction(handOn) ? handlers : undefined;
  };
  return createHandingOn({
    ...options,
    memory: options.memory.budget,
    senders: sourcesOf(configuration),
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
  const { configuration } = options;
  const accept = createAccept(options, configuration.senders, secrets, {
    ...{ fetchKeys, accepted: (sender) => engine.wake(sender) },
  });
  return [
    ...receiveResources(options, configuration, accept),
    ...senderResources(options, configuration, secrets),
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
