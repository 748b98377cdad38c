/**
 * Content that is produced while it is sent (§6). Its states:
 *
 *   open      the producer writes; `false` tells it to wait, and what waits in memory is bounded: a reader too slow
 *             for the bound is cut off, since an event stream can be resumed and memory cannot.
 *   ended     the producer said so; what it wrote is flushed, the connection lives on.
 *   left      the client went away, or closed its sending side, which from a reader of events means the same.
 *   drained   the server stops: the producer is told, the stream ends properly, and the connection after it.
 *
 * The producer's closing function is called once, in `left` and `drained`, and never in `ended`.
 */
import type { ContentSink, ContentStream } from '../http/message.ts';
import type { Exchange } from './exchange.ts';

type Mode = 'open' | 'ended' | 'left' | 'drained';

/** Starts a stream whose status line and fields are written. */
export function openStream(exchange: Exchange, content: ContentStream): void {
  const stream = new OpenStream(exchange);
  stream.start(content);
}

class OpenStream implements ContentSink {
  readonly #exchange: Exchange;
  #mode: Mode = 'open';
  #closeProducer: (() => void) | undefined;
  #onReady: (() => void) | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  start(content: ContentStream): void {
    const { outgoing, connection, context } = this.#exchange;
    context.streams.add(this);
    connection.streaming = true;
    outgoing.on('close', this.#onLeft);
    connection.socket.on('end', this.#onLeft);
    outgoing.flushHeaders();
    try {
      this.#closeProducer = content.open(this);
    } catch (error) {
      context.observe({ kind: 'failed', id: this.#exchange.id, error });
      this.#onLeft();
      return;
    }
    if (this.#mode === 'left' || this.#mode === 'drained') this.#tellProducer();
  }

  write(text: string): boolean {
    if (this.#mode !== 'open') return false;
    const { outgoing, context } = this.#exchange;
    outgoing.write(text, this.#onFlushed);
    if (outgoing.writableLength <= context.limits.streamBufferBytesMax) return this.#isReady();
    context.observe({ kind: 'stream-cut', peer: this.#exchange.peer, waitingBytes: outgoing.writableLength });
    this.#onLeft();
    return false;
  }

  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  end(): void {
    if (this.#mode !== 'open') return;
    this.#enter('ended');
    this.#exchange.outgoing.end();
  }

  /** The server drains. */
  close(): void {
    if (this.#mode !== 'open') return;
    this.#enter('drained');
    this.#tellProducer();
    const { outgoing, connection } = this.#exchange;
    connection.closing = true;
    outgoing.once('finish', () => connection.socket.destroySoon());
    outgoing.end();
  }

  /**
   * Asked of each write's callback, not of 'drain': when a message of several chunks fills its own buffer within one turn and the
   * socket then takes it all at once, node 26 answers false and never emits 'drain'.
   */
  readonly #onFlushed = (): void => {
    if (this.#mode === 'open' && this.#isReady()) this.#onReady?.();
  };

  #isReady(): boolean {
    const { outgoing } = this.#exchange;
    return outgoing.writableLength < outgoing.writableHighWaterMark;
  }

  readonly #onLeft = (): void => {
    if (this.#mode !== 'open') return;
    this.#enter('left');
    this.#tellProducer();
    this.#exchange.outgoing.destroy();
  };

  #enter(mode: Mode): void {
    const { outgoing, connection, context } = this.#exchange;
    this.#mode = mode;
    context.streams.delete(this);
    connection.streaming = false;
    outgoing.off('close', this.#onLeft);
    connection.socket.off('end', this.#onLeft);
  }

  #tellProducer(): void {
    const close = this.#closeProducer;
    this.#closeProducer = undefined;
    close?.();
  }
}
