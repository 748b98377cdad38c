/**
 * Reads the content of one request: counts octets as they arrive, and stops at the limit, at a timeout, when the memory
 * budget is used up, or when the client leaves. Content codings are decoded elsewhere. States:
 *
 * - waiting: listeners are on the stream, octets are kept.
 * - settled: the promise has its value, the listeners are removed and an unfinished stream is paused. The sender of the
 *   response decides about the rest (exchange.ts).
 */
import type { ReceivedContent } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { LoopTurns } from '../observe/event-loop.ts';
import { onEnd } from '../observe/own-emitter.ts';
import { type ServerLimits, uncountedBytesMax } from './limits.ts';

/** A long content is read in turns, some at a time: each socket that is read gives up to 2 MB at once. */
const readingsPerTurn = 8;

type ContentTurns = Pick<LoopTurns, 'nextOfBegun' | 'isSpent'>;

export type Watched = {
  check(nowMs: number): void;
  /** Its index in the list while it is watched. */
  place?: number | undefined;
};

/**
 * Enforces the time limits of all readings with one timer, which runs only while there are any: a timer for each POST
 * would cost more than most contents. The list is no set: a set that entries come and go from leaves its former tables,
 * with the requests in them, to the full collection.
 */
export class ContentWatch {
  readonly #watched: Watched[] = [];
  readonly #monotonic: () => number;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  readonly #turns: ContentTurns;
  /** Readings that wait for a turn, in order. */
  readonly #paused: (() => void)[] = [];

  constructor(
    turns: ContentTurns,
    { monotonic, intervalMs }: { readonly monotonic: () => number; readonly intervalMs: number },
  ) {
    this.#turns = turns;
    this.#monotonic = monotonic;
    this.#intervalMs = intervalMs;
  }

  add(reading: Watched): void {
    reading.place = this.#watched.push(reading) - 1;
    this.#timer ??= setInterval(() => this.#sweep(), this.#intervalMs).unref();
  }

  delete(reading: Watched): void {
    const { place } = reading;
    if (place === undefined) return;
    reading.place = undefined;
    const last = this.#watched.pop();
    if (last === undefined || last === reading) return;
    this.#watched[place] = last;
    last.place = place;
  }

  /** Joins a long content in a turn of the event loop: 64 of 4 MB that ended together held it for 94 ms. */
  inTurn(join: () => void): void {
    const turn = this.#turns.nextOfBegun();
    if (turn === undefined) join();
    else void turn.then(join);
  }

  /**
   * Called after a part of a long content was read: libuv reads all that has arrived at all sockets in one turn of the event loop, which 64
   * clients that sent 4 MB each held for 150 ms.
   * @param readOn called in a later turn if this one is spent @returns false: read nothing before
   */
  mayReadOn(readOn: () => void): boolean {
    if (this.#paused.length === 0) {
      if (!this.#turns.isSpent()) return true;
    }
    this.readLater(readOn);
    return false;
  }

  /** Reads on in a later turn, eight at a time. */
  readLater(readOn: () => void): void {
    if (this.#paused.length === 0) setImmediate(this.#readOn);
    this.#paused.push(readOn);
  }

  readonly #readOn = (): void => {
    for (const readOn of this.#paused.splice(0, readingsPerTurn)) readOn();
    if (this.#paused.length > 0) setImmediate(this.#readOn);
  };

  #sweep(): void {
    if (this.#watched.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = this.#monotonic();
    // A check may end its reading, which removes it from the list.
    for (const reading of [...this.#watched]) reading.check(nowMs);
  }
}

/** Shorter chunks are joined, so that content in chunks of one octet takes no more memory than in one. */
const joinedBytesMax = 4 * 1024;
const slabBytesMax = 64 * 1024;

/** Chunks of content that wait, in order. */
export class Chunks {
  readonly #chunks: Uint8Array[] = [];
  #slab: Uint8Array | undefined;
  #slabBytes = 0;

  /** @param bytes the octets so far: a slab is sized by what has arrived, so that slow senders take little memory */
  add(chunk: Uint8Array, bytes: number): void {
    if (chunk.length >= joinedBytesMax || (this.#chunks.length === 0 && this.#slab === undefined)) {
      this.#closeSlab();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#slab !== undefined && this.#slabBytes + chunk.length > this.#slab.length) this.#closeSlab();
    this.#slab ??= Buffer.allocUnsafe(Math.min(slabBytesMax, Math.max(joinedBytesMax, bytes)));
    this.#slab.set(chunk, this.#slabBytes);
    this.#slabBytes += chunk.length;
  }

  shift(): Uint8Array | undefined {
    if (this.#chunks.length === 0) this.#closeSlab();
    return this.#chunks.shift();
  }

  all(): readonly Uint8Array[] {
    this.#closeSlab();
    return this.#chunks;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#slab = undefined;
    this.#slabBytes = 0;
  }

  #closeSlab(): void {
    if (this.#slab === undefined) return;
    this.#chunks.push(this.#slab.subarray(0, this.#slabBytes));
    this.#slab = undefined;
    this.#slabBytes = 0;
  }
}
/** Longer content is joined in a turn of its own: a megabyte takes some 0.5 ms. */
const joinedAtOnceBytesMax = 1024 * 1024;

/** The message of node:http, or a multiplexed stream. */
export type ContentSource = {
  /** The client aborted: the end is not the end of the content (node ends the reading of a stream that was reset). */
  readonly aborted: boolean;
  readonly readableEnded: boolean;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  off(event: 'end' | 'close', listener: () => void): unknown;
  listenerCount(event: 'data'): number;
  pause(): unknown;
  resume(): unknown;
};

export class ContentReading implements Watched {
  readonly received: Promise<ReceivedContent>;
  place: number | undefined;
  readonly #incoming: ContentSource;
  readonly #bytesMax: number;
  readonly #watch: ContentWatch;
  readonly #limits: ServerLimits;
  readonly #startedMs: number;
  readonly #hold: (bytes: number) => boolean;
  readonly #withoutRoom: (bytes: number) => ReceivedContent;
  readonly #chunks = new Chunks();
  #bytes = 0;
  /** Octets counted so far; short content is not counted. */
  #heldBytes = 0;
  #resolve: ((received: ReceivedContent) => void) | undefined;

  constructor(
    incoming: ContentSource,
    options: {
      bytesMax: number;
      /** Counts octets in the memory budget; false: no room. */
      hold: (bytes: number) => boolean;
      /** The refusal of content of so many octets or more, which found no room. */
      withoutRoom: (bytes: number) => ReceivedContent;
      watch: ContentWatch;
      limits: ServerLimits;
      nowMs: number;
    },
  ) {
    this.#incoming = incoming;
    this.#bytesMax = options.bytesMax;
    this.#hold = options.hold;
    this.#withoutRoom = options.withoutRoom;
    this.#watch = options.watch;
    this.#limits = options.limits;
    this.#startedMs = options.nowMs;
    this.received = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    incoming.on('data', this.#onData);
    onEnd(incoming, this.#onEnd);
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
    else if (this.#bytes > uncountedBytesMax && !this.#countUpTo(this.#bytes))
      this.#settle(this.#withoutRoom(this.#bytes));
    else this.#chunks.add(chunk, this.#bytes);
    if (
      this.#bytes > uncountedBytesMax &&
      this.#resolve !== undefined &&
      !this.#watch.mayReadOn(this.#readOn)
    )
      this.#incoming.pause();
  };

  readonly #readOn = (): void => {
    if (this.#resolve !== undefined) this.#incoming.resume();
  };

  #countUpTo(bytes: number): boolean {
    const counted = this.#hold(bytes - this.#heldBytes);
    if (counted) this.#heldBytes = bytes;
    return counted;
  }

  readonly #onEnd = (): void => {
    if (this.#incoming.aborted) {
      this.fail('content_malformed');
      return;
    }
    const [first, ...further] = this.#chunks.all();
    if (first !== undefined && further.length === 0) this.#settle({ ok: true, bytes: first });
    // The chunks and their joined copy exist side by side until garbage collection.
    else if (this.#bytes > uncountedBytesMax && !this.#hold(this.#bytes))
      this.#settle(this.#withoutRoom(this.#bytes));
    else if (this.#bytes <= joinedAtOnceBytesMax) this.#settle(this.#joined());
    else {
      this.#detach();
      this.#watch.inTurn(() => this.#settle(this.#joined()));
    }
  };

  #joined(): ReceivedContent {
    return { ok: true, bytes: Buffer.concat(this.#chunks.all(), this.#bytes) };
  }

  /** A close without `end` before it: the client left, or the framing of its content is broken. */
  readonly #onClose = (): void => this.fail('content_malformed');

  #settle(received: ReceivedContent): void {
    if (this.#resolve === undefined) return;
    this.#detach();
    if (!received.ok) this.#incoming.pause();
    this.#chunks.clear();
    this.#resolve(received);
    this.#resolve = undefined;
  }

  #detach(): void {
    const incoming = this.#incoming;
    incoming.off('data', this.#onData);
    incoming.off('end', this.#onEnd);
    incoming.off('close', this.#onClose);
    this.#watch.delete(this);
  }
}
