/** HTTP/1.1 on node:http: one request and its response, which is the `Request` of the handler, and how requests are received. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { isFile, isStream, type Response } from '../http/message.ts';
import { isUnderstoodTransferCoding, type RequestFields, readRequestFields } from '../http/request-fields.ts';
import { forwardedCode } from '../observe/observation.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { ForwardCall } from '../tunnel/proxy-call.ts';
import { type Connection, connectionOf, type ReceivedRequest } from './connection.ts';
import type { ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { type FileSending, whenOpened } from './file-sending.ts';
import { deliver, fail, handleInTurn, problemAnswer } from './handle.ts';
import { keptContentBytesMax, textBytesMax, uncountedBytesMax, waitingAnswerBytes } from './limits.ts';
import { capOpen, hasRoomFor, inOctets, isShort, noRoom, openStream } from './open-stream.ts';
import { RequestUnderWay } from './request-under-way.ts';
import { closeInStages, UnreadContent } from './unread-content.ts';

class Exchange extends RequestUnderWay implements ReceivedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  #isTaken = false;

  constructor(context: Context, connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse) {
    super(context, connection);
    this.method = incoming.method ?? '';
    this.target = incoming.url ?? '';
    this.version = incoming.httpVersion;
    this.rawFields = incoming.rawHeaders;
    this.fields = readRequestFields(incoming.rawHeaders);
    this.incoming = incoming;
    this.outgoing = outgoing;
  }

  get announcesContent(): boolean {
    return this.fields.transferEncoding !== undefined || this.announcedBytes > 0;
  }

  protected get contentSource(): ContentSource | undefined {
    return this.incoming.destroyed ? undefined : this.incoming;
  }

  /**
   * Short content comes with the header section: it is there without listeners, timers and a turn, but node:http says that it is complete
   * only afterwards.
   */
  protected override takeWhole(bytesMax: number): Uint8Array | undefined {
    const { incoming } = this;
    const { complete, readableLength } = incoming;
    if (readableLength === 0 || readableLength > bytesMax) return undefined;
    if (!complete && readableLength !== this.announcedBytes) return undefined;
    this.#isTaken = true;
    return incoming.read(readableLength);
  }

  protected writeContinue(): void {
    this.outgoing.writeContinue();
  }

  inform(status: number, fields: readonly string[]): void {
    if (this.version === '1.0' || this.outgoing.headersSent || this.isGone) return;
    this.outgoing.writeInformation(status, [...fields]);
  }

  get sentStatus(): number | undefined {
    return this.outgoing.headersSent ? this.outgoing.statusCode : undefined;
  }

  get sink(): ServerResponse {
    return this.outgoing;
  }

  get isGone(): boolean {
    return this.outgoing.destroyed || this.connection.socket.destroyed;
  }

  send(response: Response): void {
    this.leaveContent();
    // The stream of content that was taken has its end still in it, which node:http waits for before it forgets the request.
    if (this.#isTaken) this.incoming.resume();
    sendAnswer(this, response);
  }

  cut(): void {
    this.outgoing.destroy();
  }

  /** A client that closes its sending side has left: for a reader of events it means nothing else. */
  override holdOpen(onLeft: () => void): void {
    super.holdOpen(onLeft);
    this.connection.streaming = true;
    this.connection.socket.on('end', onLeft);
    this.outgoing.flushHeaders();
  }

  override letGo(onLeft: () => void): void {
    super.letGo(onLeft);
    this.connection.streaming = false;
    this.connection.socket.off('end', onLeft);
  }

  endForGood(): void {
    const { outgoing, connection } = this;
    connection.closing = true;
    outgoing.once('finish', () => connection.socket.destroySoon());
    outgoing.end();
  }
}

/**
 * A request whose socket node:http has detached for an Upgrade or a CONNECT, and its response. Modes:
 *
 * - waiting: earlier requests on the connection still need their responses (RFC 9112 §9.3.2), which `whenOwedAreSent`
 *   waits for. node:http hands the socket over before that.
 * - answering: the socket is assigned to a response of its own.
 * - answered: by an ordinary response, which is the last one; then our FIN; later octets are discarded for a while.
 * - taken: the socket belongs to the new protocol.
 */
export class DetachedExchange extends Exchange {
  /** Switches the protocol as the response asks; false if it did not. */
  readonly #become: (exchange: DetachedExchange, response: Response) => boolean;

  constructor(
    context: Context,
    incoming: IncomingMessage,
    become: (exchange: DetachedExchange, response: Response) => boolean = () => false,
  ) {
    const connection = connectionOf(incoming.socket, context.monotonic);
    super(context, connection, incoming, answerOn(context, incoming));
    this.#become = become;
    connection.last = this;
    this.begin();
  }

  override send(response: Response): void {
    if (!this.#become(this, response)) super.send({ ...response, close: true });
  }

  /** Detaches the socket from the response that it was assigned to. */
  take(): Socket {
    const { outgoing, connection } = this;
    const { socket } = connection;
    outgoing.detachSocket(socket);
    exemptFromTimeouts(connection);
    return socket;
  }
}

/** Calls back after all earlier responses: in this turn if there are none; never if the connection ends with them. */
export function whenOwedAreSent(connection: Connection, act: () => void): void {
  const { last } = connection;
  const go = () => {
    if (!connection.closing && connection.socket.writable) act();
  };
  if (connection.closing) return;
  if (last === undefined || last.outgoing.writableFinished) go();
  else last.outgoing.once('finish', go);
}

/** A response on a socket that node:http no longer tracks; its end closes the connection. */
export function answerOn(context: Context, incoming: IncomingMessage): ServerResponse {
  const { socket } = incoming;
  const outgoing = ownEmitter(new ServerResponse(incoming), ignoreError);
  outgoing.assignSocket(socket);
  // The listeners of node:http are removed, so `sweepConnections` (listener.ts) detects stalls instead.
  socket.setTimeout(0);
  socket.on('timeout', destroy);
  outgoing.once('finish', () => closeInStages(context, socket));
  return outgoing;
}

function exemptFromTimeouts(connection: Connection): void {
  const { socket } = connection;
  connection.closing = true;
  // Under way until it closes: a drain waits for it, and cuts it at its bound.
  connection.streaming = true;
  connection.underWay += 1;
  // The request would otherwise stay in memory for as long as the socket lives.
  connection.last = undefined;
  socket.setTimeout(0);
  socket.off('timeout', destroy);
}

function destroy(this: Socket): void {
  this.destroy();
}

// Sends a response over HTTP/1.1, exactly once: the status line and fields in one `writeHead` from a flat list, then
// the content in one `end`. Only this file adds Content-Length, Connection, Date and the fields of all answers. Date comes from the
// program's own clock: that of node:http lags under load, and Last-Modified must not be later (RFC 9110 §8.8.2.1).
//
// 204 and 304 have neither content nor Content-Length (RFC 9110 §15.3.5, §15.4.5); a response to HEAD has the
// Content-Length of the content that it does not send. ASCII text is written as latin1: one copy less than UTF-8.
//

/** The refusal of a conversation if the connection stays HTTP, as in a server without Upgrade. */
const declined =
  'the connection cannot be upgraded: the request has content, or the server does not support Upgrade';

function sendAnswer(exchange: Exchange, answer: Response): void {
  const response = declineConversation(exchange, capOpen(exchange, answer));
  if (isFile(response.content)) {
    whenOpened(exchange, response, (opened, file) => write(exchange, opened, { file }));
    return;
  }
  if (!followsContent(exchange, response)) {
    write(exchange, response);
    return;
  }
  const { context, connection, incoming, outgoing } = exchange;
  const rest = new UnreadContent(context, connection);
  exchange.release();
  rest.awaitContent(incoming, () => {
    if (outgoing.destroyed || connection.socket.destroyed) {
      exchange.settle(response);
      return;
    }
    try {
      write(exchange, response, { rest });
    } catch (error) {
      fail(exchange, error);
    }
  });
}

/**
 * @param rest what already discards the content of the request
 * @param file the content of the response, opened
 */
function write(
  exchange: Exchange,
  answer: Response,
  { rest, file }: { readonly rest?: UnreadContent; readonly file?: FileSending | undefined } = {},
): void {
  const { context, connection, outgoing } = exchange;
  const response = withinMemory(exchange, answer);
  const { status } = response;
  const content = inOctets(response.content);
  // Spread, not concat: 45 ns against 150 (measured on 10 members).
  const date = context.formatDate(context.clock());
  const fields = [...response.fields, ...context.fieldsOfAll, 'Date', date];
  const unread = exchange.announcesContent && !exchange.incoming.complete;
  const closes =
    (unread && isLongOrRead(exchange)) ||
    response.close === true ||
    connection.reserved ||
    // node:http keeps the connection if the response has its own Connection field, as 426 does (RFC 9112 §9.6).
    !outgoing.shouldKeepAlive ||
    ((connection.closing || context.draining) && connection.last === exchange);
  if (closes) {
    connection.closing = true;
    addClose(fields);
  }
  if (unread) discardRest(exchange, closes, rest);
  if (isStream(content)) {
    if (exchange.version === '1.0') outgoing.removeHeader('Transfer-Encoding');
    outgoing.writeHead(status, fields);
    if (response.headOnly === true) outgoing.end();
    else openStream(exchange, content);
  } else if (isFile(content)) {
    fields.push('Content-Length', String(content.bytes));
    outgoing.writeHead(status, fields);
    if (file === undefined) outgoing.end();
    else file.send();
  } else if (status === 204 || status === 304) {
    outgoing.writeHead(status, fields);
    outgoing.end();
  } else {
    const text = content ?? '';
    const bytes = response.octets ?? (typeof text === 'string' ? Buffer.byteLength(text) : text.length);
    const encoding = typeof text === 'string' && bytes === text.length ? 'latin1' : 'utf8';
    fields.push('Content-Length', String(bytes));
    outgoing.writeHead(status, fields);
    if (response.headOnly === true) outgoing.end();
    else if (typeof text !== 'string' && 'encrypted' in connection.socket) endInPieces(outgoing, text);
    else outgoing.end(text, encoding);
    // Not counted if the socket accepted it at once.
    if (bytes > uncountedBytesMax && outgoing.writableLength > 0) holdUntilSent(exchange, text);
  }
  exchange.settle(response);
}

function addClose(fields: string[]): void {
  const at = fields.indexOf('Connection');
  if (at === -1) fields.push('Connection', 'close');
  else fields[at + 1] = `${fields[at + 1]}, close`;
}

/** The response, or 503 if the memory budget has no room for it. */
function withinMemory(exchange: Exchange, response: Response): Response {
  const { content } = response;
  if (content === null || isStream(content) || isFile(content)) return response;
  if (content.length <= uncountedBytesMax) return response;
  return hasRoomFor(exchange, content) ? response : noRoom(exchange, response);
}

/** Counts until it is sent: the octets, once if other responses share them, and the overhead of a waiting response. */
function holdUntilSent(exchange: Exchange, content: string | Uint8Array): void {
  const lease = exchange.context.memory.budget.lease('answers', exchange.memoryHolder);
  const isShared = typeof content !== 'string' && lease.growShared(content);
  lease.set(waitingAnswerBytes + (isShared ? 0 : content.length));
  exchange.outgoing.once('close', () => lease.release());
}

/** TLS copies its input, so it gets no more at once than a client may leave waiting. */
function endInPieces(outgoing: Exchange['outgoing'], bytes: Uint8Array): void {
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
 * True if the connection must end because unread content lies before the next request. A short remainder is discarded, and
 * the connection stays usable.
 */
function isLongOrRead({ context, reading, awaitsContinue, fields, announcedBytes }: Exchange): boolean {
  if (reading !== undefined || awaitsContinue || fields.transferEncoding !== undefined) return true;
  return announcedBytes > Math.min(keptContentBytesMax, context.limits.unreadContentBytesMax);
}

/**
 * Unless the client waits for the answer before it sends, or what follows its header section cannot be understood; or the answer is long, since
 * nothing counts it while it waits.
 */
function followsContent(exchange: Exchange, { content, close, code }: Response): boolean {
  const { context, connection, incoming, awaitsContinue, announcesContent, announcedBytes } = exchange;
  if (!context.behindProxy || !announcesContent || incoming.complete || incoming.destroyed) return false;
  // Responses other than 413 close because the framing is lost, or because the content does not come (408).
  const closes = connection.closing || (close === true && code !== 'content_too_large');
  if (closes || awaitsContinue || !isShort(content)) return false;
  return isLongOrRead(exchange) && announcedBytes <= context.limits.unreadContentBytesMax;
}

function discardRest(
  { context, connection, incoming }: Exchange,
  closes: boolean,
  rest = new UnreadContent(context, connection),
): void {
  if (closes) rest.closeAfter(incoming);
  else rest.keep(incoming);
}

/** Refuses a conversation; a connection that can become a WebSocket never comes here. */
function declineConversation(exchange: Exchange, response: Response): Response {
  if (response.conversation === undefined) return response;
  const refused = problemAnswer({ code: 'handshake_invalid', message: declined }, exchange);
  return response.route === undefined ? refused : { ...refused, route: response.route };
}

// Receives a request over HTTP/1.1, refuses invalid framing, and has it handled.
//
// Refused here is what no resource may see, because the following octets may not be the next request: versions other
// than 1.0 and 1.1 (node:http accepts `HTTP/2.0` in a request line, and llhttp one without a version as HTTP/0.9 with
// fields), and Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1). The kernel refuses unsupported transfer codings, and
// nothing after them is read; it also judges Host, Expect and the target.
//

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
