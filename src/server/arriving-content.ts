/**
 * Gives the content of one request as it arrives, however long it is: chunks wait in a short queue, and a full queue stops the client. States:
 *
 * - flowing: octets are read into the queue, and a reader that finds none waits for them.
 * - full: the source is paused until the reader has taken most of the queue; the time does not count against the client.
 * - over: the content has ended or failed, which the reader learns after the last chunk, or the reader has left. The listeners are removed, and
 *   a source that has not ended is paused; the sender of the response decides about the rest (unread-content.ts).
 *
 * There is no limit to the whole time: a gigabyte over a slow line takes hours. In each window of `contentTimeoutMs` the client must keep the
 * minimal rate, and in the first one from `contentGraceMs` on.
 */
import { IncomingMessage } from 'node:http';
import { type ArrivingContent, ContentFailed } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { onEnd } from '../observe/own-emitter.ts';
import { Chunks, type ContentSource, type ContentWatch, type Watched } from './content-reading.ts';
import type { ServerLimits } from './limits.ts';

/** What waits for the reader; node:http and node:http2 hold at most as much again below a paused source. */
const queuedBytesMax = 128 * 1024;
/**
 * After so many octets, others have their turn: mostly after each read. 64 uploads that were hashed took 12 ms of a turn of the event loop so (99th
 * percentile), against 20 ms when each read on while the turn had time, and came a tenth faster.
 */
const turnBytesMax = 16 * 1024;
/** What one content may hold in memory. */
export const arrivingBytesMax = 2 * queuedBytesMax;

export class ArrivingReading implements Watched, ArrivingContent, AsyncIterator<Uint8Array> {
  place: number | undefined;
  readonly #incoming: ContentSource;
  readonly #bytesMax: number;
  readonly #watch: ContentWatch;
  readonly #limits: ServerLimits;
  readonly #chunks = new Chunks();
  #queuedBytes = 0;
  #bytes = 0;
  /** Octets read since its turn. */
  #turnBytes = 0;
  #isFull = false;
  #isOver = false;
  /** node:http made the chunks for this content, and no other listener has seen one. */
  #isOwn: boolean;
  /** What the reader has. */
  #given: Uint8Array | undefined;
  #failure: Problem | undefined;
  #waiting: PromiseWithResolvers<IteratorResult<Uint8Array>> | undefined;
  #windowMs: number;
  #windowBytes = 0;
  #isFirstWindow = true;
  #checkedMs: number;

  constructor(
    incoming: ContentSource,
    options: { bytesMax: number; watch: ContentWatch; limits: ServerLimits; nowMs: number },
  ) {
    this.#incoming = incoming;
    this.#isOwn = incoming instanceof IncomingMessage;
    this.#bytesMax = options.bytesMax;
    this.#watch = options.watch;
    this.#limits = options.limits;
    this.#windowMs = options.nowMs;
    this.#checkedMs = options.nowMs;
    incoming.on('data', this.#onData);
    onEnd(incoming, this.#onEnd);
    incoming.on('close', this.#onClose);
    this.#watch.add(this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#waiting !== undefined) throw new Error('the content of a request has one reader');
    this.#free();
    const value = this.#chunks.shift();
    if (value !== undefined) {
      this.#given = value;
      this.#queuedBytes -= value.length;
      if (this.#isFull && this.#queuedBytes <= queuedBytesMax / 2) {
        this.#isFull = false;
        this.#watch.readLater(this.#readOn);
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.#isOver) return this.#end();
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  /**
   * Gives the memory of the last chunk back. Left to the collector, an upload of 1 GiB took 68 collections of the whole heap and 4.2 s of
   * processor time; 1.5 s so (Node 26).
   */
  #free(): void {
    const chunk = this.#given;
    this.#given = undefined;
    if (chunk === undefined || !this.#isOwn || chunk.length < chunk.buffer.byteLength) return;
    if (chunk.buffer instanceof ArrayBuffer) chunk.buffer.transfer(0);
  }

  /** The reader leaves. */
  return(): Promise<IteratorResult<Uint8Array>> {
    this.leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Leaves the rest unread: the response is about to be sent. */
  leave(): void {
    this.#chunks.clear();
    this.#queuedBytes = 0;
    this.#finish();
  }

  fail(code: ProblemCode): void {
    if (this.#isOver) return;
    this.#failure = { code };
    this.#finish();
  }

  check(nowMs: number): void {
    const { contentTimeoutMs, contentGraceMs, contentBytesPerSecondMin } = this.#limits;
    if (this.#isFull) this.#windowMs += nowMs - this.#checkedMs;
    this.#checkedMs = nowMs;
    const elapsedMs = nowMs - this.#windowMs;
    if (elapsedMs <= (this.#isFirstWindow ? Math.min(contentGraceMs, contentTimeoutMs) : contentTimeoutMs))
      return;
    const bytes = this.#bytes - this.#windowBytes;
    const isSilent = bytes === 0 && elapsedMs > contentTimeoutMs;
    if (isSilent || bytes * 1000 < elapsedMs * contentBytesPerSecondMin) this.fail('request_timeout');
    else if (elapsedMs > contentTimeoutMs) {
      this.#windowMs = nowMs;
      this.#windowBytes = this.#bytes;
      this.#isFirstWindow = false;
    }
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#isOwn &&= this.#incoming.listenerCount('data') === 1;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) {
      this.fail('content_too_large');
      return;
    }
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      this.#given = chunk;
      waiting.resolve({ done: false, value: chunk });
    } else {
      this.#queuedBytes += chunk.length;
      this.#chunks.add(chunk, this.#queuedBytes);
      this.#isFull = this.#queuedBytes >= queuedBytesMax;
    }
    this.#turnBytes += chunk.length;
    if (!this.#isFull && this.#turnBytes < turnBytesMax) return;
    this.#incoming.pause();
    if (!this.#isFull) this.#watch.readLater(this.#readOn);
  };

  readonly #readOn = (): void => {
    this.#turnBytes = 0;
    if (!this.#isOver) this.#incoming.resume();
  };

  readonly #onEnd = (): void => {
    if (this.#incoming.aborted) this.fail('content_malformed');
    else this.#finish();
  };

  /** A close without `end` before it: the client left, or the framing of its content is broken. */
  readonly #onClose = (): void => this.fail('content_malformed');

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const incoming = this.#incoming;
    incoming.off('data', this.#onData);
    incoming.off('end', this.#onEnd);
    incoming.off('close', this.#onClose);
    this.#watch.delete(this);
    if (!incoming.readableEnded) incoming.pause();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(this.#end());
  }

  #end(): Promise<IteratorResult<Uint8Array>> {
    if (this.#failure !== undefined) return Promise.reject(new ContentFailed(this.#failure));
    return Promise.resolve({ done: true, value: undefined });
  }
}
