/**
 * The life of one request in this layer: received, judged where its framing alone condemns it, handled, answered.
 *
 * What is refused here is what no resource may see, because the octets that follow cannot be trusted to be the next
 * request: versions other than 1.0 and 1.1 (node:http takes `HTTP/2.0` in a request line, and llhttp takes one
 * without a version for HTTP/0.9 with fields), and Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1). A transfer coding
 * that is not understood is left to the kernel to refuse, but nothing after it is read. Host, Expect and the target are
 * the kernel's.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Response } from '../http/message.ts';
import { isUnderstoodTransferCoding } from '../http/syntax/transfer-coding.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { Exchange } from './exchange.ts';
import { forwardRequest } from './forward-request.ts';
import { deliver, handle } from './handle.ts';
import { problemAnswer } from './problem-answer.ts';

/** Of a target in origin form, which is no other server's. */
const slash = 0x2f;

/**
 * @param awaitsContinue the client holds its content back until it sees 100 (Continue), and nobody sent it yet
 */
export function receive(
  context: Context,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  awaitsContinue: boolean,
): void {
  const connection = connectionOf(incoming.socket, context.monotonic);
  if (connection.closing) return;
  if (connection.underWay >= context.limits.pipelinedRequestsMax) {
    connection.closing = true;
    return;
  }
  const exchange = new Exchange(context, connection, incoming, outgoing);
  exchange.awaitsContinue = awaitsContinue;
  connection.last = exchange;
  exchange.begin();
  if (connection.declinesUpgrade) connection.closing = true;
  const refusal = judgeFraming(exchange);
  const { proxy } = context;
  if (refusal !== undefined) deliver(exchange, refusal);
  else if (proxy !== undefined && exchange.target.charCodeAt(0) !== slash && proxy.isForeign(exchange)) {
    forwardRequest(exchange, proxy);
  } else handle(exchange);
}

function judgeFraming(exchange: Exchange): Response | undefined {
  const { version, fields, connection } = exchange;
  if (version !== '1.1' && version !== '1.0') {
    connection.closing = true;
    return problemAnswer({ code: 'version_unsupported' }, fields.accept, { close: true });
  }
  if (fields.transferEncoding === undefined) return undefined;
  if (version === '1.0') {
    connection.closing = true;
    const message = 'Transfer-Encoding does not exist in HTTP/1.0';
    return problemAnswer({ code: 'message_invalid', message }, fields.accept, { close: true });
  }
  if (!isUnderstoodTransferCoding(fields.transferEncoding)) connection.closing = true;
  return undefined;
}
