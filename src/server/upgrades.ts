/**
 * Upgrade over HTTP/1.1 (§4.13): to a WebSocket if the resource converses, to HTTP/2 or to connect-udp; otherwise the
 * response of the same request without it. node:http hands over the socket before earlier responses on it, so these are
 * awaited; octets after the request go to the new protocol.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { tokensOf } from '../http/syntax/field-value.ts';
import { isHost } from '../http/syntax/uri.ts';
import { converseHttp1 } from '../realtime/websocket/converse.ts';
import type { ProxyCall, ProxyReply } from '../tunnel/proxy-call.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { answerOn, DetachedExchange, forwardRequest, receive, whenOwedAreSent } from './exchange.ts';
import { acceptH2c, judgeH2cUpgrade } from './h2c-upgrade.ts';
import { deliver, fail, handleInTurn, problemAnswer } from './handle.ts';
import { capOpen, openWebSocket } from './open-stream.ts';
import { type ConnectionTaker, resetConnection } from './port.ts';

export type Upgrades = {
  readonly takes: (incoming: IncomingMessage) => boolean;
  readonly take: (incoming: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
};

/** @param http2 takes upgraded connections; undefined: h2c is declined */
export function createUpgrades(context: Context, http2: ConnectionTaker | undefined): Upgrades {
  const { limits } = context;
  const decide = (incoming: IncomingMessage): UpgradeDecision => {
    const conditions: UpgradeConditions = {
      h2c: http2 !== undefined && !('encrypted' in incoming.socket),
      udp: context.proxy !== undefined,
      h2cContentBytesMax: limits.h2cContentBytesMax,
      fieldsBytesMax: limits.fieldsBytesMax,
    };
    return decideUpgrade(messageOf(incoming), conditions);
  };
  return {
    takes: (incoming) => {
      const taken = decide(incoming) !== 'declined';
      if (!taken) connectionOf(incoming.socket, context.monotonic).declinesUpgrade = true;
      return taken;
    },
    take: (incoming, stream, head) => {
      const connection = connectionOf(incoming.socket, context.monotonic);
      const decision = decide(incoming);
      whenOwedAreSent(connection, () => {
        // Content that has not arrived yet would mix with the new protocol: the response stays HTTP/1.1.
        if (decision === 'declined' || stream !== incoming.socket) decline(context, incoming, stream);
        else if (decision === 'websocket') converse(context, incoming, head);
        else if (decision === 'connect-udp') openUdp(context, incoming, head);
        else if (decision === 'unspoken') refuseProtocol(context, incoming);
        else if (http2 !== undefined) startHttp2(context, incoming, head, http2);
      });
    },
  };
}

function messageOf(incoming: IncomingMessage) {
  const { method = '', url: target = '', httpVersion: version, rawHeaders: rawFields } = incoming;
  return { method, target, version, rawFields };
}

function refuseProtocol(context: Context, incoming: IncomingMessage): void {
  const exchange = new DetachedExchange(context, incoming);
  deliver(exchange, problemAnswer({ code: 'protocol_unknown' }, exchange, { close: true }));
}

/** Handles an ordinary request, on a connection that ends with its response. */
function decline(context: Context, incoming: IncomingMessage, stream: Duplex): void {
  const connection = connectionOf(incoming.socket, context.monotonic);
  connection.declinesUpgrade = true;
  const outgoing = answerOn(context, incoming);
  // After incomplete content, node:http holds the rest of the connection back until it is read.
  if (stream !== incoming.socket) outgoing.once('finish', () => stream.resume());
  receive(context, incoming, outgoing, incoming.headers.expect?.toLowerCase() === '100-continue');
}

function converse(context: Context, incoming: IncomingMessage, head: Uint8Array): void {
  const exchange = new DetachedExchange(context, incoming, (self, response) => {
    return becomeWebSocket(self, head, capOpen(self, response));
  });
  const { proxy } = context;
  if (proxy?.isForeign(exchange) === true) forwardRequest(exchange, proxy);
  else handleInTurn(exchange);
}

function becomeWebSocket(exchange: DetachedExchange, head: Uint8Array, response: Response): boolean {
  const { context, connection, incoming } = exchange;
  if (response.conversation === undefined || !connection.socket.writable) return false;
  const date = context.formatDate(context.clock());
  const fields = [...response.fields, ...context.fieldsOfAll, 'Date', date];
  const socket = exchange.take();
  openWebSocket(exchange, { ...response, fields }, (options) =>
    converseHttp1({ incoming, socket, head }, options),
  );
  exchange.settle(response);
  return true;
}

function openUdp(context: Context, incoming: IncomingMessage, head: Uint8Array): void {
  const { proxy } = context;
  if (proxy === undefined) return;
  const success = {
    status: 101,
    line: '101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: connect-udp',
  };
  openTunnel(new DetachedExchange(context, incoming), proxy.udp, success, head);
}

function startHttp2(
  context: Context,
  incoming: IncomingMessage,
  head: Uint8Array,
  http2: ConnectionTaker,
): void {
  const request = messageOf(incoming);
  const { h2cContentBytesMax: contentBytesMax, fieldsBytesMax, h2cTimeoutMs: timeoutMs } = context.limits;
  const judged = judgeH2cUpgrade(request, { contentBytesMax, fieldsBytesMax });
  if (!judged.ok) return;
  const { socket } = incoming;
  const connection = connectionOf(socket, context.monotonic);
  connection.last = undefined;
  socket.setTimeout(0);
  const { settings, authority } = judged;
  const chunks: Uint8Array[] = [];
  incoming.on('data', (chunk: Uint8Array) => chunks.push(chunk));
  incoming.once('end', () => {
    const content = Buffer.concat(chunks);
    const { observe } = context;
    acceptH2c({ socket, head, request, content, settings, authority, http2, timeoutMs, observe });
  });
}

type UpgradeRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
};

export type UpgradeConditions = {
  /** The connection is cleartext, and no proxy in front passes on what it does not understand (h2c smuggling). */
  readonly h2c: boolean;
  readonly udp: boolean;
  readonly h2cContentBytesMax: number;
  readonly fieldsBytesMax: number;
};

/** `unspoken`: without its Upgrade, which is not supported, the request has no ordinary response. */
type UpgradeDecision = 'websocket' | 'connect-udp' | 'h2c' | 'unspoken' | 'declined';

/**
 * Decides on an Upgrade over HTTP/1.1 (§4.13; RFC 9110 §7.8) from the message alone. An Upgrade is an offer: a server
 * that declines it responds as if it were absent. node:http drops the octets after a declined one, so the connection
 * ends with the response.
 *
 * The resource refuses an invalid handshake, with a reason. Among supported protocols, the client's order decides.
 */
export function decideUpgrade(request: UpgradeRequest, conditions: UpgradeConditions): UpgradeDecision {
  const { version, rawFields } = request;
  if (version !== '1.1' || !tokensOf(rawFields, 'connection').includes('upgrade')) return 'declined';
  for (const protocol of tokensOf(rawFields, 'upgrade')) {
    if (protocol === 'websocket' && isBare(request)) return 'websocket';
    if (protocol === 'connect-udp' && conditions.udp && isBare(request)) return 'connect-udp';
    // RFC 9484: needs a network interface of the machine.
    if (protocol === 'connect-ip' && isBare(request)) return 'unspoken';
    if (protocol === 'h2c' && conditions.h2c && takesH2c(request, conditions)) return 'h2c';
  }
  return 'declined';
}

/** A GET without content, after which the octets of the other protocol follow. */
function isBare({ method, rawFields }: UpgradeRequest): boolean {
  if (method !== 'GET') return false;
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    const name = rawFields[index]?.toLowerCase();
    if (name === 'transfer-encoding' || name === 'expect') return false;
    if (name === 'content-length' && rawFields[index + 1] !== '0') return false;
  }
  return true;
}

function takesH2c(request: UpgradeRequest, conditions: UpgradeConditions): boolean {
  const { h2cContentBytesMax: contentBytesMax, fieldsBytesMax } = conditions;
  return judgeH2cUpgrade(request, { contentBytesMax, fieldsBytesMax }).ok;
}

// CONNECT over HTTP/1.1 (§4.10; RFC 9110 §9.3.6, RFC 9112 §3.2.3): checks the framing, asks the proxy and responds; the
// octets after the response belong to the tunnel. Without a proxy: 405 (rule 9). node:http validates nothing of a
// CONNECT, and hands it over before earlier responses on its connection.
//
// Host must be one valid host, as in every request. If it differs from the target, the target counts: the proxy judges
// it and connects to it, and all tested proxies do the same.
//

/** Status line without its version, and its fields. */
type TunnelSuccess = { readonly status: number; readonly line: string };

const established: TunnelSuccess = { status: 200, line: '200 Connection established' };

export function takeConnect(context: Context, incoming: IncomingMessage, head: Uint8Array): void {
  whenOwedAreSent(connectionOf(incoming.socket, context.monotonic), () => {
    const exchange = new DetachedExchange(context, incoming);
    const { proxy } = context;
    const refusal = proxy === undefined ? refuseMethod(exchange) : judgeConnect(exchange);
    if (refusal === undefined && proxy !== undefined) openTunnel(exchange, proxy.connect, established, head);
    else if (refusal !== undefined) deliver(exchange, refusal);
  });
}

/** Asks for a tunnel and responds; after a 2xx or 101 the socket belongs to the tunnel. */
function openTunnel(
  exchange: DetachedExchange,
  ask: (call: ProxyCall) => Promise<ProxyReply>,
  success: TunnelSuccess,
  head: Uint8Array,
): void {
  const { socket } = exchange.connection;
  const gone = new AbortController();
  const onClose = () => gone.abort();
  socket.once('close', onClose);
  // Reads while waiting, up to what a socket buffers, because only reading detects that the client leaves.
  socket.on('readable', wait);
  ask({ request: exchange, signal: gone.signal }).then(
    (reply) => {
      socket.off('close', onClose);
      socket.off('readable', wait);
      if ('refused' in reply) deliver(exchange, reply.refused);
      else join(exchange, reply, success, head);
    },
    (error: unknown) => {
      socket.off('readable', wait);
      fail(exchange, error);
    },
  );
}

type Accepted = Exclude<ProxyReply, { readonly refused: Response }>;

function join(
  exchange: DetachedExchange,
  reply: Accepted,
  { status, line }: TunnelSuccess,
  head: Uint8Array,
): void {
  const { context } = exchange;
  const duplex = exchange.take();
  if (!duplex.writable) {
    reply.abandon();
    duplex.destroy();
    exchange.settle({ status });
    return;
  }
  let text = `HTTP/1.1 ${line}\r\n`;
  const date = context.formatDate(context.clock());
  const fields = [...reply.fields, 'API-Version', context.apiVersion, 'Date', date];
  for (let index = 0; index + 1 < fields.length; index += 2)
    text += `${fields[index]}: ${fields[index + 1]}\r\n`;
  const first = takeBuffered(duplex, head);
  duplex.write(`${text}\r\n`, 'latin1');
  reply.join({ duplex, head: first, reset: () => resetConnection(duplex) });
  exchange.settle({ status });
}

/** The octets after the request, including those that arrived during the decision; empties the socket. */
function takeBuffered(socket: Socket, head: Uint8Array): Uint8Array {
  const later: Buffer | null = socket.read();
  socket.readableFlowing = null;
  if (later === null) return head;
  return head.length === 0 ? later : Buffer.concat([head, later]);
}

function judgeConnect(exchange: DetachedExchange): Response | undefined {
  const { version, fields, rawFields } = exchange;
  const refuse = (problem: Problem) => problemAnswer(problem, exchange, { close: true });
  if (!isVersionSupported(exchange)) return refuse({ code: 'version_unsupported' });
  if (fields.transferEncoding !== undefined || rawFields.some(isContentLength)) {
    return refuse({
      code: 'message_invalid',
      message: 'CONNECT must have no content, nor fields that announce it',
    });
  }
  const hostless = version === '1.0' && fields.hostCount === 0;
  const sound = fields.hostCount === 1 && fields.host !== undefined && isHost(fields.host);
  return hostless || sound ? undefined : refuse({ code: 'host_invalid' });
}

function isContentLength(text: string, index: number): boolean {
  return index % 2 === 0 && text.toLowerCase() === 'content-length';
}

function isVersionSupported({ version }: DetachedExchange): boolean {
  return version === '1.1' || version === '1.0';
}

function refuseMethod(exchange: DetachedExchange): Response {
  const { context } = exchange;
  if (!isVersionSupported(exchange)) {
    return problemAnswer({ code: 'version_unsupported' }, exchange, { close: true });
  }
  const refused = problemAnswer({ code: 'method_not_allowed' }, exchange, { close: true });
  // RFC 9110 §15.5.6 demands Allow with 405.
  return { ...refused, fields: [...refused.fields, 'Allow', context.allow] };
}

function wait(): void {
  // The octets are read once it is decided where they go.
}
