/**
 * The states of an HTTP/2 connection (RFC 9113 §9.1):
 *
 * - open: streams are accepted. Without any, it stays open for the time limit of a header section, then for
 *   `keepAliveTimeoutMs` after the last stream.
 * - closing: GOAWAY was sent; open streams are completed, further ones refused. A client that does not close its side
 *   is cut after `unreadContentTimeoutMs`.
 * - closed: the socket is gone.
 *
 * A GOAWAY that only warns (RFC 9113 §6.8) cannot be sent: nghttp2 accepts no stream after the one that node lets it
 * send. By the last stream identifier a client learns that a later stream was not processed and can be retried.
 */
import type { ServerHttp2Session } from 'node:http2';
import type { Connection, Multiplexed } from '../connection.ts';
import type { Context } from '../context.ts';
import { cancelled, type MultiplexedStream } from './stream-exchange.ts';

type Watched = {
  readonly stream: MultiplexedStream;
  readonly waitsForClient: boolean;
  /** The client has not received anything of its response since `progressMs`. */
  readonly stalls: boolean;
  readonly progressMs: number;
  onClientEnded(): void;
  onClosed(): void;
};

/** A broken network is not the client's fault. */
const brokenNetwork: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED']);

export class Http2Connection implements Multiplexed {
  readonly connection: Connection;
  readonly #context: Context;
  readonly #session: ServerHttp2Session;
  readonly #open = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  #streams = 0;
  /** Octets received, and when that last changed: a client that is gone sends none. */
  #bytesRead = 0;
  #heardMs: number;
  #pinged = false;
  #clientEnded = false;

  constructor(context: Context, connection: Connection, session: ServerHttp2Session) {
    this.connection = connection;
    this.#context = context;
    this.#session = session;
    this.#heardMs = context.monotonic();
    connection.activeMs = this.#heardMs;
    session.on('error', (error: NodeJS.ErrnoException) => this.#report(error));
    connection.socket.once('close', () => clearTimeout(this.#timer));
    // The sockets are half-open: nothing else would act on it.
    connection.socket.once('end', () => this.#onClientEnded());
    this.#lookIn(context.limits.headersTimeoutMs);
  }

  get idle(): boolean {
    return this.#open.size === 0;
  }

  add(watched: Watched): void {
    this.#streams += 1;
    this.#open.add(watched);
    if (this.#streams === 1) this.#lookIn(this.#context.limits.keepAliveTimeoutMs);
    watched.stream.on('close', () => {
      this.#open.delete(watched);
      watched.onClosed();
      if (this.connection.reserved) this.close();
      this.connection.activeMs = this.#context.monotonic();
    });
  }

  sweep(nowMs: number): void {
    const { answerStallTimeoutMs } = this.#context.limits;
    for (const { stream, stalls, progressMs } of this.#open) {
      if (stalls && nowMs - progressMs > answerStallTimeoutMs) stream.close(cancelled);
    }
    this.#pingIfSilent(nowMs);
  }

  close(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#session.close();
    this.#lookIn(this.#context.limits.unreadContentTimeoutMs);
  }

  /**
   * Requests still get their responses, as over HTTP/1.1, but streams that stay open end: no window updates can come.
   */
  #onClientEnded(): void {
    this.#clientEnded = true;
    for (const watched of this.#open) watched.onClientEnded();
    this.close();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#look, Math.ceil(ms)).unref();
  }

  readonly #look = (): void => {
    const { headersTimeoutMs, keepAliveTimeoutMs, unreadContentTimeoutMs } = this.#context.limits;
    if (this.#closing) {
      if (this.idle || this.#isStuck(unreadContentTimeoutMs)) this.connection.socket.destroy();
      else this.#lookIn(unreadContentTimeoutMs);
      return;
    }
    const boundMs = this.#streams === 0 ? headersTimeoutMs : keepAliveTimeoutMs;
    const leftMs = this.idle ? boundMs - (this.#context.monotonic() - this.connection.activeMs) : boundMs;
    if (leftMs > 0) this.#lookIn(leftMs);
    else this.close();
  };

  /**
   * No open stream has made progress for this long, nor can it: a sent response leaves only unread content, and a
   * client that has ended opens no window.
   */
  #isStuck(ms: number): boolean {
    const sinceMs = this.#context.monotonic() - ms;
    return [...this.#open].every(
      ({ waitsForClient, stalls, progressMs }) =>
        waitsForClient && (this.#clientEnded || !stalls) && progressMs < sinceMs,
    );
  }

  /**
   * Sends a PING if streams are open and nothing was received for the keep-alive time; TCP alone may take hours to
   * detect a dead peer.
   */
  #pingIfSilent(nowMs: number): void {
    const { keepAliveTimeoutMs, answerStallTimeoutMs } = this.#context.limits;
    const { bytesRead } = this.connection.socket;
    if (bytesRead !== this.#bytesRead || this.idle) {
      this.#bytesRead = bytesRead;
      this.#heardMs = nowMs;
      this.#pinged = false;
    } else if (this.#pinged) {
      if (nowMs - this.#heardMs > keepAliveTimeoutMs + answerStallTimeoutMs) this.connection.socket.destroy();
    } else if (nowMs - this.#heardMs > keepAliveTimeoutMs && !this.#session.destroyed) {
      this.#pinged = true;
      this.#session.ping(ignore);
    }
  }

  #report(error: NodeJS.ErrnoException): void {
    if (brokenNetwork.has(error.code)) return;
    const { observe } = this.#context;
    observe({ kind: 'http2-cut', peer: this.connection.peer, why: error.message });
  }
}

function ignore(): void {
  // A failed PING needs no action.
}
