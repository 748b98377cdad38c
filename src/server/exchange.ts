/** One request over HTTP/1.1 and its response, on node:http: the `Request` of the handler. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Response } from '../http/message.ts';
import { type RequestFields, readRequestFields } from '../http/request-fields.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { type Connection, connectionOf, type Received } from './connection.ts';
import type { ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { RequestUnderWay } from './request-under-way.ts';
import { sendAnswer } from './send-answer.ts';
import { closeInStages } from './unread-content.ts';

export class Exchange extends RequestUnderWay implements Received {
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
