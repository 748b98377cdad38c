/**
 * Upgrade over HTTP/1.1 (§4.13): a WebSocket where the resource converses, HTTP/2, connect-udp; else the answer that the request would have had
 * without it. node:http hands over the socket before any answer that is still owed on it, so those are waited for, and what came behind
 * the request goes to what the connection becomes.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { acceptH2c } from '../connections/h2c/hand-over.ts';
import { judgeH2cUpgrade } from '../connections/h2c/judge-upgrade.ts';
import { converseHttp1 } from '../connections/websocket/converse.ts';
import type { Response } from '../http/message.ts';
import { capOpen } from './cap-open.ts';
import { connectionOf } from './connection.ts';
import type { Context, OpenSocket } from './context.ts';
import { answerOn, DetachedExchange, whenOwedAreSent } from './detached-exchange.ts';
import { forwardRequest } from './forward-request.ts';
import type { ConnectionTaker } from './front/protocols.ts';
import { deliver, handle } from './handle.ts';
import { problemAnswer } from './problem-answer.ts';
import { receive } from './receive.ts';
import { openTunnel } from './take-connect.ts';
import { decideUpgrade, type UpgradeConditions, type UpgradeDecision } from './upgrade-decision.ts';

export type Upgrades = {
  /** Whether node:http is to hand the socket over. */
  readonly takes: (incoming: IncomingMessage) => boolean;
  readonly take: (incoming: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
};

export type UpgradeOptions = {
  /** Takes connections that were upgraded; undefined: none are. */
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
        // Content that has not come yet is not behind us: the answer stays one of HTTP/1.1.
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
  deliver(exchange, problemAnswer({ code: 'protocol_unknown' }, exchange.fields.accept, { close: true }));
}

/** As an ordinary request, on a connection that ends with the answer. */
function decline(context: Context, incoming: IncomingMessage, stream: Duplex): void {
  const connection = connectionOf(incoming.socket, context.monotonic);
  connection.declinesUpgrade = true;
  const outgoing = answerOn(context, incoming);
  // Behind content that was not whole, node:http holds the rest of the connection back until somebody reads it.
  if (stream !== incoming.socket) outgoing.once('finish', () => stream.resume());
  receive(context, incoming, outgoing, incoming.headers.expect?.toLowerCase() === '100-continue');
}

function converse(context: Context, incoming: IncomingMessage, head: Uint8Array): void {
  const exchange = new DetachedExchange(context, incoming, (self, response) => {
    return becomeWebSocket(self, head, capOpen(self, response));
  });
  const { proxy } = context;
  if (proxy?.isForeign(exchange) === true) forwardRequest(exchange, proxy);
  else handle(exchange);
}

function becomeWebSocket(exchange: DetachedExchange, head: Uint8Array, response: Response): boolean {
  const { conversation } = response;
  const { context, connection, incoming } = exchange;
  if (conversation === undefined || !connection.socket.writable) return false;
  const { limits, observe, fleet } = context;
  const date = context.formatDate(context.clock());
  const fields = [...response.fields, 'API-Version', context.apiVersion, 'Date', date];
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
