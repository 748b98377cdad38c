/**
 * What a stream of an HTTP/2 connection asks for (RFC 9113 §8, §8.5; RFC 8441): a resource of this program, an answer of
 * another server, a WebSocket, a tunnel.
 *
 * What is refused before any of them is asked: a scheme other than http and https, values in white space (RFC 9113 §8.2.1), which
 * nghttp2 by default leaves out as if they had not come, and header sections longer than over HTTP/1.1. Host, Expect,
 * method and target are the kernel's.
 */
import type { ServerHttp2Stream } from 'node:http2';
import { converseHttp2 } from '../../connections/websocket/converse.ts';
import type { Response } from '../../http/message.ts';
import type { Context } from '../context.ts';
import { deliver, handle } from '../handle.ts';
import { problemAnswer } from '../problem-answer.ts';
import { forwardStream } from './forward-stream.ts';
import type { Http2Connection } from './http2-connection.ts';
import { refusedStream } from './multiplexed.ts';
import { type Head, readHead } from './read-head.ts';
import { StreamExchange } from './stream-exchange.ts';
import { openTunnel } from './tunnel-stream.ts';

export function takeStream(
  context: Context,
  http2: Http2Connection,
  stream: ServerHttp2Stream,
  raw: readonly string[],
): void {
  const { connection } = http2;
  // Reset in the packet that it came in: nobody waits for it, and a thousand of them are an attack (CVE-2023-44487).
  if (stream.destroyed || stream.closed) return;
  // Streams that a client resets make room for others, but what they asked for may still be under way.
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
    handle(exchange);
  }
}

/**
 * Over HTTP/2 a request to a proxy looks like one to an origin: there is no absolute form (RFC 9113 §8.3.1). A client that
 * authenticates to a proxy means one, and is asked about by the target that it would have sent over HTTP/1.1.
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

function refuse(context: Context, { fields }: StreamExchange, head: Head): Response | undefined {
  const { fieldsBytesMax } = context.limits;
  const { accept } = fields;
  const complain = (message: string) => problemAnswer({ code: 'message_invalid', message }, accept);
  if (head.bytes > fieldsBytesMax) {
    const code = head.target.length >= fieldsBytesMax ? 'target_too_long' : 'fields_too_large';
    return problemAnswer({ code }, accept);
  }
  if (head.padded) return complain('a field value begins or ends with white space');
  if (head.method === 'CONNECT' && head.protocol === undefined) {
    if (fields.contentLength === undefined) return undefined;
    return complain('CONNECT has no content, nor fields that announce it');
  }
  if (head.scheme === 'http' || head.scheme === 'https') return undefined;
  return complain('the scheme must be http or https');
}

function connect(exchange: StreamExchange, { protocol }: Head): void {
  const { context, fields } = exchange;
  const { proxy } = context;
  if (proxy !== undefined && protocol === undefined) openTunnel(exchange, proxy.connect);
  else if (proxy !== undefined && protocol === 'connect-udp') openTunnel(exchange, proxy.udp);
  else if (protocol !== undefined)
    deliver(exchange, problemAnswer({ code: 'protocol_unknown' }, fields.accept));
  else {
    const answer = problemAnswer({ code: 'method_not_allowed' }, fields.accept);
    // RFC 9110 §15.5.6 demands Allow with 405.
    deliver(exchange, { ...answer, fields: [...answer.fields, 'Allow', context.allow] });
  }
}
