/**
 * A response value on the wire, exactly once for each exchange: the status line and fields in one `writeHead` from a
 * flat list, then the content in one `end`. This layer alone adds Content-Length, Connection, Date and API-Version;
 * builders of responses give none of them. Date comes from the program's own clock: that of node:http lags under load, and
 * Last-Modified must not be later (RFC 9110 §8.8.2.1).
 *
 * 204 and 304 have neither content nor Content-Length (RFC 9110 §15.3.5, §15.4.5); an answer to HEAD has the
 * Content-Length of the content that it does not send. Text without characters beyond Latin-1's ASCII half is
 * written as latin1: one copy less than UTF-8.
 */
import type { Response } from '../http/message.ts';
import { hasRoomFor, inOctets, noRoom } from './answer-memory.ts';
import { capOpen, isStream } from './cap-open.ts';
import type { Http1Request } from './http1-request.ts';
import { textBytesMax, uncountedBytesMax, waitingAnswerBytes } from './limits.ts';
import { linger } from './linger.ts';
import { openStream } from './open-stream.ts';
import { problemAnswer } from './problem-answer.ts';

/** What a conversation is answered with where the connection stays HTTP, as under a server that takes no Upgrade. */
const declined = 'the connection cannot be upgraded: the request has content, or the server takes no Upgrade';

export function sendAnswer(exchange: Http1Request, answer: Response): void {
  const { context, connection, outgoing } = exchange;
  const response = withinMemory(exchange, declineConversation(exchange, capOpen(exchange, answer)));
  const { status } = response;
  const content = inOctets(response.content);
  // Spread, not concat: 45 ns against 150 (measured on 10 members).
  const date = context.formatDate(context.clock());
  const fields = [...response.fields, 'API-Version', context.apiVersion, 'Date', date];
  const lingers = leavesContentUnread(exchange, response);
  const closes =
    lingers ||
    response.close === true ||
    connection.reserved ||
    // node:http would keep the connection where the answer has a Connection field of its own, as 426 does (RFC 9112 §9.6).
    !outgoing.shouldKeepAlive ||
    ((connection.closing || context.draining) && connection.last === exchange);
  if (closes) {
    connection.closing = true;
    addClose(fields);
  }
  if (isStream(content)) {
    if (exchange.version === '1.0') outgoing.removeHeader('Transfer-Encoding');
    outgoing.writeHead(status, fields);
    if (response.headOnly === true) outgoing.end();
    else openStream(exchange, content);
  } else if (status === 204 || status === 304) {
    outgoing.writeHead(status, fields);
    if (lingers) linger(exchange, undefined, 'latin1');
    else outgoing.end();
  } else {
    const text = content ?? '';
    const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.length;
    const encoding = typeof text === 'string' && bytes === text.length ? 'latin1' : 'utf8';
    fields.push('Content-Length', String(bytes));
    outgoing.writeHead(status, fields);
    if (lingers) linger(exchange, response.headOnly === true ? undefined : text, encoding);
    else if (response.headOnly === true) outgoing.end();
    else if (typeof text !== 'string' && 'encrypted' in connection.socket) endInPieces(outgoing, text);
    else outgoing.end(text, encoding);
    // What the socket took at once is held no longer.
    if (bytes > uncountedBytesMax && outgoing.writableLength > 0) holdUntilSent(exchange, text);
  }
  if (!lingers && exchange.announcesContent && !exchange.incoming.complete) awaitRest(exchange);
  exchange.settle(response);
}

/** Adds the connection option to a Connection field that is there already. */
function addClose(fields: string[]): void {
  const at = fields.indexOf('Connection');
  if (at === -1) fields.push('Connection', 'close');
  else fields[at + 1] = `${fields[at + 1]}, close`;
}

/** Content that nobody reads and that does not come in time ends the connection, first our side of it. */
function awaitRest({ incoming, connection, context }: Http1Request): void {
  const { contentWatch, limits, monotonic } = context;
  const { socket } = connection;
  const startedMs = monotonic();
  const rest = {
    check: (nowMs: number): void => {
      const waitedMs = nowMs - startedMs;
      if (waitedMs <= limits.unreadContentTimeoutMs) return;
      connection.closing = true;
      if (waitedMs <= 2 * limits.unreadContentTimeoutMs) socket.end();
      else socket.destroy();
    },
  };
  contentWatch.add(rest);
  const forget = () => contentWatch.delete(rest);
  incoming.once('end', forget);
  incoming.once('close', forget);
}

/** The answer, or 503 where what waits to be taken leaves no memory for it. */
function withinMemory(exchange: Http1Request, response: Response): Response {
  const { content } = response;
  if (content === null || isStream(content) || content.length <= uncountedBytesMax) return response;
  return hasRoomFor(exchange, content) ? response : noRoom(exchange, response);
}

/** Counted from here on: the octets, once where other answers send the same ones, and what a waiting answer takes besides. */
function holdUntilSent(exchange: Http1Request, content: string | Uint8Array): void {
  const lease = exchange.context.memory.budget.lease('answers', exchange.memoryHolder);
  const isShared = typeof content !== 'string' && lease.growShared(content);
  lease.set(waitingAnswerBytes + (isShared ? 0 : content.length));
  exchange.outgoing.once('close', () => lease.release());
}

/** TLS copies what it is given, so it is given no more at once than a client may leave waiting. */
function endInPieces(outgoing: Http1Request['outgoing'], bytes: Uint8Array): void {
  let at = 0;
  const next = (error?: Error | null): void => {
    if (error != null || outgoing.destroyed) return;
    const piece = bytes.subarray(at, at + textBytesMax);
    at += piece.length;
    if (at < bytes.length) outgoing.write(piece, next);
    else outgoing.end(piece);
  };
  next();
}

/**
 * Whether the connection must end because content that nobody read lies before the next request. A short remainder is
 * left to node:http, which reads and drops it, and the connection stays usable.
 */
function leavesContentUnread(exchange: Http1Request, response: Response): boolean {
  if (!exchange.announcesContent || exchange.incoming.complete) return false;
  if (response.close === true || exchange.connection.closing || !exchange.outgoing.shouldKeepAlive)
    return true;
  if (exchange.reading !== undefined || exchange.awaitsContinue) return true;
  const { unreadContentBytesMax } = exchange.context.limits;
  return exchange.fields.transferEncoding !== undefined || exchange.announcedBytes > unreadContentBytesMax;
}

/** Whoever can make a connection a WebSocket does so before it comes here. */
function declineConversation(exchange: Http1Request, response: Response): Response {
  if (response.conversation === undefined) return response;
  const refused = problemAnswer({ code: 'handshake_invalid', message: declined }, exchange.fields.accept);
  return response.route === undefined ? refused : { ...refused, route: response.route };
}
