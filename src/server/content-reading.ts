/**
 * Reads the content of one request: counts octets as they come and stops at the limit at once, at a timeout, or when the
 * client goes away. Content codings are not undone here.
 *
 *   waiting   listeners are on the stream, chunks are kept;
 *   settled   the promise has its one value, the listeners are off and a stream that has more is paused. Whoever sends
 *             the answer decides what becomes of the rest (send-answer.ts).
 */
import type { ReceivedContent } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { ContentWatch, Watched } from './content-watch.ts';
import type { ServerLimits } from './limits.ts';

/** The message of node:http, or a multiplexed stream. */
export type ContentSource = {
  /** The client broke off: what looks like an end is none (node ends the reading of a stream that was reset). */
  readonly aborted: boolean;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  off(event: 'end' | 'close', listener: () => void): unknown;
  pause(): unknown;
};

export class ContentReading implements Watched {
  readonly received: Promise<ReceivedContent>;
  readonly #incoming: ContentSource;
  readonly #bytesMax: number;
  readonly #watch: ContentWatch;
  readonly #limits: ServerLimits;
  readonly #startedMs: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #resolve: ((received: ReceivedContent) => void) | undefined;

  constructor(
    incoming: ContentSource,
    options: { bytesMax: number; watch: ContentWatch; limits: ServerLimits; nowMs: number },
  ) {
    this.#incoming = incoming;
    this.#bytesMax = options.bytesMax;
    this.#watch = options.watch;
    this.#limits = options.limits;
    this.#startedMs = options.nowMs;
    this.received = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    incoming.on('data', this.#onData);
    incoming.on('end', this.#onEnd);
    incoming.on('close', this.#onClose);
    this.#watch.add(this);
  }

  fail(code: ProblemCode): void {
    this.#settle({ ok: false, code });
  }

  check(nowMs: number): void {
    const elapsedMs = nowMs - this.#startedMs;
    const { contentTimeoutMs, contentGraceMs, contentBytesPerSecondMin } = this.#limits;
    const tooSlow = elapsedMs > contentGraceMs && this.#bytes * 1000 < elapsedMs * contentBytesPerSecondMin;
    if (tooSlow || elapsedMs > contentTimeoutMs) this.fail('request_timeout');
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.fail('content_too_large');
    else this.#chunks.push(chunk);
  };

  readonly #onEnd = (): void => {
    if (this.#incoming.aborted) {
      this.fail('content_malformed');
      return;
    }
    const [first] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#settle({ ok: true, bytes });
  };

  /** Without `end` before it: the client went away, or the framing of its content broke. */
  readonly #onClose = (): void => this.fail('content_malformed');

  #settle(received: ReceivedContent): void {
    if (this.#resolve === undefined) return;
    const incoming = this.#incoming;
    incoming.off('data', this.#onData);
    incoming.off('end', this.#onEnd);
    incoming.off('close', this.#onClose);
    if (!received.ok) incoming.pause();
    this.#watch.delete(this);
    this.#chunks.length = 0;
    this.#resolve(received);
    this.#resolve = undefined;
  }
}
