/**
 * Upgrade over HTTP/1.1 (§4.13): to a WebSocket if the resource converses, to HTTP/2 or to connect-udp; otherwise the
 * response of the same request without it. node:http hands over the socket before earlier responses on it, so these are
 * awaited; octets after the request go to the new protocol.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Response } from '../http/message.ts';
import { converseHttp1 } from '../realtime/websocket/converse.ts';
import { connectionOf } from './connection.ts';
import type { Context, OpenSocket } from './context.ts';
import { answerOn, DetachedExchange, whenOwedAreSent } from './exchange.ts';
import type { ConnectionTaker } from './front/first-octets.ts';
import { acceptH2c } from './h2c/hand-over.ts';
import { judgeH2cUpgrade, tokensOf } from './h2c/judge-upgrade.ts';
import { deliver, handleInTurn } from './handle.ts';
import { capOpen } from './open-stream.ts';
import { problemAnswer } from './problem-answer.ts';
import { forwardRequest, receive } from './receive.ts';

import { openTunnel } from './take-connect.ts';

export type Upgrades = {
  readonly takes: (incoming: IncomingMessage) => boolean;
  readonly take: (incoming: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
};

export type UpgradeOptions = {
  /** Takes upgraded connections; undefined: h2c is declined. */
  readonly http2: ConnectionTaker | undefined;
};

export function createUpgrades(context: Context, { http2 }: UpgradeOptions): Upgrades {
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
  const { conversation } = response;
  const { context, connection, incoming } = exchange;
  if (conversation === undefined || !connection.socket.writable) return false;
  const { limits, observe, fleet } = context;
  const date = context.formatDate(context.clock());
  const fields = [...response.fields, ...context.fieldsOfAll, 'Date', date];
  const socket = exchange.take();
  let open: OpenSocket | undefined;
  let closed = false;
  const onClosed = () => {
    closed = true;
    if (open !== undefined) context.sockets.delete(open);
  };
  const call = { incoming, socket, head };
  open = converseHttp1(call, {
    conversation,
    fields,
    peer: connection.peer,
    limits,
    observe,
    fleet,
    memory: context.memory.budget.lease('websockets', exchange.memoryHolder),
    onClosed,
  });
  if (!closed) context.sockets.add(open, exchange.holder);
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
