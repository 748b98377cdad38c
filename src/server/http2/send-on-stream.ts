/**
 * A response value on a multiplexed stream, exactly once: the same fields as over HTTP/1.1 (send-answer.ts), without
 * those of the connection, which do not exist here (RFC 9113 §8.2.2). `close` of the response means nothing: framing
 * is never lost with a request, and other streams have done nothing wrong.
 *
 * An answer that is given before the content was read ends the stream with NO_ERROR (RFC 9113 §8.1): node:http2 does so
 * where nothing was read, and it is done here where the reading was broken off.
 */
import type { Response } from '../../http/message.ts';
import { hasRoomFor, inOctets, noRoom } from '../answer-memory.ts';
import { capOpen, isStream } from '../cap-open.ts';
import type { OpenSocket } from '../context.ts';
import { waitingAnswerBytes } from '../limits.ts';
import { openStream } from '../open-stream.ts';
import { type MultiplexedStream, noError } from './multiplexed.ts';
import type { StreamRequest } from './stream-request.ts';
import { pieceBytesMax, writePieces } from './write-pieces.ts';

/** RFC 8441 §5: what 101 is over HTTP/1.1. */
const conversationStatus = 200;

export function sendOnStream(exchange: StreamRequest, answer: Response): void {
  const response = capOpen(exchange, answer);
  const { stream } = exchange;
  exchange.held = false;
  if (stream.closed || stream.destroyed) exchange.settle(response);
  else if (response.conversation !== undefined) converse(exchange, response);
  else {
    write(exchange, response);
    if (exchange.reading !== undefined && !stream.readableEnded) endAfterAnswer(stream);
    exchange.settle(response);
  }
}

function write(exchange: StreamRequest, response: Response): void {
  const { stream, context } = exchange;
  const { status } = response;
  const content = inOctets(response.content);
  const fields = answerFields(exchange, response);
  if (isStream(content)) {
    exchange.respond(status, fields, response.headOnly === true);
    if (response.headOnly !== true) openStream(exchange, content);
    return;
  }
  if (status === 204 || status === 304) {
    exchange.respond(status, fields, true);
    return;
  }
  const text = content ?? '';
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.length;
  fields.push('content-length', String(bytes));
  const empty = response.headOnly === true || bytes === 0;
  if (!empty && !hasRoomFor(exchange, text)) {
    refuse(exchange, response);
    return;
  }
  exchange.respond(status, fields, empty);
  if (empty) return;
  const lease = context.memory.budget.lease('answers', exchange.memoryHolder);
  const isShared = typeof text !== 'string' && lease.growShared(text);
  lease.set(waitingAnswerBytes + (isShared ? 0 : bytes));
  stream.once('close', () => lease.release());
  if (bytes > pieceBytesMax) {
    writePieces(stream, typeof text === 'string' ? Buffer.from(text) : text, () => {
      exchange.progressMs = context.monotonic();
    });
  } else if (typeof text === 'string') stream.end(text, bytes === text.length ? 'latin1' : 'utf8');
  else stream.end(text);
}

/** Without content, which would wait for the client as the answer would have: a header section is all that flow control lets pass. */
function refuse(exchange: StreamRequest, response: Response): void {
  const refused = noRoom(exchange, response);
  exchange.respond(refused.status, [...answerFields(exchange, refused), 'content-length', '0'], true);
}

function answerFields({ context }: StreamRequest, response: Response): string[] {
  const date = context.formatDate(context.clock());
  return [...response.fields, 'api-version', context.apiVersion, 'date', date];
}

function endAfterAnswer(stream: MultiplexedStream): void {
  if (stream.writableFinished) stream.close(noError);
  else stream.once('finish', () => stream.close(noError));
}

function converse(exchange: StreamRequest, response: Response): void {
  const { context, peer } = exchange;
  const { conversation } = response;
  if (conversation === undefined || exchange.converse === undefined) {
    throw new Error('a conversation with somebody who asked for none');
  }
  let socket: OpenSocket | undefined;
  let closed = false;
  exchange.held = true;
  socket = exchange.converse({
    conversation,
    fields: answerFields(exchange, response),
    peer,
    limits: context.limits,
    observe: context.observe,
    fleet: context.fleet,
    memory: context.memory.budget.lease('websockets', exchange.memoryHolder),
    onClosed: () => {
      closed = true;
      if (socket !== undefined) context.sockets.delete(socket);
    },
  });
  if (!closed) context.sockets.add(socket, exchange.holder);
  exchange.settle({ ...response, status: conversationStatus });
}
