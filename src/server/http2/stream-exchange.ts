/** One request on a stream of a multiplexed connection and its response: the `Request` of the handler. */
import { isStream, type Response } from '../../http/message.ts';
import { type RequestFields, readRequestFields } from '../../http/request-fields.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { ConverseOptions } from '../../realtime/websocket/converse.ts';
import type { Connection } from '../connection.ts';
import type { ContentSource } from '../content-reading.ts';
import type { Context, OpenSocket } from '../context.ts';
import { waitingAnswerBytes } from '../limits.ts';
import { capOpen, hasRoomFor, inOctets, isShort, noRoom, openStream } from '../open-stream.ts';
import { RequestUnderWay } from '../request-under-way.ts';
import { Discarding } from '../unread-content.ts';
import { cancelled, type MultiplexedStream, noError } from './multiplexed.ts';
import type { Head } from './read-head.ts';

export class StreamExchange extends RequestUnderWay implements StreamRequest {
  readonly method: string;
  /** Absolute if the request is for another server. */
  target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly protocol: string | undefined;
  readonly stream: MultiplexedStream;
  converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  held = false;
  onContentOver: (() => void) | undefined;
  progressMs: number;
  answerLease: MemoryLease | undefined;

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

  /** The response is sent: the client has to receive it or to end its content. */
  get waitsForClient(): boolean {
    return this.answered && !this.held;
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

/*
 * Sends a response on a multiplexed stream, exactly once: the fields of HTTP/1.1 (server/exchange.ts) without those of the
 * connection (RFC 9113 §8.2.2). `close` of the response is ignored: framing cannot break.
 *
 * A response that does not need the content is sent after it: the rest is read and discarded within the limits of
 * unread-content.ts, and at a limit the stream ends with NO_ERROR after the response (RFC 9113 §8.1). Clients of
 * node:http2, fetch over TLS among them, lose the connection to earlier ones: they count octets that they still had to
 * send on a closed stream against `maxSessionMemory` (10 MB) for ever, and take no header section while more are queued.
 */

/** RFC 8441 §5: the equivalent of 101 over HTTP/1.1. */
const conversationStatus = 200;

function sendOnStream(exchange: StreamRequest, answer: Response): void {
  const response = capOpen(exchange, answer);
  const { stream } = exchange;
  exchange.held = false;
  if (stream.closed || stream.destroyed) exchange.settle(response);
  else if (response.conversation !== undefined) converse(exchange, response);
  else if (leavesContentUnread(exchange, response))
    discardFirst(exchange, () => answerStream(exchange, response));
  else answerStream(exchange, response);
}

function answerStream(exchange: StreamRequest, response: Response): void {
  const { stream } = exchange;
  if (!stream.closed && !stream.destroyed) {
    write(exchange, response);
    if (exchange.announcesContent && !stream.readableEnded) endAfterAnswer(stream);
  }
  exchange.settle(response);
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
function refuse(exchange: StreamRequest, response: Response): void {
  const refused = noRoom(exchange, response);
  exchange.respond(refused.status, [...answerFields(exchange, refused), 'content-length', '0'], true);
}

function answerFields({ context }: StreamRequest, response: Response): string[] {
  const date = context.formatDate(context.clock());
  return [...response.fields, ...context.fieldsOfAll, 'date', date];
}

/** Unless the client waits for the answer before it sends; or the answer is long, since nothing counts it while it waits. */
function leavesContentUnread(exchange: StreamRequest, { content }: Response): boolean {
  if (!exchange.announcesContent || exchange.stream.readableEnded || exchange.awaitsContinue) return false;
  return exchange.announcedBytes <= exchange.context.limits.unreadContentBytesMax && isShort(content);
}

/** @param act called when the content has ended, or at a limit */
function discardFirst(exchange: StreamRequest, act: () => void): void {
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

function converse(exchange: StreamRequest, response: Response): void {
  const { context, peer } = exchange;
  const { conversation } = response;
  if (conversation === undefined || exchange.converse === undefined) {
    throw new Error('a conversation requires a request that opens one');
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

/** A request on a multiplexed stream (RFC 9113 §8.1), for the code that sends its response. */
type StreamRequest = RequestUnderWay & {
  readonly stream: MultiplexedStream;
  /** Turns the stream into a WebSocket; undefined if the client did not ask for one. */
  readonly converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  /** The stream is a WebSocket, a tunnel or an event stream: silence is not a stall. */
  held: boolean;
  /** Sends the response that waits for the end of the content. */
  onContentOver: (() => void) | undefined;
  /** Memory reserved for the response until the client has read it; released when the stream closes. */
  answerLease: MemoryLease | undefined;
  /** When the client last received something, on the monotonic clock. */
  progressMs: number;
  /** Sends the final header section. Throws if the stream is closed. */
  respond(status: number, fields: string[], endStream: boolean): void;
};
