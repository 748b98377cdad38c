/** One request on a stream of a multiplexed connection and its response: the `Request` of the handler. */

import type { Duplex } from 'node:stream';
import { isFile, isStream, type Response } from '../../http/message.ts';
import { type RequestFields, readRequestFields } from '../../http/request-fields.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { ConverseOptions, OpenSocket } from '../../realtime/websocket/websocket-wire.ts';
import type { Connection } from '../connection.ts';
import type { ContentSource } from '../content-reading.ts';
import type { Context } from '../context.ts';
import { type FileSending, whenOpened } from '../file-sending.ts';
import { waitingAnswerBytes } from '../limits.ts';
import { capOpen, hasRoomFor, inOctets, isShort, noRoom, openStream, openWebSocket } from '../open-stream.ts';
import { RequestUnderWay } from '../request-under-way.ts';
import { Discarding } from '../unread-content.ts';

export class StreamExchange extends RequestUnderWay {
  readonly method: string;
  /** Absolute if the request is for another server. */
  target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly protocol: string | undefined;
  readonly stream: MultiplexedStream;
  /** Turns the stream into a WebSocket; undefined if the client did not ask for one. */
  converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  /** The stream is a WebSocket, a tunnel or an event stream: silence is not a stall. */
  held = false;
  /** Sends the response that waits for the end of the content. */
  onContentOver: (() => void) | undefined;
  /** When the client last received something, on the monotonic clock. */
  progressMs: number;
  /** Memory reserved for the response until the client has read it; released when the stream closes. */
  answerLease: MemoryLease | undefined;
  /** The file that is being sent. */
  file: FileSending | undefined;

  constructor(context: Context, connection: Connection, stream: MultiplexedStream, head: Head) {
    super(context, connection);
    const { rawFields, protocol } = head;
    const fields = readRequestFields(rawFields);
    // An extended CONNECT is passed on as the GET of the equivalent Upgrade (RFC 8441 §5.1).
    this.method = protocol === undefined ? head.method : 'GET';
    this.target = head.target;
    this.version = '2.0';
    this.rawFields = rawFields;
    this.fields = fields;
    this.protocol = protocol;
    this.stream = stream;
    this.progressMs = this.startedMs;
    if (stream.endAfterHeaders || protocol !== undefined || head.method === 'CONNECT') return;
    // Content of unknown length, which HTTP/1.1 marks with a transfer coding and HTTP/2 not at all.
    if (fields.contentLength === undefined) fields.transferEncoding = 'chunked';
    this.awaitsContinue = fields.expect !== undefined && fields.expect.toLowerCase() === '100-continue';
  }

  /** The response is sent as far as it was read: the client has to receive it or to end its content. */
  get waitsForClient(): boolean {
    return this.answered && !this.held && this.file?.waitsForReading !== true;
  }

  get stalls(): boolean {
    return this.waitsForClient && !this.stream.writableFinished;
  }

  get announcesContent(): boolean {
    return this.fields.transferEncoding !== undefined || this.announcedBytes > 0;
  }

  protected get contentSource(): ContentSource | undefined {
    return this.stream.destroyed || this.stream.aborted ? undefined : this.stream;
  }

  protected writeContinue(): void {
    if (!this.stream.closed && !this.stream.destroyed) this.stream.additionalHeaders({ ':status': 100 });
  }

  inform(status: number, fields: readonly string[]): void {
    if (this.isGone || this.stream.headersSent) return;
    const all: Record<string, string | number> = { ':status': status };
    for (let at = 0; at + 1 < fields.length; at += 2)
      all[(fields[at] ?? '').toLowerCase()] = fields[at + 1] ?? '';
    this.stream.additionalHeaders(all);
  }

  get sentStatus(): number | undefined {
    return this.stream.headersSent ? this.#status : undefined;
  }

  get isGone(): boolean {
    return this.stream.closed || this.stream.destroyed;
  }

  get sink(): MultiplexedStream {
    return this.stream;
  }

  #status = 0;

  /** Sends the final header section, unless the client has left. */
  respond(status: number, fields: string[], endStream: boolean): void {
    this.#status = status;
    this.progressMs = this.context.monotonic();
    this.stream.respond([':status', String(status), ...fields], endStream ? { endStream } : {});
  }

  onClientEnded(): void {
    if (this.held) this.cut();
    else if (this.onContentOver !== undefined) this.onContentOver();
    else if (this.reading !== undefined) this.failContent('content_malformed');
  }

  onClosed(): void {
    this.answerLease?.release();
  }

  send(response: Response): void {
    this.leaveContent();
    sendOnStream(this, response);
  }

  cut(): void {
    this.stream.close(cancelled);
  }

  override holdOpen(onLeft: () => void): void {
    super.holdOpen(onLeft);
    this.held = true;
  }

  /** Stall detection applies again to what was already written. */
  override letGo(onLeft: () => void): void {
    super.letGo(onLeft);
    this.held = false;
    this.progressMs = this.context.monotonic();
  }

  /** Other streams go on; the connection ends after GOAWAY and its last stream. */
  endForGood(): void {
    this.stream.end();
  }
}

// Sends a response on a multiplexed stream, exactly once: the fields of HTTP/1.1 (server/exchange.ts) without those of the
// connection (RFC 9113 §8.2.2). `close` of the response is ignored: framing cannot break.
//
// A response that does not need the content is sent after it: the rest is read and discarded within the limits of
// unread-content.ts, and at a limit the stream ends with NO_ERROR after the response (RFC 9113 §8.1). Clients of
// node:http2, fetch over TLS among them, lose the connection to earlier ones: they count octets that they still had to
// send on a closed stream against `maxSessionMemory` (10 MB) for ever, and take no header section while more are queued.
//

/** RFC 8441 §5: the equivalent of 101 over HTTP/1.1. */
const conversationStatus = 200;

function sendOnStream(exchange: StreamExchange, answer: Response): void {
  const response = capOpen(exchange, answer);
  const { stream } = exchange;
  exchange.held = false;
  if (stream.closed || stream.destroyed) exchange.settle(response);
  else if (response.conversation !== undefined) converse(exchange, response);
  else if (isFile(response.content))
    whenOpened(exchange, response, (opened, file) => {
      exchange.file = file;
      answerStream(exchange, opened);
    });
  else if (leavesContentUnread(exchange, response))
    discardFirst(exchange, () => answerStream(exchange, response));
  else answerStream(exchange, response);
}

function answerStream(exchange: StreamExchange, response: Response): void {
  const { stream } = exchange;
  if (!stream.closed && !stream.destroyed) {
    write(exchange, response);
    if (exchange.announcesContent && !stream.readableEnded) endAfterAnswer(stream);
  }
  exchange.settle(response);
}

function write(exchange: StreamExchange, response: Response): void {
  const { stream, context } = exchange;
  const { status } = response;
  const content = inOctets(response.content);
  const fields = answerFields(exchange, response);
  if (isStream(content)) {
    exchange.respond(status, fields, response.headOnly === true);
    if (response.headOnly !== true) openStream(exchange, content);
    return;
  }
  if (isFile(content)) {
    fields.push('content-length', String(content.bytes));
    exchange.respond(status, fields, exchange.file === undefined);
    const onProgress = (): void => {
      exchange.progressMs = context.monotonic();
    };
    exchange.file?.send({ onProgress, pieceBytesMax });
    return;
  }
  if (status === 204 || status === 304) {
    exchange.respond(status, fields, true);
    return;
  }
  const text = content ?? '';
  const bytes = response.octets ?? (typeof text === 'string' ? Buffer.byteLength(text) : text.length);
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
  exchange.answerLease = lease;
  if (bytes > pieceBytesMax) {
    writePieces(stream, typeof text === 'string' ? Buffer.from(text) : text, () => {
      exchange.progressMs = context.monotonic();
    });
  } else if (typeof text === 'string') stream.end(text, bytes === text.length ? 'latin1' : 'utf8');
  else stream.end(text);
}

/** Sends a refusal without content, because flow control may let only a header section pass. */
function refuse(exchange: StreamExchange, response: Response): void {
  const refused = noRoom(exchange, response);
  exchange.respond(refused.status, [...answerFields(exchange, refused), 'content-length', '0'], true);
}

function answerFields({ context }: StreamExchange, response: Response): string[] {
  const date = context.formatDate(context.clock());
  return [...response.fields, ...context.fieldsOfAll, 'date', date];
}

/** Unless the client waits for the answer before it sends; or the answer is long, since nothing counts it while it waits. */
function leavesContentUnread(exchange: StreamExchange, { content }: Response): boolean {
  if (!exchange.announcesContent || exchange.stream.readableEnded || exchange.awaitsContinue) return false;
  return exchange.announcedBytes <= exchange.context.limits.unreadContentBytesMax && isShort(content);
}

/** @param act called when the content has ended, or at a limit */
function discardFirst(exchange: StreamExchange, act: () => void): void {
  const { stream, context } = exchange;
  let bytes = 0;
  const go = () => {
    if (exchange.onContentOver === undefined) return;
    exchange.onContentOver = undefined;
    discarding.stop();
    act();
  };
  const discarding = new Discarding(context, () => bytes, go);
  exchange.onContentOver = go;
  exchange.release();
  stream.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (discarding.isTooLong()) go();
  });
  stream.on('end', go);
  stream.on('close', go);
  stream.resume();
  discarding.start();
}

function endAfterAnswer(stream: MultiplexedStream): void {
  if (stream.writableFinished) stream.close(noError);
  else stream.once('finish', () => stream.close(noError));
}

function converse(exchange: StreamExchange, response: Response): void {
  if (exchange.converse === undefined) throw new Error('a conversation requires a request that opens one');
  exchange.held = true;
  openWebSocket(exchange, { ...response, fields: answerFields(exchange, response) }, exchange.converse);
  exchange.settle({ ...response, status: conversationStatus });
}

/**
 * Length of a piece of long content: one DATA frame of the usual size (RFC 9113 §4.2). node:http2 only reports that a
 * write has left, not its progress, and a slow client must be distinguished from one that receives nothing. A client
 * must receive one piece within the time limit for stalled responses.
 */
const pieceBytesMax = 16_384;

/** @param onProgress called when the client has received a piece, or its window has room for it */
function writePieces(stream: MultiplexedStream, bytes: Uint8Array, onProgress: () => void): void {
  let at = 0;
  const next = (error?: Error | null): void => {
    if (error != null || stream.closed || stream.destroyed) return;
    if (at > 0) onProgress();
    const piece = bytes.subarray(at, at + pieceBytesMax);
    at += piece.length;
    if (at < bytes.length) stream.write(piece, next);
    else stream.end(piece);
  };
  next();
}

// The interface of a stream of a multiplexed connection (RFC 9113 §5), on which exchange, content and responses are
// built. `ServerHttp2Stream` of node:http2 implements it; so must an adapter for HTTP/3, whose streams have the same
// life cycle (RFC 9114 §4.1).
//

/** Half-open: the end of the client's octets does not end the other direction. */
export type MultiplexedStream = Duplex & {
  /** The client sent no content. */
  readonly endAfterHeaders: boolean;
  readonly headersSent: boolean;
  /** It was reset before both sides ended. */
  readonly aborted: boolean;
  readonly closed: boolean;
  /** Sends the final header section: name, value ..., `:status` first. Throws if the stream is closed. */
  respond(fields: readonly string[], options?: { readonly endStream?: boolean }): void;
  /** Sends an interim one (1xx). */
  additionalHeaders(fields: Record<string, string | number>): void;
  /** Sends RST_STREAM; with NO_ERROR, after everything that was written. */
  close(code: number): void;
};

const noError = 0x0;
export const refusedStream = 0x7;
export const cancelled = 0x8;
export const connectError = 0xa;

// Converts the header section of an HTTP/2 request to the HTTP/1.1 form (RFC 9113 §8.3.1): `Host` from `:authority`,
// first; one Cookie from its crumbs (RFC 9113 §8.2.3). Order and values stay as received. A `host` that differs from
// `:authority` stays too, and the kernel refuses two Hosts.
//

export type Head = {
  readonly method: string;
  /** `:path`; for a plain CONNECT, which has none, `:authority`. */
  readonly target: string;
  readonly scheme: string;
  readonly authority: string | undefined;
  readonly protocol: string | undefined;
  /** Name, value ...; names in lower case. */
  readonly rawFields: readonly string[];
  /** Octets of the same request line and fields in HTTP/1.1, to which the limits of both protocols apply. */
  readonly bytes: number;
  /** A value begins or ends with white space, which makes the request malformed (RFC 9113 §8.2.1). */
  readonly padded: boolean;
};

/** `GET`, target, `HTTP/1.1`: two spaces, version, CRLF, and the empty line at the end. */
const lineBytes = 14;
const fieldBytes = 4;

/** @param raw name, value ... from node:http2: pseudo-header fields first */
export function readHead(raw: readonly string[]): Head {
  let method = '';
  let path: string | undefined;
  let scheme = '';
  let authority: string | undefined;
  let protocol: string | undefined;
  let index = 0;
  for (; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (name.charCodeAt(0) !== 0x3a) break;
    const value = raw[index + 1] ?? '';
    if (name === ':method') method = value;
    else if (name === ':path') path = value;
    else if (name === ':scheme') scheme = value;
    else if (name === ':authority') authority = value;
    else if (name === ':protocol') protocol = value;
  }
  const target = path ?? authority ?? '';
  const rawFields: string[] = authority === undefined ? [] : ['host', authority];
  let bytes =
    method.length + target.length + lineBytes + (authority === undefined ? 0 : authority.length + 8);
  let cookieAt = -1;
  let padded = false;
  for (; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    bytes += name.length + value.length + fieldBytes;
    padded ||= isSpace(value.charCodeAt(0)) || isSpace(value.charCodeAt(value.length - 1));
    if (name === 'cookie' && cookieAt >= 0) rawFields[cookieAt] += `; ${value}`;
    else if (name !== 'host' || authority === undefined || !isSame(value, authority)) {
      if (name === 'cookie') cookieAt = rawFields.length + 1;
      rawFields.push(name, value);
    }
  }
  return { method, target, scheme, authority, protocol, rawFields, bytes, padded };
}

function isSame(host: string, authority: string): boolean {
  return host === authority || host.toLowerCase() === authority.toLowerCase();
}

/** The code is NaN for an empty value. */
function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
