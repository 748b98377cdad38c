/**
 * HTTP/2 on sockets that another server accepted: a server of node:http2 that never listens and gets its connections by
 * `emit('connection', socket)`, after ALPN, a look at the preface, or an upgrade. The `stream` event is used, because
 * the objects that imitate node:http cost a third more a request and hide the order of fields. Its limits are in
 * server/limits.ts where node:http2 has no setting.
 */
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import type { Response } from '../../http/message.ts';
import { forwardedCode } from '../../observe/observation.ts';
import { type Arrivals, ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { converseHttp2 } from '../../realtime/websocket/converse.ts';
import type { ProxyCall, ProxyReply } from '../../tunnel/proxy-call.ts';
import { type Connection, connectionOf, type Multiplexed } from '../connection.ts';
import type { Context } from '../context.ts';
import { deliver, fail, handleInTurn, problemAnswer } from '../handle.ts';
import {
  http2HeaderListFactor,
  http2InvalidFramesMax,
  http2MemoryMebibytesMax,
  http2PingsMax,
  http2RejectedStreamsMax,
  http2ResetsBurstSeconds,
  http2SettingsMax,
  type ServerLimits,
} from '../limits.ts';
import {
  cancelled,
  connectError,
  type Head,
  type MultiplexedStream,
  readHead,
  refusedStream,
  StreamExchange,
} from './stream-exchange.ts';

type Arrived = [stream: ServerHttp2Stream, headers: object, flags: number, raw: readonly string[]];

export function createHttp2(context: Context): Http2Server {
  const { limits } = context;
  const server = ownEmitter(createServer(optionsOf(limits)), ignoreError);
  let accepted: Connection | undefined;
  // Called before node's own listener, which creates the session of the socket in the same turn.
  const first: Arrivals<[Socket]> = { on: (event, listener) => server.prependListener(event, listener) };
  onArrival(first, 'connection', ignoreError, (socket) => {
    accepted = connectionOf(socket, context.monotonic);
  });
  onArrival(server, 'session', ignoreError, (session: ServerHttp2Session) => {
    if (accepted === undefined) return;
    const connection = new Http2Connection(context, accepted, session);
    accepted.multiplexed = connection;
    accepted = undefined;
    session.setLocalWindowSize(limits.http2ConnectionWindowBytesMax);
    // A stream may have ended with an error in the packet that opened it; its session reports what matters.
    onArrival(session, 'stream', ignoreError, (...[stream, , , raw]: Arrived) =>
      takeStream(context, connection, stream, raw),
    );
  });
  return server;
}

function optionsOf(limits: ServerLimits) {
  const resetsPerSecond = limits.http2ResetsPerSecondMax;
  const headerListBytes = limits.fieldsBytesMax * http2HeaderListFactor;
  return {
    settings: {
      enableConnectProtocol: true,
      maxConcurrentStreams: limits.http2StreamsMax,
      initialWindowSize: limits.http2StreamWindowBytesMax,
      maxHeaderListSize: headerListBytes,
    },
    // No limit besides the octets, as over HTTP/1.1.
    maxHeaderListPairs: headerListBytes,
    streamResetRate: resetsPerSecond,
    streamResetBurst: resetsPerSecond * http2ResetsBurstSeconds,
    maxSettings: http2SettingsMax,
    maxOutstandingPings: http2PingsMax,
    maxSessionInvalidFrames: http2InvalidFramesMax,
    maxSessionRejectedStreams: http2RejectedStreamsMax,
    maxSessionMemory: http2MemoryMebibytesMax,
    // Otherwise node drops values with surrounding white space silently, an Origin or If-Match among them;
    // `refuse` answers them.
    strictFieldWhitespaceValidation: false,
    // A forwarded answer may repeat a singleton field; that is between its server and its client.
    strictSingleValueFields: false,
  };
}

// Dispatches a stream of an HTTP/2 connection (RFC 9113 §8, §8.5; RFC 8441): a resource of this program, a forwarded
// request, a WebSocket, a tunnel.
//
// Refused first: schemes other than http and https, values with surrounding white space (RFC 9113 §8.2.1), which
// nghttp2 silently drops by default, and header sections longer than over HTTP/1.1. The kernel judges the rest.
//

function takeStream(
  context: Context,
  http2: Http2Connection,
  stream: ServerHttp2Stream,
  raw: readonly string[],
): void {
  const { connection } = http2;
  // Reset in the packet that opened it: no client waits for it, and a thousand of them are an attack (CVE-2023-44487).
  if (stream.destroyed || stream.closed) return;
  // Streams that a client resets make room for others, but their requests may still be under way.
  if (connection.underWay >= context.limits.http2StreamsMax) {
    stream.close(refusedStream);
    return;
  }
  const head = readHead(raw);
  const exchange = new StreamExchange(context, connection, stream, head);
  http2.add(exchange);
  exchange.begin();
  const refusal = refuse(context, exchange, head);
  if (refusal !== undefined) deliver(exchange, refusal);
  else if (head.method === 'CONNECT' && head.protocol !== 'websocket') connect(exchange, head);
  else if (isForeign(context, exchange, head)) forwardStream(exchange);
  else {
    if (head.protocol !== undefined) {
      exchange.converse = (options) => converseHttp2({ stream, rawFields: exchange.rawFields }, options);
    }
    handleInTurn(exchange);
  }
}

/**
 * Over HTTP/2 a request to a proxy looks like one to an origin: there is no absolute form (RFC 9113 §8.3.1).
 * Credentials for a proxy identify one, and the proxy is asked with the target of HTTP/1.1.
 */
function isForeign({ proxy }: Context, exchange: StreamExchange, head: Head): boolean {
  const { target, fields } = exchange;
  if (proxy === undefined || fields.proxyAuthorization === undefined || head.protocol !== undefined)
    return false;
  exchange.target = `${head.scheme}://${head.authority ?? fields.host ?? ''}${target === '*' ? '' : target}`;
  if (proxy.isForeign(exchange)) return true;
  exchange.target = target;
  return false;
}

function refuse(context: Context, exchange: StreamExchange, head: Head): Response | undefined {
  const { fieldsBytesMax } = context.limits;
  const { fields } = exchange;
  const complain = (message: string) => problemAnswer({ code: 'message_invalid', message }, exchange);
  if (head.bytes > fieldsBytesMax) {
    const code = head.target.length >= fieldsBytesMax ? 'target_too_long' : 'fields_too_large';
    return problemAnswer({ code }, exchange);
  }
  if (head.padded) return complain('a field value begins or ends with white space');
  if (head.method === 'CONNECT' && head.protocol === undefined) {
    if (fields.contentLength === undefined) return undefined;
    return complain('CONNECT must have no content, nor fields that announce it');
  }
  if (head.scheme === 'http' || head.scheme === 'https') return undefined;
  return complain('the scheme must be http or https');
}

const protocolUnknown =
  'the protocol of this extended CONNECT is not implemented; a proxy that makes it of Upgrade must remove that field';

function connect(exchange: StreamExchange, { protocol }: Head): void {
  const { context } = exchange;
  const { proxy } = context;
  if (proxy !== undefined && protocol === undefined) openTunnel(exchange, proxy.connect);
  else if (proxy !== undefined && protocol === 'connect-udp') openTunnel(exchange, proxy.udp);
  else if (protocol !== undefined) {
    // RFC 9220 §3. HAProxy makes this of Upgrade in any request without content, whose method is lost, and makes 101 of
    // a 2xx: there is no request to answer as if it had no Upgrade.
    deliver(exchange, problemAnswer({ code: 'protocol_unknown', message: protocolUnknown }, exchange));
  } else {
    const answer = problemAnswer({ code: 'method_not_allowed' }, exchange);
    // RFC 9110 §15.5.6 demands Allow with 405.
    deliver(exchange, { ...answer, fields: [...answer.fields, 'Allow', context.allow] });
  }
}

const ofConnections: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Logged only: the client has left. */
const clientGone = 499;

/**
 * Forwards a request on a stream (§4.10): content and response pass unchanged, without the connection fields of
 * HTTP/1.1, which HTTP/2 must not have (RFC 9113 §8.2.2).
 */
function forwardStream(exchange: StreamExchange): void {
  const { stream, context } = exchange;
  const { proxy } = context;
  if (proxy === undefined) throw new Error('the proxy is not configured');
  const gone = new AbortController();
  const onClosed = () => gone.abort();
  stream.on('close', onClosed);
  const answered = proxy.forward({
    request: exchange,
    signal: gone.signal,
    // A stream without content has ended before anything reads it.
    content: exchange.announcesContent ? stream : ownEmitter(Readable.from([]), ignoreError),
    answer: (status, fields) => answer(exchange, status, fields),
    interim: (status, fields) => interim(exchange, status, fields),
  });
  answered.then(
    (refusal) => {
      stream.off('close', onClosed);
      if (refusal !== undefined) deliver(exchange, refusal);
      // The client left before there was a response.
      else exchange.settle({ status: exchange.sentStatus ?? clientGone, code: forwardedCode });
    },
    (error: unknown) => {
      stream.off('close', onClosed);
      fail(exchange, error);
    },
  );
}

function answer(exchange: StreamExchange, status: number, fields: readonly string[]): Writable {
  const { stream } = exchange;
  exchange.held = true;
  if (stream.closed || stream.destroyed) return discardAll();
  const empty = exchange.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  exchange.respond(status, withoutConnection(fields), empty);
  exchange.settle({ status, code: forwardedCode });
  return empty ? discardAll() : stream;
}

function interim({ stream }: StreamExchange, status: number, fields: readonly string[]): void {
  if (stream.closed || stream.destroyed || stream.headersSent) return;
  const all: Record<string, string | number> = { ':status': status };
  const kept = withoutConnection(fields);
  for (let index = 0; index + 1 < kept.length; index += 2) {
    const name = kept[index]?.toLowerCase() ?? '';
    const before = all[name];
    all[name] = before === undefined ? (kept[index + 1] ?? '') : `${before}, ${kept[index + 1]}`;
  }
  stream.additionalHeaders(all);
}

function withoutConnection(fields: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? '';
    if (!ofConnections.has(name.toLowerCase())) kept.push(name, fields[index + 1] ?? '');
  }
  return kept;
}

/** Discards the content of a response that must have none (RFC 9110 §6.4.1). */
function discardAll(): Writable {
  return ownEmitter(new Writable({ write: (_chunk, _encoding, done) => done() }), ignoreError);
}

const nothing = new Uint8Array(0);
const tunnelStatus = 200;

/**
 * CONNECT and connect-udp on a stream (RFC 9113 §8.5, RFC 9298 §3.5): asks the proxy, responds, and hands over the
 * stream. If the client leaves meanwhile, only the proxy is notified.
 */
function openTunnel(exchange: StreamExchange, ask: (call: ProxyCall) => Promise<ProxyReply>): void {
  const { stream } = exchange;
  const gone = new AbortController();
  const onClosed = () => gone.abort();
  stream.on('close', onClosed);
  ask({ request: exchange, signal: gone.signal }).then(
    (reply) => {
      stream.off('close', onClosed);
      if ('refused' in reply) deliver(exchange, reply.refused);
      else join(exchange, reply);
    },
    (error: unknown) => {
      stream.off('close', onClosed);
      fail(exchange, error);
    },
  );
}

function join(exchange: StreamExchange, reply: Exclude<ProxyReply, { refused: unknown }>): void {
  const { stream, context } = exchange;
  if (stream.closed || stream.destroyed) {
    reply.abandon();
    exchange.settle({ status: tunnelStatus });
    return;
  }
  const date = context.formatDate(context.clock());
  exchange.respond(tunnelStatus, [...reply.fields, 'api-version', context.apiVersion, 'date', date], false);
  exchange.held = true;
  exchange.settle({ status: tunnelStatus });
  reply.join({ duplex: stream, head: nothing, reset: () => stream.close(connectError) });
}

// The states of an HTTP/2 connection (RFC 9113 §9.1):
//
// - open: streams are accepted. Without any, it stays open for the time limit of a header section, then for
//   `keepAliveTimeoutMs` after the last stream.
// - closing: GOAWAY was sent; open streams are completed, further ones refused. A client that does not close its side
//   is cut after `unreadContentTimeoutMs`.
// - closed: the socket is gone.
//
// A GOAWAY that only warns (RFC 9113 §6.8) cannot be sent: nghttp2 accepts no stream after the one that node lets it
// send. By the last stream identifier a client learns that a later stream was not processed and can be retried.

type Watched = {
  readonly stream: MultiplexedStream;
  readonly waitsForClient: boolean;
  /** The client has not received anything of its response since `progressMs`. */
  readonly stalls: boolean;
  readonly progressMs: number;
  onClientEnded(): void;
  onClosed(): void;
};

/** A broken network is not the client's fault. */
const brokenNetwork: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED']);

class Http2Connection implements Multiplexed {
  readonly connection: Connection;
  readonly #context: Context;
  readonly #session: ServerHttp2Session;
  readonly #open = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  #streams = 0;
  /** Octets received, and when that last changed: a client that is gone sends none. */
  #bytesRead = 0;
  #heardMs: number;
  #pinged = false;
  #clientEnded = false;

  constructor(context: Context, connection: Connection, session: ServerHttp2Session) {
    this.connection = connection;
    this.#context = context;
    this.#session = session;
    this.#heardMs = context.monotonic();
    connection.activeMs = this.#heardMs;
    session.on('error', (error: NodeJS.ErrnoException) => this.#report(error));
    connection.socket.once('close', () => clearTimeout(this.#timer));
    // The sockets are half-open: nothing else would act on it.
    connection.socket.once('end', () => this.#onClientEnded());
    this.#lookIn(context.limits.headersTimeoutMs);
  }

  get idle(): boolean {
    return this.#open.size === 0;
  }

  add(watched: Watched): void {
    this.#streams += 1;
    this.#open.add(watched);
    if (this.#streams === 1) this.#lookIn(this.#context.limits.keepAliveTimeoutMs);
    watched.stream.on('close', () => {
      this.#open.delete(watched);
      watched.onClosed();
      if (this.connection.reserved) this.close();
      this.connection.activeMs = this.#context.monotonic();
    });
  }

  sweep(nowMs: number): void {
    const { answerStallTimeoutMs } = this.#context.limits;
    for (const { stream, stalls, progressMs } of this.#open) {
      if (stalls && nowMs - progressMs > answerStallTimeoutMs) stream.close(cancelled);
    }
    this.#pingIfSilent(nowMs);
  }

  close(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#session.close();
    this.#lookIn(this.#context.limits.unreadContentTimeoutMs);
  }

  /**
   * Requests still get their responses, as over HTTP/1.1, but streams that stay open end: no window updates can come.
   */
  #onClientEnded(): void {
    this.#clientEnded = true;
    for (const watched of this.#open) watched.onClientEnded();
    this.close();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#look, Math.ceil(ms)).unref();
  }

  readonly #look = (): void => {
    const { headersTimeoutMs, keepAliveTimeoutMs, unreadContentTimeoutMs } = this.#context.limits;
    if (this.#closing) {
      if (this.idle || this.#isStuck(unreadContentTimeoutMs)) this.connection.socket.destroy();
      else this.#lookIn(unreadContentTimeoutMs);
      return;
    }
    const boundMs = this.#streams === 0 ? headersTimeoutMs : keepAliveTimeoutMs;
    const leftMs = this.idle ? boundMs - (this.#context.monotonic() - this.connection.activeMs) : boundMs;
    if (leftMs > 0) this.#lookIn(leftMs);
    else this.close();
  };

  /**
   * No open stream has made progress for this long, nor can it: a sent response leaves only unread content, and a
   * client that has ended opens no window.
   */
  #isStuck(ms: number): boolean {
    const sinceMs = this.#context.monotonic() - ms;
    return [...this.#open].every(
      ({ waitsForClient, stalls, progressMs }) =>
        waitsForClient && (this.#clientEnded || !stalls) && progressMs < sinceMs,
    );
  }

  /**
   * Sends a PING if streams are open and nothing was received for the keep-alive time; TCP alone may take hours to
   * detect a dead peer.
   */
  #pingIfSilent(nowMs: number): void {
    const { keepAliveTimeoutMs, answerStallTimeoutMs } = this.#context.limits;
    const { bytesRead } = this.connection.socket;
    if (bytesRead !== this.#bytesRead || this.idle) {
      this.#bytesRead = bytesRead;
      this.#heardMs = nowMs;
      this.#pinged = false;
    } else if (this.#pinged) {
      if (nowMs - this.#heardMs > keepAliveTimeoutMs + answerStallTimeoutMs) this.connection.socket.destroy();
    } else if (nowMs - this.#heardMs > keepAliveTimeoutMs && !this.#session.destroyed) {
      this.#pinged = true;
      this.#session.ping(ignore);
    }
  }

  #report(error: NodeJS.ErrnoException): void {
    if (brokenNetwork.has(error.code)) return;
    const { observe } = this.#context;
    observe({ kind: 'http2-cut', peer: this.connection.peer, why: error.message });
  }
}

function ignore(): void {
  // A failed PING needs no action.
}
