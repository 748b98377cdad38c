/**
 * The listener: one or two TCP ports with HTTP/1.1 and HTTP/2 behind them (§4.13), or, as `handle`, `upgrade` and
 * `connect`, listeners of another node:http server. It is idle, then serving, then draining, then stopped.
 *
 * A port is a net.Server that detects the protocol of each client, over TLS by ALPN (port.ts), in front of one server of
 * node:http and one of node:http2 that never listen themselves. Both ports share these two, and so limits, timers, checks and drain.
 */
import { executionAsyncResource } from 'node:async_hooks';
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Server as Port, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Handler, serverMethods } from '../http/message.ts';
import { readRequestFields } from '../http/request-fields.ts';
import { createHttpDateCache } from '../http/syntax/http-date.ts';
import { type CallerAddress, createCallerAddress } from '../kernel/rate-limit/caller-address.ts';
import { MemoryBudget } from '../memory/budget.ts';
import { madePart, OctetLine, workedOnPart } from '../memory/program-memory.ts';
import { LoopTurns } from '../observe/event-loop.ts';
import type { Observe } from '../observe/observation.ts';
import { ignoreError, onArrival, ownEmitter } from '../observe/own-emitter.ts';
import { createFleet } from '../realtime/websocket/frames.ts';
import { answerClientError } from './client-error.ts';
import { type Connection, ConnectionShares, HeldAnswers } from './connection.ts';
import { ContentWatch } from './content-reading.ts';
import type { Context, ServerMemory } from './context.ts';
import { receive } from './exchange.ts';
import { createHttp2 } from './http2/http2-server.ts';
import { defaultServerLimits, type ServerLimits } from './limits.ts';
import {
  closeSocket,
  createCleartextFront,
  createTlsFront,
  type ListenTls,
  openPort,
  type Protocols,
} from './port.ts';
import { requestIdPrefix } from './request-under-way.ts';
import { createUpgrades, takeConnect, type Upgrades } from './upgrades.ts';
import { type FetchOptions, fetchInProcess, inProcessConnection } from './web-exchange.ts';

export type ListenerOptions = {
  readonly handler: Handler;
  /** For the log of a request that failed; default: none is known. */
  readonly routeOf?: Context['routeOf'];
  /** Default: none. */
  readonly probes?: Context['probes'];
  readonly observe: Observe;
  readonly limits?: Partial<ServerLimits>;
  /** Milliseconds since the epoch; default: `Date.now`. */
  readonly clock?: () => number;
  readonly apiVersion: string;
  /** The path before every path that clients see; default: none. */
  readonly root?: string;
  /** Methods in the Allow field of a refused CONNECT; default: those of §4.1 that the server may support. */
  readonly methods?: readonly string[];
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
  /** Shared with all that runs on this event loop; default: its own. */
  readonly turns?: LoopTurns;
  /** Default: no page may read anything. */
  readonly cors?: { readonly fieldsFor: Context['corsFields'] };
  /** The proxy (§4.10); undefined: CONNECT is answered 405. */
  readonly proxy?: Context['proxy'];
  /** Default: a budget of its own of 256 MiB, shared by peers. */
  readonly memory?: ServerMemory;
  /**
   * A proxy is in front: `Upgrade: h2c` is declined, because the proxy might pass it on without understanding it, and
   * answers follow the content of requests.
   */
  readonly behindProxy?: boolean;
  /** The address by which a caller without a principal is counted; default: that of its socket. */
  readonly addressOf?: CallerAddress;
};

type ListenOptions = {
  readonly tls?: ListenTls | undefined;
  /** Other threads listen at the same ports, and the system spreads the connections (SO_REUSEPORT). */
  readonly sharesPorts?: boolean;
};

type Listening = {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly tlsPort: number | undefined;
};

type ListenerState = 'idle' | 'serving' | 'draining' | 'stopped';

export type Listener = {
  /**
   * Opens the port or ports; 0 picks a free one. Without `tls` the port is cleartext; with `tls` it uses TLS, or, with
   * `tls.port`, that second port does. Rejects with node's error (`EADDRINUSE`, `EACCES`), and then none is open.
   */
  listen(host: string, port: number, options?: ListenOptions): Promise<Listening>;
  /** Drains within the bound; resolves with the number of connections that were cut at it. */
  drain(boundMs: number): Promise<number>;
  /** A node:http request listener. It never sends 100 (Continue): the server that it is mounted in has. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** A node:http listener for `upgrade`. A declined Upgrade is answered as a request, and its connection ends. */
  upgrade(incoming: IncomingMessage, stream: Duplex, head: Uint8Array): void;
  connect(incoming: IncomingMessage, stream: Duplex, head: Uint8Array): void;
  /** Answers a request of this process without a socket. */
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  state(): ListenerState;
  /** Open connections and streams, for gauges. `sockets`: WebSockets; `tunnels`: those and forwarded requests. */
  counts(): {
    readonly connections: number;
    readonly requests: number;
    readonly streams: number;
    readonly sockets: number;
    readonly tunnels: number;
  };
};

const noFields = readRequestFields([]);

const looksPerTimeout = 4;
const lookMsMin = 10;
const lookMsMax = 5_000;

const memoryBytesDefault = 256 * 1024 * 1024;

export function createListener(options: ListenerOptions): Listener {
  const context = createContext(options);
  keepTick(context);
  // In another server no connection becomes HTTP/2: that server decides the protocols of its port.
  const inProcess = inProcessConnection(context.monotonic);
  const mounted = createUpgrades(context, undefined);
  let ports: readonly Port[] = [];
  let sweeper: NodeJS.Timeout | undefined;
  let state: ListenerState = 'idle';
  return {
    handle: (incoming, outgoing) => receive(context, incoming, outgoing, false),
    upgrade: (incoming, stream, head) => mounted.take(incoming, ownEmitter(stream, ignoreError), head),
    connect: (incoming, stream, head) => {
      ownEmitter(stream, ignoreError);
      takeConnect(context, incoming, head);
    },
    fetch: (request, fetching) => fetchInProcess(context, inProcess, request, fetching),
    state: () => state,
    counts: () => ({
      connections: context.connections.size,
      requests: context.underWay,
      streams: context.streams.size,
      sockets: context.sockets.size,
      tunnels: context.proxy?.count() ?? 0,
    }),
    async listen(host, portNumber, { tls, sharesPorts = false } = {}) {
      if (state !== 'idle')
        throw new Error(`listen() was called on a listener in the state ${state}; it can be called once`);
      const opening = { host, port: portNumber, tls, sharesPorts };
      const opened = await openPorts(context, opening);
      ports = opened.ports;
      const { answerStallTimeoutMs, keepAliveTimeoutMs, headersTimeoutMs } = context.limits;
      sweeper = setInterval(
        () => sweepConnections(context),
        lookMs(Math.min(answerStallTimeoutMs, keepAliveTimeoutMs + headersTimeoutMs)),
      ).unref();
      state = 'serving';
      return opened.listening;
    },
    async drain(boundMs) {
      state = 'draining';
      const cut = await drain(context, ports, { boundMs, inProcess });
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
  const turns = options.turns ?? new LoopTurns(monotonic);
  const { contentTimeoutMs, contentGraceMs, unreadContentTimeoutMs } = limits;
  const shortestMs = Math.min(contentTimeoutMs, contentGraceMs, unreadContentTimeoutMs);
  const peerAddress = createCallerAddress(0);
  return {
    handler: options.handler,
    routeOf: options.routeOf ?? (() => undefined),
    probes: options.probes ?? new Set(),
    observe: options.observe,
    limits,
    clock: options.clock ?? Date.now,
    formatDate: createHttpDateCache(0),
    monotonic,
    requestIdPrefix: requestIdPrefix(),
    apiVersion: options.apiVersion,
    root: options.root ?? '',
    corsFields: options.cors?.fieldsFor ?? (() => []),
    fieldsOfAll: ['API-Version', options.apiVersion, 'X-Content-Type-Options', 'nosniff'],
    allow: (options.methods ?? serverMethods).join(', '),
    proxy: options.proxy,
    behindProxy: options.behindProxy === true,
    connections: new ConnectionShares(
      options.behindProxy === true ? { ...limits, connectionsPerAddressMax: 0 } : limits,
      (peer) => peerAddress({ fields: noFields, peer }),
      monotonic,
    ),
    streams: new HeldAnswers(),
    sockets: new HeldAnswers(),
    addressOf: options.addressOf ?? peerAddress,
    fleet: createFleet(limits),
    contentWatch: new ContentWatch(turns, { monotonic, intervalMs: lookMs(shortestMs) }),
    turns,
    memory: options.memory ?? {
      budget: new MemoryBudget({ bytesMax: memoryBytesDefault, sharePercent: 100, turns }),
      work: new OctetLine(memoryBytesDefault / workedOnPart),
      made: new OctetLine(memoryBytesDefault / madePart),
    },
    received: 0,
    underWay: 0,
    draining: false,
    tick: undefined,
  };
}

type Opening = {
  readonly host: string;
  readonly port: number;
  readonly tls: ListenTls | undefined;
  readonly sharesPorts: boolean;
};

/**
 * Keeps one object of `process.nextTick` for good. V8 forgets the shape of these objects if it collects garbage while there are none, and
 * then never compiles `nextTick` for it again: 0.25 µs a call instead of 0.03. A request has three calls, a stream of HTTP/2 about ten.
 */
function keepTick(context: Context): void {
  process.nextTick(() => {
    context.tick = executionAsyncResource();
  });
}

async function openPorts(
  context: Context,
  { host, port, tls, sharesPorts: isShared }: Opening,
): Promise<{ readonly ports: readonly Port[]; readonly listening: Listening }> {
  const http2 = createHttp2(context);
  const http1 = createHttp1(context, createUpgrades(context, context.behindProxy ? undefined : http2));
  const protocols: Protocols = { http1, http2 };
  const secure = tls !== undefined && tls.port === undefined;
  const takeFirst = secure
    ? createTlsFront(context, protocols, tls)
    : createCleartextFront(context, protocols);
  const { sockets, ...address } = await openPort(context, takeFirst, { host, port, isShared });
  const ports = [...sockets];
  let tlsPort: number | undefined;
  if (tls?.port !== undefined) {
    const takeSecond = createTlsFront(context, protocols, tls);
    try {
      const second = await openPort(context, takeSecond, { host, port: tls.port, isShared });
      tlsPort = second.port;
      ports.push(...second.sockets);
    } catch (error) {
      for (const socket of ports) socket.close();
      http1.close();
      throw error;
    }
  }
  // It never listened, but has timers that only this ends.
  let portsOpen = ports.length;
  const onClose = () => {
    portsOpen -= 1;
    if (portsOpen === 0) http1.close();
  };
  for (const each of ports) each.once('close', onClose);
  return { ports, listening: { ...address, secure, tlsPort } };
}

/** A connection that node:http detaches; its own listeners are removed. */
type Handover = [incoming: IncomingMessage, stream: Duplex, head: Uint8Array];

function createHttp1(context: Context, upgrades: Upgrades): HttpServer {
  const { limits } = context;
  const shortestMs = Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs);
  const http = ownEmitter(
    createHttpServer({
      httpValidation: 'strict',
      maxHeaderSize: limits.fieldsBytesMax,
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: lookMs(shortestMs),
      // A request without content needs no stream events: saves 1 us of about 20 (measured, response of 300 octets).
      optimizeEmptyRequests: true,
      // The kernel refuses a missing Host, with an error body.
      requireHostHeader: false,
      shouldUpgradeCallback: upgrades.takes,
    }),
    ignoreError,
  );
  // node drops fields beyond its default of 2000 silently, a second Host among them; their octets are limited.
  http.maxHeadersCount = 0;
  // A client that has sent its FIN after its request still gets the response. Undocumented, as old as node:http.
  (http as HttpServer & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  http.on('request', (incoming, outgoing) => receive(context, incoming, outgoing, false));
  http.on('checkContinue', (incoming, outgoing) => receive(context, incoming, outgoing, true));
  http.on('checkExpectation', (incoming, outgoing) => receive(context, incoming, outgoing, false));
  http.on('clientError', (error, socket) => answerClientError(context, error, socket as Socket));
  onArrival(http, 'upgrade', ignoreError, upgrades.take);
  onArrival(http, 'connect', ignoreError, (...[incoming, , head]: Handover) =>
    takeConnect(context, incoming, head),
  );
  // The timers behind headersTimeout and requestTimeout start with this event, which a server behind a port never has.
  http.emit('listening');
  return http;
}

function lookMs(timeoutMs: number): number {
  return Math.min(Math.max(Math.floor(timeoutMs / looksPerTimeout), lookMsMin), lookMsMax);
}

/**
 * Checks all connections periodically for what no event announces: responses, event streams or WebSockets without
 * progress, and settled requests that an idle connection need not keep in memory.
 */
function sweepConnections(context: Context): void {
  const { answerStallTimeoutMs, keepAliveTimeoutMs, headersTimeoutMs } = context.limits;
  // Octets that begin no request, such as empty lines (RFC 9112 §2.2), restart the timers of node:http each time.
  const idleMsMax = keepAliveTimeoutMs + headersTimeoutMs;
  const nowMs = context.monotonic();
  for (const stream of context.streams) stream.sweep(nowMs);
  for (const socket of context.sockets) socket.sweep(nowMs);
  for (const connection of context.connections) {
    if (connection.multiplexed !== undefined) connection.multiplexed.sweep(nowMs);
    else if (connection.owesNothing && nowMs - connection.activeMs > idleMsMax)
      connection.socket.destroySoon();
    else if (connection.settled) connection.last = undefined;
    else if (!connection.streaming) watchStall(connection, answerStallTimeoutMs);
  }
}

/**
 * Detects a stall with the socket's own timer, which counts what the kernel accepted as progress; node:http closes the
 * socket when it fires.
 */
function watchStall({ socket }: Connection, answerStallTimeoutMs: number): void {
  const waiting = socket.writableLength > 0;
  if (waiting && socket.timeout !== answerStallTimeoutMs) socket.setTimeout(answerStallTimeoutMs);
  else if (!waiting && socket.timeout === answerStallTimeoutMs) socket.setTimeout(0);
}

// Drains a listener: no acknowledged request is lost, and none under way is reset.
//
// 1. The ports close to new connections; streams end, WebSockets close with 1001; tunnels have until the bound.
// 2. Requests under way, and those that still arrive on open connections, are served, the last response on each
//   connection with `Connection: close` (serving them loses less than answering 503).
// 3. Idle connections are closed: at once if the last response is older than `drainIdleMs`, otherwise after that time, as
//   a request may be on its way. Then every HTTP/2 connection gets a GOAWAY with its last stream (RFC 9113 §6.8), so that a
//   busy client cannot delay the end.
// 4. At the bound, all remaining connections are destroyed.
//

const lookEveryMs = 10;
/** RFC 6455 §7.4.1: going away. */
const goingAway = 1001;

type Draining = {
  readonly boundMs: number;
  /** The requests of this process (web-exchange.ts). */
  readonly inProcess: Pick<Connection, 'underWay'>;
};

/**
 * Drains. Without ports, as in a mounted handler, there are only streams, WebSockets, tunnels and requests of this process to end.
 * @returns the number of connections that were cut at the bound
 */
async function drain(
  context: Context,
  ports: readonly Server[],
  { boundMs, inProcess }: Draining,
): Promise<number> {
  const startedMs = context.monotonic();
  const before = new Map<Connection, number>();
  for (const connection of context.connections) before.set(connection, connection.socket.bytesRead);
  context.draining = true;
  const closed = [...ports.map(closeSocket), context.proxy?.drain(boundMs)];
  for (const stream of context.streams) stream.close();
  for (const socket of context.sockets) socket.close(goingAway, 'server is going away');
  let cut = 0;
  const { promise: socketsClosed, resolve: onSocketsClosed } = Promise.withResolvers<void>();
  const look = () => {
    const nowMs = context.monotonic();
    const over = nowMs - startedMs >= boundMs;
    if (over) {
      cut += context.connections.size;
      for (const socket of context.sockets) socket.terminate();
      for (const connection of context.connections) connection.socket.destroy();
    } else
      afterReading(context, (readMs) => {
        closeIdle(context, readMs - startedMs, readMs, before);
      });
    if (over || (context.sockets.size === 0 && inProcess.underWay === 0)) onSocketsClosed();
  };
  look();
  const timer = setInterval(look, lookEveryMs);
  await Promise.all([...closed, socketsClosed]);
  clearInterval(timer);
  return cut;
}

/**
 * Calls back after a whole poll for octets, so that a request that came before the close is answered: this turn's poll may be over
 * already, and a timer runs before it. It does not if the turn of that poll was long, because octets may have arrived in it; the load
 * ends with the connections, and with it long turns. A request that comes at the moment of the close is lost: its client sees a
 * connection that ended without a response, and may retry (RFC 9112 §9.3.1, §9.6). So is one on a connection that the kernel holds and
 * the loop, which accepts a few each turn, has not accepted when the port closes.
 */
function afterReading({ monotonic }: Context, act: (nowMs: number) => void): void {
  setImmediate(() => {
    const polledMs = monotonic();
    setImmediate(() => {
      const nowMs = monotonic();
      if (nowMs - polledMs <= lookEveryMs) act(nowMs);
    });
  });
}

function closeIdle(
  context: Context,
  elapsedMs: number,
  nowMs: number,
  before: Map<Connection, number>,
): void {
  const { drainIdleMs } = context.limits;
  // node's own `closeIdleConnections` takes a response that is still being flushed for an idle connection.
  for (const connection of context.connections) {
    const idle = isIdle(connection, nowMs - drainIdleMs, before);
    if (connection.multiplexed === undefined) {
      if (idle) connection.socket.destroySoon();
    } else if (idle || elapsedMs >= drainIdleMs) connection.multiplexed.close();
  }
}

/** Settled, quiet since before the given time, and not in the middle of sending a request. */
function isIdle(connection: Connection, quietSinceMs: number, before: Map<Connection, number>): boolean {
  if (!connection.settled || connection.activeMs > quietSinceMs) return false;
  // Over HTTP/2, many received octets begin no request, such as acknowledgements.
  if (connection.multiplexed !== undefined) return true;
  const bytesBefore = before.get(connection);
  return bytesBefore === undefined || connection.closing || connection.socket.bytesRead === bytesBefore;
}
