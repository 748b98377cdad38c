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
import { StoreUnavailable } from '../store/store.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { Exchange } from './exchange.ts';
import { problemAnswer } from './problem-answer.ts';
import { sendAnswer } from './send-answer.ts';

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
  connection.underWay += 1;
  connection.requests += 1;
  connection.activeMs = exchange.startedMs;
  context.underWay += 1;
  if (connection.declinesUpgrade) connection.closing = true;
  const refusal = judgeFraming(exchange);
  if (refusal !== undefined) deliver(exchange, refusal);
  else handle(exchange);
}

function handle(exchange: Exchange): void {
  let response: Response | Promise<Response>;
  try {
    response = exchange.context.handler(exchange);
  } catch (error) {
    fail(exchange, error);
    return;
  }
  if (response instanceof Promise) {
    response.then(
      (settled) => deliver(exchange, settled),
      (error: unknown) => fail(exchange, error),
    );
  } else deliver(exchange, response);
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

function deliver(exchange: Exchange, response: Response): void {
  try {
    sendAnswer(exchange, response);
  } catch (error) {
    fail(exchange, error);
  }
}

/** No answer came out of the handler, or none that can be sent. */
function fail(exchange: Exchange, error: unknown): void {
  const { outgoing, context, id } = exchange;
  const { accept } = exchange.fields;
  if (!(error instanceof StoreUnavailable)) context.observe({ kind: 'failed', id, error });
  if (outgoing.headersSent) {
    outgoing.destroy();
    exchange.settle({ status: outgoing.statusCode });
    return;
  }
  const response =
    error instanceof StoreUnavailable
      ? problemAnswer({ code: 'unavailable' }, accept, {
          retryAfterSeconds: Math.ceil(error.retryAfterSeconds),
        })
      : problemAnswer({ code: 'internal', context: { requestId: id } }, accept);
  sendAnswer(exchange, response);
}
