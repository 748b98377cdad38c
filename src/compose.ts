/**
 * Wires the running program by hand; only this file knows every adapter. Nothing is created at import and everything is an argument,
 * so two programs can run in one process and a test can start one with other settings.
 */
import { hash, randomBytes, randomInt } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Accounts, createAccounts } from './accounts/accounts.ts';
import { loadSecret } from './accounts/admin-key.ts';
import { unguessableCredential } from './accounts/authenticate.ts';
import { challengesFor } from './accounts/challenges.ts';
import { createOwnerPrincipal } from './accounts/owner-principal.ts';
import { createVerifiedCredentials, credentialsStage } from './accounts/verified-credentials.ts';
import { type Features, resourcesOf } from './all-resources.ts';
import type { Configuration } from './config/configuration.ts';
import type { LoadedSettings } from './config/load-settings.ts';
import type { Settings } from './config/settings.ts';
import type { Exchange } from './egress/exchange.ts';
import type { OwnListener } from './egress/own-listeners.ts';
import type { Request as KernelRequest } from './http/message.ts';
import { createScheduler } from './jobs/scheduler.ts';
import { corsPolicy } from './kernel/answer/cors.ts';
import { createHandler } from './kernel/handler.ts';
import { idempotencyTable } from './kernel/idempotency.ts';
import type { Operations } from './kernel/operations/operations.ts';
import { operationsTable } from './kernel/operations/stored-request.ts';
import { createCallerAddress } from './kernel/rate-limit/caller-address.ts';
import { createRateLimiter, type RateLimiter } from './kernel/rate-limit/rate-limiter.ts';
import { type ApplicationLogic, createLogic } from './logic/logic.ts';
import { type CallsAs, createCallsAs } from './logic/principal-calls.ts';
import { createMailKeeper, type MailKeeper } from './mail/keep-mail.ts';
import { createMails } from './mail/mails.ts';
import type { Transport } from './mail/smtp.ts';
import type { MemoryRefusal } from './memory/budget.ts';
import { createMemory } from './memory/program-memory.ts';
import { judgeDocumentsAtStart } from './migrations/migrate-documents.ts';
import { createIdSource } from './model/id.ts';
import type { Principal } from './model/principal.ts';
import { createDifferences } from './observe/differences.ts';
import { LoopTurns, watchLoop } from './observe/event-loop.ts';
import type { Metrics } from './observe/metrics.ts';
import { fanOut, type Observe } from './observe/observation.ts';
import { createOpenConnections } from './observe/open-connections.ts';
import { openStore, type StoreMembership, type StoreSharing, storeBytes } from './open-store.ts';
import { packageVersion } from './package-version.ts';
import { realtimeRetention } from './realtime/realtime-routes.ts';
import { patchLimitsOf } from './resources/collection/serving.ts';
import { type ContentThreads, createContentThreads } from './resources/content-threads/content-threads.ts';
import { createLife } from './resources/program/health.ts';
import { queriesTable } from './resources/queries/stored-queries.ts';
import { openCertificate } from './server/certificate.ts';
import { createListener, type Listener } from './server/listener.ts';
import type { ListenTls } from './server/port.ts';
import { stopOf } from './stop-program.ts';
import type { Services } from './store/capabilities.ts';
import { withStages } from './store/commit-stages.ts';
import { type RetentionRule, startRetention } from './store/retention.ts';
import { eventsTable, type Store } from './store/store.ts';
import { type InboxWakes, messagesStage } from './subscribers/with-messages.ts';
import { createTunnel } from './tunnel/tunnel.ts';
import { createReceiving } from './webhooks/receiving/receiving.ts';
import type { MadeSecret } from './webhooks/receiving/sender-secrets.ts';
import { createOwnerNotices } from './webhooks/sending/endpoint-health.ts';
import { createEmitEvent } from './webhooks/sending/events/post-event.ts';
import { createSending, type Webhooks, type WorkerIdentity } from './webhooks/sending/sending.ts';
import { runtimeTimers, type Timers } from './work/timers.ts';

export type ComposeOptions = {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  /** Where the settings come from; absent: what differs from its default was set by code. */
  readonly sources?: LoadedSettings['sources'];
  readonly senderSecrets: ReadonlyMap<string, readonly string[]>;
  /** URL of the configuration as a module, for the threads of handlers. */
  readonly module: string | undefined;
  readonly observe: Observe;
  readonly metrics: Metrics;
  /** Milliseconds since the epoch; replaced in tests only. */
  readonly clock?: () => number;
  /** Source of ids and secrets; replaced in tests only. */
  readonly random?: Randomness;
  /** What leaves the program, and when due work wakes up; replaced by src/testing.ts only. */
  readonly outside?: Outside;
  /** Ports and store that workers share (src/cli/workers); absent in a process without workers. */
  readonly shared?: Shared;
};

export type Outside = {
  readonly timers: Timers;
  /** In place of the mail server of the settings. */
  readonly mail: Transport;
  /** In place of the connections to receivers of webhooks. */
  readonly exchange: Exchange;
};

export type Shared = {
  /** Ports that all workers open together, in place of those of the settings. */
  readonly port: number;
  readonly tlsPort: number | undefined;
  readonly worker: WorkerIdentity;
  /** Undefined on PostgreSQL. */
  readonly membership?: StoreMembership;
};

export type Randomness = {
  readonly digit: () => number;
  readonly bytes: (count: number) => Buffer;
};

const goodRandomness: Randomness = { digit: () => randomInt(32), bytes: randomBytes };

export type FetchAsOptions = {
  readonly address?: string | undefined;
  /** Whom the request is made for, whatever its credential. */
  readonly as?: Principal | undefined;
};

export type Running = {
  /** `http://HOST:PORT`, or `https://...` if the port uses TLS. */
  readonly url: string;
  readonly tlsUrl: string | undefined;
  /** Set if the administrator key was created at this start, and shown only then. */
  readonly adminKey: string | undefined;
  /** Secrets of senders that were created at this start, and are shown only then. */
  readonly madeSecrets: readonly MadeSecret[];
  /** Handles requests of another server, in place of `url`. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly upgrade: Listener['upgrade'];
  readonly connect: Listener['connect'];
  /** Answers a request of this process without a socket. */
  readonly fetch: (request: Request, options?: FetchAsOptions) => Promise<Response>;
  /** The collections on behalf of a principal. */
  readonly callsAs: CallsAs;
  /** Drains and closes within `drainMs`. */
  stop(reason: string): Promise<void>;
};

/** Opens the store, listens, and resumes what an earlier process left pending. */
export async function compose(options: ComposeOptions): Promise<Running> {
  const { settings, observe } = options;
  const tls = await openTls(options);
  const program = await assemble(withProgram(options));
  const stop = async (reason: string): Promise<void> => {
    tls?.certificate.close();
    await program.stop(reason);
  };
  const { shared } = options;
  const listening = await program.listener.listen(settings.host, shared?.port ?? settings.port, {
    ...{ tls, sharesPorts: shared !== undefined },
  });
  const { host, port, secure, tlsPort } = listening;
  const url = originOf(host, port, secure);
  program.listensAt(url, { address: host, port });
  const tlsUrl = tlsPort === undefined ? undefined : originOf(host, tlsPort, true);
  if (tlsPort !== undefined) program.listensAt(url, { address: host, port: tlsPort });
  program.operations.resume();
  await program.start();
  for (const each of [url, tlsUrl]) if (each !== undefined) observe({ kind: 'listening', url: each });
  return { url, tlsUrl, ...shownOf(program), stop };
}

async function openTls({ settings, shared, observe }: ComposeOptions): Promise<ListenTls | undefined> {
  const { tlsCert, tlsKey, tlsAlpn } = settings;
  const tlsPort = shared?.tlsPort ?? settings.tlsPort;
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const certificate = await openCertificate({ certificate: tlsCert, key: tlsKey }, observe);
  return { certificate, alpn: tlsAlpn, port: tlsPort === undefined ? undefined : Number(tlsPort) };
}

/** The program without a port of its own: `handle` answers the requests of the server that it is mounted in. */
export async function composeMounted(options: ComposeOptions): Promise<Mounted> {
  const program = await assemble(withProgram(options));
  program.operations.resume();
  await program.start();
  return shownOf(program);
}

type Mounted = Omit<Running, 'url' | 'tlsUrl'>;

function shownOf({ adminKey, madeSecrets, listener, handleAs, callsAs, stop }: Assembled): Mounted {
  const { handle, upgrade, connect } = listener;
  const fetch: Running['fetch'] = (request, { address, as } = {}) => {
    const handler = as === undefined ? undefined : (received: KernelRequest) => handleAs(received, as);
    return listener.fetch(request, { address, handler });
  };
  return { adminKey, madeSecrets, handle, upgrade, connect, fetch, callsAs, stop };
}

/** A mounted program does not know its origin; COMITY_PUBLIC_URL gives it. */
function originOf(host: string, port: number, secure: boolean): string {
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

type Assembled = {
  readonly listener: Listener;
  readonly operations: Operations;
  readonly handleAs: ReturnType<typeof createHandler>['handleAs'];
  readonly callsAs: CallsAs;
  readonly start: () => Promise<void>;
  readonly adminKey: string | undefined;
  readonly madeSecrets: readonly MadeSecret[];
  readonly listensAt: (url: string, listener: OwnListener) => void;
  readonly stop: (reason: string) => Promise<void>;
};

/** Adds, for all parts: the report of the program, open connections, turns of the event loop, differences of processes. */
function withProgram(options: ComposeOptions) {
  const { settings, clock = Date.now } = options;
  const { observe, ...differences } = createDifferences(clock);
  const program = { startedAt: clock(), ...differences, storeBytes: () => storeBytes(settings) };
  const common = { connections: createOpenConnections(clock), turns: new LoopTurns() };
  return { ...options, ...common, observe: fanOut(options.observe, observe), program };
}

async function assemble(options: ReturnType<typeof withProgram>): Promise<Assembled> {
  const { configuration, settings, observe, metrics, clock = Date.now, random = goodRandomness } = options;
  const opened = await openStore(configuration, settings, observe, sharingOf(options));
  const credentials = createVerifiedCredentials(opened, clock, settings.verifiedCredentialsBytesMax);
  const store = withStages(opened, credentialsStage(credentials));
  try {
    const { origin, ownListeners, listensAt } = createOrigins(settings);
    const newId = createIdSource(clock, random.digit);
    const onRefused = (refusal: MemoryRefusal) => observe({ kind: 'memory-refused', ...refusal });
    const memory = createMemory(settings, options.turns, onRefused);
    const services: Services = { store, clock, random: random.bytes, newId, observe, settings, memory };
    const addressOf = createCallerAddress(settings.behindProxy);
    const timers = options.outside?.timers ?? runtimeTimers;
    const common = { ...options, ...services, timers, cors: corsPolicy(settings), addressOf };
    const documents = await judgeDocumentsAtStart({ ...options, ...services, program: packageVersion() });
    const mailKeeper = createMailKeeper(services, configuration.mail.templates, options.outside);
    const accounts = await createAccounts({ ...common, credentials, origin, mailKeeper });
    const inbox: InboxWakes = { wake: () => undefined };
    const messages = messagesStage(services, configuration.subscribers, inbox, options.turns);
    const sending = { ...common, worker: options.shared?.worker, ownListeners };
    const webhooks = await createSending({
      ...{ ...sending, store: withStages(store, messages) },
      principalOf: createOwnerPrincipal(store),
      notify: createOwnerNotices(accounts.endpointMail, settings.operatorMail),
    });
    await documents.beforeServing(webhooks.store);
    const logic = logicOf(configuration, services, { accounts, webhooks, mailKeeper });
    const mails = createMails(services, configuration.mail, webhooks.sendingWork, options.outside?.mail);
    const received = await createReceiving({ ...common, ...webhooks, openTransaction: logic.open });
    inbox.wake = received.wake;
    const jobs = createScheduler(services, configuration.jobs, received.wake, timers);
    const served = { ...common, store: webhooks.store, accounts, webhooks, received, mails };
    const mac = macOf(await loadSecret(store, 'cursor', clock(), random.bytes));
    const rates = createRates(options, store);
    const contentThreads = openContentThreads(options);
    const loop = watchLoop({ heldMs: settings.loopHeldMs, observe, onDelay: metrics.loopDelay });
    const life = createLife();
    const resources = resourcesOf({ ...served, logic, mac, contentThreads, phase: life.phase });
    const { authenticate, principalNow, adminKey } = accounts;
    const { handler, handleAs, operations, routeOf, probes } = createHandler({
      ...{ ...served, base: configuration.base, resources, authenticate, principalNow, rates, loop },
      ...{ challengesFor, secretOf: unguessableCredential, randomDigit: random.digit },
    });
    const callsAs = createCallsAs({ ...settings, ...common, base: configuration.base, handleAs });
    const proxy = createTunnel({ ...sending, authenticate: accounts.authenticateProxy });
    const listener = createListener({
      ...{ ...common, handler, routeOf, probes, proxy, apiVersion: configuration.apiVersion },
      ...{ limits: settings, behindProxy: settings.behindProxy },
    });
    showGauges(metrics, listener, served, store);
    const features = [accounts, webhooks, received, mails];
    const rules = [...retentionRules(settings), ...features.flatMap((feature) => feature.retention)];
    const stopRetention = startRetention(store, rules, clock, observe);
    const stop = stopOf({
      ...{ ...served, store, drain: life.drain, jobs, documents },
      ...{ listener, operations, rates, stopRetention, loop, contentThreads },
    });
    const start = async (): Promise<void> => {
      for (const feature of [webhooks, received, mails, jobs]) await feature.start();
      life.serve();
      documents.besideServing(webhooks.store);
    };
    const shown = { listener, operations, handleAs, callsAs, adminKey, madeSecrets: received.made };
    return { ...shown, start, listensAt, stop };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The store of a test need not survive the machine. */
function sharingOf({ shared, outside, clock, turns }: ReturnType<typeof withProgram>): StoreSharing {
  const reading = { nextRead: () => turns.nextRead(), nextPage: () => turns.nextPage() };
  return { membership: shared?.membership, durable: outside === undefined, clock, ...reading };
}

type Origins = {
  /** The origin that clients see, as far as it is known. */
  readonly origin: () => string;
  readonly ownListeners: () => readonly OwnListener[];
  readonly listensAt: Assembled['listensAt'];
};

function createOrigins({ publicUrl, tlsCert, tlsPort, host, port }: Settings): Origins {
  let listening = originOf(host, port, tlsCert !== undefined && tlsPort === undefined);
  const ownListeners: OwnListener[] = [];
  return {
    origin: () => publicUrl ?? listening,
    ownListeners: () => ownListeners,
    listensAt(url, own) {
      listening = url;
      ownListeners.push(own);
    },
  };
}

function createRates({ settings, observe }: ComposeOptions, store: Store): RateLimiter {
  return createRateLimiter(settings, store, (error) =>
    observe({ kind: 'store-failed', what: 'sharing rate limits', error }),
  );
}

type LogicParts = {
  readonly accounts: Pick<Accounts, 'functionWrites'>;
  readonly webhooks: Pick<Webhooks<Store>, 'eventTypes' | 'generation'>;
  readonly mailKeeper: Pick<MailKeeper, 'keepOutgoing'>;
};

/** What the application's functions run over. */
function logicOf(
  configuration: Configuration,
  services: Services,
  { accounts: { functionWrites }, webhooks: { eventTypes, generation }, mailKeeper }: LogicParts,
): ApplicationLogic {
  const { users } = configuration.accounts;
  const { settings, observe, clock } = services;
  return createLogic({
    ...{ settings, observe, clock, collections: configuration.collections },
    emit: createEmitEvent(services, configuration, eventTypes),
    keepMail: mailKeeper.keepOutgoing,
    accountWrites: functionWrites(generation),
    readable: new Map([[users.name, users]]),
  });
}

/** Where long content is parsed, checked and written. */
function openContentThreads({ configuration, settings }: ComposeOptions): ContentThreads {
  return createContentThreads({
    ...settings,
    collections: configuration.collections,
    contentLimits: settings,
    patchLimits: patchLimitsOf({ ...settings, contentLimits: settings }),
  });
}

function showGauges(
  metrics: Metrics,
  listener: Listener,
  { accounts, webhooks, received, mails, memory }: Omit<Features, 'contentThreads'>,
  store: Pick<Store, 'lines'> & { readonly unitsWaiting: () => number },
): void {
  metrics.gauge('comity_connections', 'Open connections.', () => listener.counts().connections);
  metrics.gauge('comity_requests_under_way', 'Requests under way.', () => listener.counts().requests);
  metrics.gauge('comity_streams', 'Open event streams.', () => listener.counts().streams);
  metrics.gauge('comity_websockets', 'Open WebSockets.', () => listener.counts().sockets);
  metrics.gauge('comity_tunnels', 'Open tunnels and forwarded requests.', () => listener.counts().tunnels);
  metrics.gauge('comity_units_waiting', 'Writes that wait to be committed.', () => store.unitsWaiting());
  metrics.gauge(
    'comity_changes_waiting',
    'Changes that wait for earlier changes of the same row.',
    () => store.lines.waiting,
  );
  for (const { gauges } of [accounts, webhooks, received, mails, memory]) {
    for (const [name, help, value] of gauges) metrics.gauge(name, help, value);
  }
  metrics.gaugeBy('comity_memory_bytes', 'Used part of the memory budget, by use.', 'use', () =>
    memory.octetsByUse(),
  );
}

function retentionRules(settings: Settings): readonly RetentionRule[] {
  return [
    { table: idempotencyTable, seconds: settings.idempotencySeconds },
    { table: operationsTable, seconds: settings.operationSeconds },
    { table: queriesTable, seconds: settings.storedQuerySeconds },
    { table: eventsTable, seconds: settings.eventRetentionSeconds },
    realtimeRetention(settings),
  ];
}

/** A keyed digest of 128 bits. The key on both sides of the text rules out length extension. */
function macOf(secret: string): (text: string) => string {
  return (text) => hash('sha256', `${secret}\n${text}\n${secret}`, 'base64url').slice(0, 22);
}
