/**
 * CONNECT over HTTP/1.1 (§4.10; RFC 9110 §9.3.6, RFC 9112 §3.2.3): checks the framing, asks the proxy and responds; the
 * octets after the response belong to the tunnel. Without a proxy: 405 (rule 9). node:http validates nothing of a
 * CONNECT, and hands it over before earlier responses on its connection.
 *
 * Host must be one valid host, as in every request. If it differs from the target, the target counts: the proxy judges
 * it and connects to it, and all tested proxies do the same.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Response } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { isHost } from '../http/syntax/host.ts';
import type { ProxyCall, ProxyReply } from '../tunnel/proxy-call.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { DetachedExchange, whenOwedAreSent } from './exchange.ts';
import { resetConnection } from './front/tls-front.ts';
import { deliver, fail } from './handle.ts';
import { problemAnswer } from './problem-answer.ts';

/** Status line without its version, and its fields. */
export type TunnelSuccess = { readonly status: number; readonly line: string };

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
export function openTunnel(
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
