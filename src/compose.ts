/**
 * Makes the parts of the program by hand; only this file knows every adapter. Nothing is created at import and everything is an argument,
 * so two programs can run in one process and a test can start one with other settings. running.ts starts and stops the parts.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { createAccounts } from './accounts/accounts.ts';
import { loadMac } from './accounts/admin-key.ts';
import { challengesFor, unguessableCredential } from './accounts/authenticate.ts';
import { createOwnerPrincipal } from './accounts/owner-principal.ts';
import { createVerifiedCredentials, credentialsStage } from './accounts/verified-credentials.ts';
import { resourcesOf } from './all-resources.ts';
import type { Configuration } from './config/configuration.ts';
import type { LoadedSettings } from './config/load-settings.ts';
import type { Settings } from './config/settings.ts';
import type { Exchange } from './egress/exchange.ts';
import { createOwnListeners } from './egress/policy.ts';
import { createFiles } from './files/files.ts';
import { openPlace } from './files/open-place.ts';
import { publicRoot } from './http/syntax/uri.ts';
import { createScheduler } from './jobs/scheduler.ts';
import { corsPolicy } from './kernel/answer/cors.ts';
import { createHandler } from './kernel/handler.ts';
import { createCallerAddress, proxiesOf } from './kernel/rate-limit/caller-address.ts';
import { createRateLimiter } from './kernel/rate-limit/rate-limiter.ts';
import { createLogic } from './logic/logic.ts';
import { createCallsAs } from './logic/principal-calls.ts';
import { createMailKeeper } from './mail/keep-mail.ts';
import { createMails } from './mail/mails.ts';
import type { Transport } from './mail/smtp.ts';
import type { MemoryRefusal } from './memory/budget.ts';
import { createMemory } from './memory/program-memory.ts';
import { judgeDocumentsAtStart } from './migrations/migrate-documents.ts';
import { createIdSource } from './model/id.ts';
import { createDifferences } from './observe/differences.ts';
import { LoopTurns, watchLoop } from './observe/event-loop.ts';
import type { Metrics } from './observe/metrics.ts';
import { fanOut, type Observe } from './observe/observation.ts';
import { createOpenConnections } from './observe/open-connections.ts';
import { openTracing, type TraceTarget, type Tracing } from './observe/tracing.ts';
import { openStore, type StoreMembership, storeBytes } from './open-store.ts';
import { packageVersion } from './package-version.ts';
import { createContentThreads } from './resources/content-threads/content-threads.ts';
import { createLife } from './resources/program/program-routes.ts';
import { certificateEnd } from './server/certificate.ts';
import { createListener } from './server/listener.ts';
import { refuseUnmetNeeds } from './setting-needs.ts';
import type { Services } from './store/capabilities.ts';
import { type CommitStage, withReadStage, withStages } from './store/stages.ts';
import { type InboxWakes, messagesStage } from './subscribers/with-messages.ts';
import { createTunnel } from './tunnel/tunnel.ts';
import { createReceiving } from './webhooks/receiving/receiving.ts';
import { createOwnerNotices } from './webhooks/sending/endpoint-health.ts';
import { createEmitEvent } from './webhooks/sending/events/post-event.ts';
import { createSending, type WorkerIdentity } from './webhooks/sending/sending.ts';
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
  readonly random?: { readonly digit: () => number; readonly bytes: (count: number) => Buffer };
  /** What leaves the program, and when due work wakes up; replaced by src/testing.ts only. */
  readonly outside?: {
    readonly timers: Timers;
    /** In place of the mail server of the settings. */
    readonly mail: Transport;
    /** In place of the connections to receivers of webhooks. */
    readonly exchange: Exchange;
  };
  /** Where spans are sent; absent: nowhere. */
  readonly traceTarget?: TraceTarget | undefined;
  /** Ports and store that workers share (src/cli/workers); absent in a process without workers. */
  readonly shared?: Shared;
};

export type Shared = {
  /** Ports that all workers open together, in place of those of the settings. */
  readonly port: number;
  readonly tlsPort: number | undefined;
  readonly worker: WorkerIdentity;
  /** Undefined on PostgreSQL. */
  readonly membership?: StoreMembership;
};

export type Parts = Awaited<ReturnType<typeof createParts>>;

/** Opens the store and makes every part; nothing is started. @throws what prevents the start, with the store closed again */
export async function createParts(options: ComposeOptions) {
  const { configuration, settings, clock = Date.now, shared, outside } = options;
  const { observe: noteDifference, ...differences } = createDifferences(clock);
  const observe = fanOut(options.observe, noteDifference);
  await refuseUnmetNeeds(configuration, settings);
  const turns = new LoopTurns();
  const { traceTarget } = options;
  const tracing = traceTarget === undefined ? undefined : await openTracing(traceTarget, packageVersion());
  const opened = await openStore(configuration, settings, observe, {
    // The store of a test need not survive the machine.
    ...{ membership: shared?.membership, durable: outside === undefined, clock },
    ...{ nextRead: () => turns.nextRead(), nextPage: () => turns.nextPage() },
  });
  try {
    const program = {
      ...{ startedAt: clock(), ...differences },
      storeBytes: () => storeBytes(settings),
      certificateEnd: () => certificateEnd(settings.tlsCert),
    };
    return await createFeatures({ ...options, clock, observe, turns, program, opened, tracing });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

type Opened = ComposeOptions & {
  readonly clock: () => number;
  readonly turns: LoopTurns;
  readonly tracing: Tracing | undefined;
  readonly program: Parameters<typeof resourcesOf>[0]['program'];
  readonly opened: Awaited<ReturnType<typeof openStore>>;
};

async function createFeatures({ opened, ...given }: Opened) {
  const root = publicRoot(given.settings.publicUrl);
  const { base: ownBase } = given.configuration;
  const options = { ...given, configuration: { ...given.configuration, base: `${root}${ownBase}` } };
  const { configuration, settings, clock, observe, turns, outside, metrics, tracing } = options;
  const { digit = () => randomInt(32), bytes: random = randomBytes } = options.random ?? {};
  const { base, collections, accounts: declaredAccounts } = configuration;
  const credentials = createVerifiedCredentials(opened, clock, settings.verifiedCredentialsBytesMax);
  const traced = tracing === undefined ? [] : [tracedStage(tracing)];
  const newId = createIdSource(clock, digit);
  const own = createOwnListeners(settings);
  const files = await openFiles({ ...options, opened, newId, random, own });
  const staged = files === undefined ? [] : [files.stage];
  const read = files === undefined ? opened : withReadStage(opened, files.paths);
  const store = withStages(read, ...traced, ...staged, credentialsStage(credentials));
  const onRefused = (refusal: MemoryRefusal) => observe({ kind: 'memory-refused', ...refusal });
  const memory = createMemory(settings, turns, onRefused);
  const services: Services = { store, clock, random, newId, observe, settings, memory, tracing };
  const addressOf = createCallerAddress(proxiesOf(settings));
  const connections = createOpenConnections(clock);
  const timers = outside?.timers ?? runtimeTimers;
  const cors = corsPolicy(settings);
  const common = { ...options, ...services, ...own, timers, connections, addressOf, cors };
  const documents = await judgeDocumentsAtStart({ ...options, ...services, program: packageVersion() });
  const mailKeeper = createMailKeeper(services, configuration.mail.templates, outside);
  const { mailPort } = mailKeeper;
  const accounts = await createAccounts(services, options, { ...own, addressOf, credentials, mailPort });
  const inbox: InboxWakes = { wake: () => undefined };
  const webhooks = await createSending({
    ...{ ...common, worker: options.shared?.worker },
    store: withStages(store, messagesStage(services, configuration.subscribers, inbox, turns)),
    principalOf: createOwnerPrincipal(store),
    notify: createOwnerNotices(accounts.endpointMail, settings.operatorMail),
  });
  await documents.beforeServing(webhooks.store);
  const logic = createLogic(services, {
    ...{ collections, keepMail: mailKeeper.keepOutgoing },
    emit: createEmitEvent(services, configuration, webhooks.eventTypes),
    accountWrites: accounts.functionWrites(webhooks.generation),
    readable: new Map([[declaredAccounts.users.name, declaredAccounts.users]]),
  });
  const mails = createMails(services, configuration.mail, webhooks.sendingWork, outside?.mail);
  const received = await createReceiving({ ...common, ...webhooks, openTransaction: logic.open });
  inbox.wake = received.wake;
  const jobs = createScheduler(services, configuration.jobs, received.wake, timers);
  const onFailure = (error: unknown) => observe({ kind: 'store-failed', what: 'sharing rate limits', error });
  const rates = createRateLimiter(settings, store, onFailure);
  const contentThreads = createContentThreads(settings, collections);
  const loop = watchLoop({ heldMs: settings.loopHeldMs, observe, onDelay: metrics.loopDelay });
  const life = createLife();
  const features = { accounts, webhooks, files, received, mails, contentThreads, logic, phase: life.phase };
  const mac = await loadMac(services, 'cursor');
  const served = { ...common, ...features, store: webhooks.store, mac };
  const { authenticate, principalNow, authenticateProxy } = accounts;
  const handling = createHandler({
    ...{ ...served, base, root, resources: resourcesOf(served), authenticate, principalNow, rates, loop },
    ...{ challengesFor, secretOf: unguessableCredential, randomDigit: digit },
  });
  const callsAs = createCallsAs(services, ownBase, turns, handling.handleAs);
  const proxy = createTunnel(services, configuration.tunnel, { ...common, authenticate: authenticateProxy });
  const listener = createListener({
    ...{ ...common, ...handling, proxy, root, apiVersion: configuration.apiVersion },
    handler: tracing?.serve(handling.handler) ?? handling.handler,
    ...{ limits: settings, behindProxy: settings.behindProxy },
  });
  return { ...served, ...handling, store, documents, jobs, rates, loop, life, callsAs, listener };
}

type OpenedFiles = Omit<Opened, 'tracing' | 'random'> & {
  readonly newId: () => string;
  readonly random: (count: number) => Buffer;
  readonly own: ReturnType<typeof createOwnListeners>;
};

/** Undefined: no collection has files. */
async function openFiles({ configuration, settings, opened, own, ...services }: OpenedFiles) {
  if ([...configuration.collections.values()].every(({ files }) => files === undefined)) return undefined;
  const place = await openPlace(settings, { ...services, ...own });
  return createFiles({ ...services, store: opened, settings }, configuration, place);
}

/** A span of each commit within what is traced: others are of due work and of upkeep. */
function tracedStage(tracing: Tracing): CommitStage {
  return (unit, commit) =>
    tracing.isUnderWay
      ? tracing.within({ name: 'commit', attributes: { 'comity.changes': unit.changes.length } }, () =>
          commit(unit),
        )
      : commit(unit);
}
