/**
 * The listener: a TCP port with HTTP/1.1 behind it, or, as `handle`, a plain node:http request listener that mounts in
 * any framework. Modes:
 *
 *   idle       made; `handle` answers whatever it is given.
 *   serving    the port is open.
 *   draining   the port is closed, requests under way are being answered (drain.ts).
 *   stopped    no connection is left.
 *
 * The port is a net.Server in front of an http.Server that never listens itself. What a connection may become besides
 * HTTP/1.1 (h2c with prior knowledge, §4.13) is decided in `accept`; Upgrade and CONNECT have their listeners in
 * `createHttp`. Both decline for now: an Upgrade is answered as an ordinary request, with `Connection: close`, since
 * node:http drops octets that came in the same packet as an Upgrade that nobody took.
 */
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createPort, type Server as Port, type Socket } from 'node:net';
import type { Handler } from '../http/message.ts';
import { createHttpDateCache } from '../http/syntax/http-date.ts';
import type { Observe } from '../observe/observation.ts';
import { answerClientError } from './client-error.ts';
import { connectionOf } from './connection.ts';
import { ContentWatch } from './content-watch.ts';
import type { Context } from './context.ts';
import { drain } from './drain.ts';
import { defaultServerLimits, type ServerLimits } from './limits.ts';
import { receive } from './receive.ts';
import { refuseConnect } from './refuse-connect.ts';
import { requestIdPrefix } from './request-id.ts';
import { sweepConnections } from './sweep.ts';

export type ListenerOptions = {
  readonly handler: Handler;
  readonly observe: Observe;
  /** Those left out have their defaults (limits.ts). */
  readonly limits?: Partial<ServerLimits>;
  /** Milliseconds since the epoch; default: `Date.now`. */
  readonly clock?: () => number;
  /** Value of API-Version, on every answer (§9). */
  readonly apiVersion: string;
  /** Methods for the Allow field of a refused CONNECT; default: those of §4.1 that the server may support. */
  readonly methods?: readonly string[];
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
};

export type ListenerState = 'idle' | 'serving' | 'draining' | 'stopped';

export type Listener = {
  /** Opens the port; 0 picks a free one. Rejects with node's error (`EADDRINUSE`, `EACCES`). */
  listen(host: string, port: number): Promise<{ readonly host: string; readonly port: number }>;
  /** Ends gracefully within the bound; resolves with the number of connections that were cut off at it. */
  drain(boundMs: number): Promise<number>;
  /** A node:http request listener. Sends no 100 (Continue) itself: the server it is mounted in has. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  state(): ListenerState;
  /** What is open now, for gauges. */
  counts(): { readonly connections: number; readonly requests: number; readonly streams: number };
};

const methodsOfResources: readonly string[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'QUERY',
];
const keepAliveProbeMs = 60_000;
/** Timeouts are looked after this often for each length of themselves. */
const looksPerTimeout = 4;
const lookMsMin = 10;
const lookMsMax = 5_000;

export function createListener(options: ListenerOptions): Listener {
  const context = createContext(options);
  let port: Port | undefined;
  let sweeper: NodeJS.Timeout | undefined;
  let state: ListenerState = 'idle';
  return {
    handle: (incoming, outgoing) => receive(context, incoming, outgoing, false),
    state: () => state,
    counts: () => ({
      connections: context.connections.size,
      requests: context.underWay,
      streams: context.streams.size,
    }),
    async listen(host, portNumber) {
      if (state !== 'idle') throw new Error(`a listener that is ${state} cannot listen`);
      const http = createHttp(context, (options.methods ?? methodsOfResources).join(', '));
      port = createFront(context, http);
      const address = await open(port, host, portNumber);
      port.once('close', () => http.close());
      sweeper = setInterval(
        () => sweepConnections(context),
        lookMs(context.limits.answerStallTimeoutMs),
      ).unref();
      state = 'serving';
      return address;
    },
    async drain(boundMs) {
      state = 'draining';
      const cut = port === undefined ? 0 : await drain(context, port, boundMs);
      context.draining = true;
      clearInterval(sweeper);
      state = 'stopped';
      return cut;
    },
  };
}

function createContext(options: ListenerOptions): Context {
  const limits = { ...defaultServerLimits, ...options.limits };
  const monotonic = options.monotonic ?? (() => performance.now());
  const shortestMs = Math.min(limits.contentTimeoutMs, limits.contentGraceMs);
  return {
    handler: options.handler,
    observe: options.observe,
    limits,
    clock: options.clock ?? Date.now,
    formatDate: createHttpDateCache(0),
    monotonic,
    requestIdPrefix: requestIdPrefix(),
    apiVersion: options.apiVersion,
    connections: new Set(),
    streams: new Set(),
    contentWatch: new ContentWatch(monotonic, lookMs(shortestMs)),
    received: 0,
    underWay: 0,
    draining: false,
  };
}

function createFront(context: Context, http: HttpServer): Port {
  const front = createPort(
    { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs },
    (socket) => accept(context, http, socket),
  );
  front.maxConnections = context.limits.connectionsMax;
  front.on('drop', (dropped) => {
    context.observe({ kind: 'connection-refused', peer: dropped?.remoteAddress ?? '' });
  });
  return front;
}

function accept(context: Context, http: HttpServer, socket: Socket): void {
  const connection = connectionOf(socket, context.monotonic);
  context.connections.add(connection);
  socket.once('close', () => context.connections.delete(connection));
  http.emit('connection', socket);
}

function createHttp(context: Context, allow: string): HttpServer {
  const { limits } = context;
  const shortestMs = Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs);
  const http = createHttpServer({
    httpValidation: 'strict',
    maxHeaderSize: limits.fieldsBytesMax,
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: lookMs(shortestMs),
    // A request without content needs no stream events: 1 us of about 20 saved (measured on an answer of 300 octets).
    optimizeEmptyRequests: true,
    // A missing Host is the kernel's to refuse, with an error body.
    requireHostHeader: false,
    shouldUpgradeCallback: (incoming) => {
      connectionOf(incoming.socket, context.monotonic).declinesUpgrade = true;
      return false;
    },
  });
  // Fields beyond node's default of 2000 would be dropped unseen, a second Host among them; their octets are bounded.
  http.maxHeadersCount = 0;
  // A client that has sent its FIN after its request is still owed the answer. Undocumented, as old as node:http.
  (http as HttpServer & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  http.on('request', (incoming, outgoing) => receive(context, incoming, outgoing, false));
  http.on('checkContinue', (incoming, outgoing) => receive(context, incoming, outgoing, true));
  http.on('checkExpectation', (incoming, outgoing) => receive(context, incoming, outgoing, false));
  http.on('clientError', (error, socket) => answerClientError(context, error, socket as Socket));
  http.on('connect', (incoming, stream) => refuseConnect(context, incoming, stream, allow));
  // The timers behind headersTimeout and requestTimeout start with this event, which a server behind a front never has.
  http.emit('listening');
  return http;
}

function lookMs(timeoutMs: number): number {
  return Math.min(Math.max(Math.floor(timeoutMs / looksPerTimeout), lookMsMin), lookMsMax);
}

async function open(port: Port, host: string, portNumber: number): Promise<{ host: string; port: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  port.once('error', reject);
  port.listen(portNumber, host, resolve);
  await promise;
  port.off('error', reject);
  const address = port.address();
  if (address === null || typeof address === 'string') throw new Error('the port has no address');
  return { host: address.address, port: address.port };
}
