/**
 * Content that a response leaves unread. What arrives is read and discarded, which holds no memory. Over HTTP/1.1 the
 * connection closes in stages (RFC 9112 §9.6), because the kernel answers octets that arrive after a close with a reset,
 * which destroys the response in the client's buffer and becomes 502 in a proxy. Some proxies (Caddy, nghttpx) close
 * the connection of their client as soon as they have sent such a response; behind a proxy it follows the content. Modes of
 * such a connection:
 *
 * - awaiting: the response is ready and follows the content, or comes at a limit.
 * - answering: the response is being sent.
 * - kept: it is sent and little content is left; the connection stays open if that arrives in time.
 * - half-closed: it is sent, and our FIN; the connection closes when the content or the client's side has ended, or at a
 *   limit.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Connection, connectionOf, type Unread } from './connection.ts';
import type { Watched } from './content-reading.ts';
import type { Context } from './context.ts';

/** The limits of discarding: octets, silence, and the limits of time and rate for content that is read. */
export class Discarding implements Watched {
  place: number | undefined;
  readonly #context: Context;
  readonly #received: () => number;
  readonly #onLimit: () => void;
  readonly #firstByte: number;
  #bytes: number;
  #heardMs = 0;
  #startedMs = 0;

  /** @param received the octets received so far, from any start */
  constructor(context: Context, received: () => number, onLimit: () => void) {
    this.#context = context;
    this.#received = received;
    this.#onLimit = onLimit;
    this.#firstByte = received();
    this.#bytes = this.#firstByte;
  }

  start(): void {
    const { contentWatch, monotonic } = this.#context;
    this.#startedMs = monotonic();
    this.#heardMs = this.#startedMs;
    if (this.place === undefined) contentWatch.add(this);
  }

  stop(): void {
    this.#context.contentWatch.delete(this);
  }

  isTooLong(): boolean {
    return this.#received() - this.#firstByte > this.#context.limits.unreadContentBytesMax;
  }

  check(nowMs: number): void {
    const { limits, draining } = this.#context;
    const bytes = this.#received();
    if (bytes !== this.#bytes) this.#heardMs = nowMs;
    this.#bytes = bytes;
    const elapsedMs = nowMs - this.#startedMs;
    const elapsedMsMax = draining ? limits.unreadContentTimeoutMs : limits.contentTimeoutMs;
    const bytesMin = (elapsedMs * limits.contentBytesPerSecondMin) / 1000;
    const isSlow = elapsedMs > limits.contentGraceMs && bytes - this.#firstByte < bytesMin;
    const isSilent = nowMs - this.#heardMs > limits.unreadContentTimeoutMs;
    if (isSilent || isSlow || elapsedMs > elapsedMsMax || this.isTooLong()) this.#onLimit();
  }
}

export class UnreadContent implements Unread {
  readonly #connection: Connection;
  readonly #discarding: Discarding;
  #mode: 'awaiting' | 'answering' | 'kept' | 'half-closed' = 'answering';
  #isOver = false;
  #answer: (() => void) | undefined;

  constructor(context: Context, connection: Connection) {
    const { socket } = connection;
    this.#connection = connection;
    this.#discarding = new Discarding(context, () => socket.bytesRead, this.#onLimit);
    connection.unread = this;
    socket.once('close', this.#forget);
  }

  /** @param answer called when the content of this request has ended, or at a limit; then another mode follows */
  awaitContent(incoming: IncomingMessage, answer: () => void): void {
    this.#answer = answer;
    this.#enter('awaiting');
    incoming.on('data', () => this.onOctets());
    incoming.once('end', this.#onEnd);
    incoming.once('close', this.#onEnd);
    incoming.resume();
  }

  /** The connection stays open after the content of this request. */
  keep(incoming: IncomingMessage): void {
    this.#enter('kept');
    incoming.once('end', this.#onEnd);
    incoming.once('close', this.#onEnd);
  }

  /** The connection ends with the response to this request, whose content another part reads or discards. */
  closeInStages(): void {
    // node:http calls it at the end of the response.
    this.#connection.socket.destroySoon = this.halfClose;
  }

  /** The connection ends with the response to this request. */
  closeAfter(incoming: IncomingMessage): void {
    this.closeInStages();
    incoming.on('data', () => {
      this.onOctets();
      if (this.#isOver) incoming.pause();
    });
    incoming.once('end', this.#onEnd);
    incoming.resume();
  }

  readonly halfClose = (): void => {
    if (this.#mode === 'half-closed') return;
    this.#connection.closing = true;
    this.#enter('half-closed');
    // Our FIN must have left before the socket may go.
    this.#connection.socket.end(this.#closeIfOver);
  };

  onOctets(): void {
    if (!this.#discarding.isTooLong()) return;
    if (this.#mode === 'awaiting') this.#answerNow();
    else this.#end();
  }

  #answerNow(): void {
    this.#mode = 'answering';
    this.#discarding.stop();
    this.#answer?.();
  }

  #enter(mode: 'awaiting' | 'kept' | 'half-closed'): void {
    this.#mode = mode;
    this.#discarding.start();
  }

  readonly #onLimit = (): void => {
    if (this.#mode === 'awaiting') this.#answerNow();
    else if (this.#mode === 'kept') this.halfClose();
    else this.#connection.socket.destroy();
  };

  readonly #onEnd = (): void => {
    if (this.#mode === 'awaiting') {
      this.#forget();
      this.#answerNow();
    } else if (this.#mode === 'kept') this.#forget();
    else this.#end();
  };

  #end(): void {
    this.#isOver = true;
    this.#closeIfOver();
  }

  readonly #closeIfOver = (): void => {
    const { socket } = this.#connection;
    if (this.#isOver && socket.writableFinished) socket.destroy();
  };

  readonly #forget = (): void => {
    this.#discarding.stop();
    if (this.#connection.unread === this) this.#connection.unread = undefined;
    this.#connection.socket.off('close', this.#forget);
  };
}

/** Closes a connection that node:http does not close, after what was written to it. */
export function closeInStages(context: Context, socket: Socket): void {
  const connection = connectionOf(socket, context.monotonic);
  const unread = connection.unread ?? new UnreadContent(context, connection);
  unread.halfClose();
  socket.on('data', () => unread.onOctets());
  socket.resume();
}
