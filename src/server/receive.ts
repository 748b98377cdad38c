/**
 * Receives a request over HTTP/1.1, refuses invalid framing, and has it handled.
 *
 * Refused here is what no resource may see, because the following octets may not be the next request: versions other
 * than 1.0 and 1.1 (node:http accepts `HTTP/2.0` in a request line, and llhttp one without a version as HTTP/0.9 with
 * fields), and Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1). The kernel refuses unsupported transfer codings, and
 * nothing after them is read; it also judges Host, Expect and the target.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Response } from '../http/message.ts';
import { isUnderstoodTransferCoding } from '../http/syntax/transfer-coding.ts';
import { forwardedCode } from '../observe/observation.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { ForwardCall } from '../tunnel/proxy-call.ts';
import { connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { Exchange } from './exchange.ts';
import { deliver, fail, handleInTurn } from './handle.ts';
import { problemAnswer } from './problem-answer.ts';
import { UnreadContent } from './unread-content.ts';

/** Begins a target in origin form, which is never for another server. */
const slash = 0x2f;

/** @param awaitsContinue the client waits for 100 (Continue), which was not sent yet */
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
  } else handleInTurn(exchange);
}

function judgeFraming(exchange: Exchange): Response | undefined {
  const { version, fields, connection } = exchange;
  if (version !== '1.1' && version !== '1.0') {
    connection.closing = true;
    return problemAnswer({ code: 'version_unsupported' }, exchange, { close: true });
  }
  if (fields.transferEncoding === undefined) return undefined;
  if (version === '1.0') {
    connection.closing = true;
    const message = 'Transfer-Encoding does not exist in HTTP/1.0';
    return problemAnswer({ code: 'message_invalid', message }, exchange, { close: true });
  }
  if (!isUnderstoodTransferCoding(fields.transferEncoding)) connection.closing = true;
  return undefined;
}

/**
 * Forwards a request over HTTP/1.1 to another server (§4.10): content and response are streams that pass unchanged. The
 * proxy decides whether it may be forwarded. Call it if `proxy.isForeign(exchange)`, after `exchange.begin()`.
 */
export function forwardRequest(exchange: Exchange, proxy: NonNullable<Context['proxy']>): void {
  const { incoming, outgoing, context, connection } = exchange;
  const gone = new AbortController();
  const onClose = () => {
    if (!outgoing.writableFinished) gone.abort();
  };
  outgoing.once('close', onClose);
  let status = 0;
  const call: ForwardCall = {
    request: exchange,
    signal: gone.signal,
    // node:http has already closed a message without content, which looks like a broken one to a reader.
    content: exchange.announcesContent ? incoming : ownEmitter(Readable.from([]), ignoreError),
    answer: (given, fields) => {
      status = given;
      // A response before the end of the content leaves octets before the next request. Of pipelined requests, only the last closes.
      const closes =
        !incoming.complete || ((connection.closing || context.draining) && connection.last === exchange);
      if (closes) connection.closing = true;
      if (!incoming.complete) new UnreadContent(context, connection).closeInStages();
      if (exchange.version === '1.0') outgoing.removeHeader('Transfer-Encoding');
      outgoing.writeHead(given, closes ? [...fields, 'Connection', 'close'] : [...fields]);
      return outgoing;
    },
    interim: (given, fields) => {
      if (exchange.version === '1.0' || outgoing.headersSent) return;
      if (given === 100) exchange.awaitsContinue = false;
      outgoing.writeInformation(given, [...fields]);
    },
  };
  proxy.forward(call).then(
    (refused) => {
      if (refused === undefined)
        exchange.settle({ status: status === 0 ? 499 : status, code: forwardedCode });
      else deliver(exchange, refused);
    },
    (error: unknown) => fail(exchange, error),
  );
}
