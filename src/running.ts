/**
 * The running program: starts the parts that compose.ts makes, at ports of its own or mounted in another server, and stops them in order
 * of dependence.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type ComposeOptions, createParts, type Parts } from './compose.ts';
import type { Settings } from './config/settings.ts';
import { originOf } from './egress/policy.ts';
import type { Request as KernelRequest } from './http/message.ts';
import { idempotencyTable } from './kernel/idempotency.ts';
import { operationsTable } from './kernel/operations/stored-request.ts';
import type { CallsAs } from './logic/principal-calls.ts';
import type { Principal } from './model/principal.ts';
import { realtimeRetention } from './realtime/realtime-routes.ts';
import { queriesTable } from './resources/collection/stored-queries.ts';
import { openCertificate } from './server/certificate.ts';
import type { Listener } from './server/listener.ts';
import type { ListenTls } from './server/port.ts';
import { type RetentionRule, startRetention } from './store/retention.ts';
import { eventsTable } from './store/store.ts';
import type { MadeSecret } from './webhooks/receiving/sender-secrets.ts';

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
  readonly fetch: (
    request: Request,
    options?: {
      readonly address?: string | undefined;
      /** Whom the request is made for, whatever its credential. */
      readonly as?: Principal | undefined;
    },
  ) => Promise<Response>;
  /** The collections on behalf of a principal. */
  readonly callsAs: CallsAs;
  /**
   * Drains and closes within `drainMs`.
   * @param delayMs time before that for which `/health/ready` answers 503 and everything else as before
   */
  stop(reason: string, delayMs?: number): Promise<void>;
};

/** Opens the store, listens, and resumes what an earlier process left pending. */
export async function compose(options: ComposeOptions): Promise<Running> {
  const { settings, observe, shared } = options;
  const tls = await openTls(options);
  const parts = await createParts(options);
  const mounted = mount(parts);
  const listening = await parts.listener.listen(settings.host, shared?.port ?? settings.port, {
    ...{ tls, sharesPorts: shared !== undefined },
  });
  const { host, port, secure, tlsPort } = listening;
  const url = originOf(host, port, secure);
  parts.listensAt(url, { address: host, port });
  const tlsUrl = tlsPort === undefined ? undefined : originOf(host, tlsPort, true);
  if (tlsPort !== undefined) parts.listensAt(url, { address: host, port: tlsPort });
  await start(parts);
  for (const each of [url, tlsUrl]) if (each !== undefined) observe({ kind: 'listening', url: each });
  const stop: Running['stop'] = async (reason, delayMs) => {
    await mounted.stop(reason, delayMs);
    tls?.certificate.close();
  };
  return { ...mounted, url, tlsUrl, stop };
}

async function openTls({ settings, shared, observe }: ComposeOptions): Promise<ListenTls | undefined> {
  const { tlsCert, tlsKey, tlsAlpn } = settings;
  const tlsPort = shared?.tlsPort ?? settings.tlsPort;
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const certificate = await openCertificate({ certificate: tlsCert, key: tlsKey }, observe);
  return { certificate, alpn: tlsAlpn, port: tlsPort === undefined ? undefined : Number(tlsPort) };
}

type Mounted = Omit<Running, 'url' | 'tlsUrl'>;

/** The program without a port of its own: `handle` answers the requests of the server that it is mounted in. */
export async function composeMounted(options: ComposeOptions): Promise<Mounted> {
  const parts = await createParts(options);
  const mounted = mount(parts);
  await start(parts);
  return mounted;
}

/** The answer of a program that is made for one request and closed again. What is due in its store is not begun. */
export async function answerOnce(
  options: ComposeOptions,
  request: Request,
): Promise<{ readonly response: Response; readonly content: string }> {
  const { fetch, stop } = mount(await createParts(options));
  try {
    const response = await fetch(request);
    return { response, content: await response.text() };
  } finally {
    await stop('answered');
  }
}

async function start({
  operations,
  webhooks,
  received,
  mails,
  jobs,
  life,
  documents,
  files,
}: Parts): Promise<void> {
  operations.resume();
  files?.start();
  for (const feature of [webhooks, received, mails, jobs]) await feature.start();
  life.serve();
  documents.besideServing(webhooks.store);
}

function mount(parts: Parts): Mounted {
  const { accounts, received, listener, handleAs, callsAs, settings, store, clock, observe } = parts;
  const features = [accounts, parts.webhooks, received, parts.mails];
  showGauges(parts, [...features, parts.memory]);
  const rules = [...retentionRules(settings), ...features.flatMap(({ retention }) => retention)];
  const stopRetention = startRetention(store, rules, clock, observe);
  const { handle, upgrade, connect } = listener;
  const fetch: Running['fetch'] = (request, { address, as } = {}) => {
    const handler = as === undefined ? undefined : (given: KernelRequest) => handleAs(given, as);
    return listener.fetch(request, { address, handler });
  };
  const shown = { adminKey: accounts.adminKey, madeSecrets: received.made };
  return { ...shown, handle, upgrade, connect, fetch, callsAs, stop: stopOf(parts, stopRetention) };
}

function showGauges(
  { metrics, listener, store, memory }: Parts,
  features: readonly Pick<Parts['accounts'], 'gauges'>[],
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
  for (const { gauges } of features) {
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

/** Stops in order of dependence: requests first, then the work that they started, the store last. */
function stopOf(parts: Parts, stopRetention: () => Promise<void>): Running['stop'] {
  const { observe, operations, webhooks, received, mails } = parts;
  const { drainMs } = parts.settings;
  return async (reason, delayMs = 0) => {
    observe({ kind: 'draining', reason, delayMs });
    parts.life.drain();
    if (delayMs > 0) await delay(delayMs);
    const startedAt = performance.now();
    const leftMs = (): number => Math.max(0, drainMs - (performance.now() - startedAt));
    await parts.jobs.close();
    await parts.documents.stop();
    await parts.listener.drain(drainMs);
    // Accepted requests (202) may still emit events; attempts under way end in parallel.
    const working = [operations, webhooks, received, mails];
    await Promise.all(working.map((each) => each.drain(leftMs())));
    await received.close();
    await mails.close();
    await webhooks.close();
    await parts.accounts.close();
    parts.loop.close();
    await parts.contentThreads.close();
    await parts.files?.close();
    await stopRetention();
    await parts.rates.close();
    await parts.store.close();
    await parts.tracing?.close();
    observe({ kind: 'stopped', drainedMs: performance.now() - startedAt });
  };
}
