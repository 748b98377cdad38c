/**
 * Content that is produced while it is sent (§6). Its states:
 *
 *   open      the producer writes; `false` tells it to wait, and what waits in memory is bounded: a reader too slow
 *             for the bound, or that takes nothing for `answerStallTimeoutMs`, is cut off, since an event stream can be
 *             resumed and memory cannot.
 *   ended     the producer said so; what it wrote is flushed, the connection lives on.
 *   left      the client went away, or closed its sending side, which from a reader of events means the same.
 *   drained   the server stops: the producer is told, the stream ends properly, and over HTTP/1.1 the connection
 *             after it.
 *
 * The producer's closing function is called once, in `left` and `drained`, and never in `ended`.
 */
import type { ContentSink, ContentStream, HeldMemory } from '../http/message.ts';
import type { MemoryLease } from '../memory/budget.ts';
import type { HeldStream } from './context.ts';
import type { RequestUnderWay } from './request-under-way.ts';

/** With less waiting, a client is ready for more. */
const readyBytesMax = 16 * 1024;

type Mode = 'open' | 'ended' | 'left' | 'drained';

/** Starts a stream whose status line and fields are written. */
export function openStream(exchange: RequestUnderWay, content: ContentStream): void {
  const stream = new OpenStream(exchange);
  stream.start(content);
}

class OpenStream implements ContentSink, HeldStream {
  readonly memory: HeldMemory;
  readonly #exchange: RequestUnderWay;
  readonly #lease: MemoryLease;
  #mode: Mode = 'open';
  #closeProducer: (() => void) | undefined;
  #onReady: (() => void) | undefined;
  /** The client has taken something since the last look. */
  #moved = false;
  #stillSinceMs: number | undefined;

  constructor(exchange: RequestUnderWay) {
    this.#exchange = exchange;
    this.#lease = exchange.context.memory.budget.lease('streams', exchange.memoryHolder);
    this.memory = {
      whenRoom: (octets, go) => this.#lease.whenRoom(octets, go),
      set: (octets) => this.#lease.set(octets),
      share: (octets) => this.#lease.share(octets),
    };
  }

  start(content: ContentStream): void {
    const { context } = this.#exchange;
    context.streams.add(this, this.#exchange.holder);
    this.#exchange.holdOpen(this.#onLeft);
    try {
      this.#closeProducer = content.open(this);
    } catch (error) {
      context.observe({ kind: 'failed', id: this.#exchange.id, error });
      this.#onLeft();
      return;
    }
    if (this.#mode === 'left' || this.#mode === 'drained') this.#tellProducer();
  }

  write(content: string | Uint8Array): boolean {
    if (this.#mode !== 'open') return false;
    const { sink, context } = this.#exchange;
    sink.write(content, this.#onFlushed);
    if (sink.writableLength <= context.limits.streamBufferBytesMax) return this.#isReady();
    this.#cutOff('full');
    return false;
  }

  #cutOff(why: 'full' | 'stalled'): void {
    const { context, peer, sink } = this.#exchange;
    context.observe({ kind: 'stream-cut', peer, why, waitingBytes: sink.writableLength });
    this.#onLeft();
  }

  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  end(): void {
    if (this.#mode !== 'open') return;
    this.#enter('ended');
    this.#exchange.sink.end();
  }

  /** A client that takes nothing would keep its place and the memory for ever; pieces are short (§6), so one that takes little moves. */
  sweep(nowMs: number): void {
    const { sink, context } = this.#exchange;
    if (this.#moved || this.#stillSinceMs === undefined || sink.writableLength === 0) {
      this.#moved = false;
      this.#stillSinceMs = nowMs;
    } else if (nowMs - this.#stillSinceMs > context.limits.answerStallTimeoutMs) this.#cutOff('stalled');
  }

  /** The server drains. */
  close(): void {
    if (this.#mode !== 'open') return;
    this.#enter('drained');
    this.#tellProducer();
    this.#exchange.endForGood();
  }

  /**
   * Asked of each write's callback, not of 'drain': when a message of several chunks fills its own buffer within one turn and the
   * socket then takes it all at once, node 26 answers false and never emits 'drain'.
   */
  readonly #onFlushed = (): void => {
    this.#moved = true;
    if (this.#mode === 'open' && this.#isReady()) this.#onReady?.();
  };

  #isReady(): boolean {
    const { sink } = this.#exchange;
    return sink.writableLength < readyBytesMax;
  }

  readonly #onLeft = (): void => {
    if (this.#mode !== 'open') return;
    this.#enter('left');
    this.#tellProducer();
    this.#exchange.cut();
  };

  #enter(mode: Mode): void {
    this.#mode = mode;
    this.#lease.release();
    this.#exchange.context.streams.delete(this);
    this.#exchange.letGo(this.#onLeft);
  }

  #tellProducer(): void {
    const close = this.#closeProducer;
    this.#closeProducer = undefined;
    close?.();
  }
}
