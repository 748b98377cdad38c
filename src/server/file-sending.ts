/**
 * Sends content that is read while it is sent (`ContentFile`), over any protocol. States:
 *
 * - opening: the reading is asked for, before the header section: a failure is answered 503 or 500.
 * - sending: a few pieces wait for the client, and no more are read meanwhile.
 * - over: all is sent; or the client left, which ends the reading; or the reading failed, which cuts the connection, so that what was sent
 *   does not look complete.
 *
 * Who is too slow is cut by its protocol, as for any response.
 */
import { Readable } from 'node:stream';
import { filePieceBytesMax, isFile, type Pieces, type Response } from '../http/message.ts';
import type { MemoryLease } from '../memory/budget.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { fail } from './handle.ts';
import { waitingAnswerBytes } from './limits.ts';
import { noRoom } from './open-stream.ts';
import type { RequestUnderWay } from './request-under-way.ts';

/** One piece that waits for the client, one that was read, and one that is being read. */
const heldPieces = 3;

/**
 * Has the content opened, if it is a file that is to be sent; other responses go on at once.
 * @param go sends the response; a failure in it is answered
 */
export function whenOpened(
  exchange: RequestUnderWay,
  response: Response,
  go: (response: Response, file: FileSending | undefined) => void,
): void {
  const { content } = response;
  if (!isFile(content) || response.headOnly === true || content.bytes === 0) {
    go(response, undefined);
    return;
  }
  const lease = exchange.context.memory.budget.lease('answers', exchange.memoryHolder);
  if (!lease.grow(waitingAnswerBytes + heldPieces * filePieceBytesMax)) {
    go(noRoom(exchange, response), undefined);
    return;
  }
  const give = async (): Promise<void> => {
    let file: FileSending | undefined;
    try {
      const pieces = await content.read(0, content.bytes);
      file = new FileSending(exchange, pieces, content.bytes, lease);
      if (exchange.isGone) exchange.settle(response);
      else go(response, file);
    } catch (error) {
      fail(exchange, error);
    }
    // Whatever went wrong before it began.
    if (file === undefined) lease.release();
    else if (!file.isSending) file.close();
  };
  void give();
}

type Listeners = {
  /** A piece has left, or begins to wait after none waited. */
  readonly onProgress?: () => void;
  /** Nothing more is read: all of it was, or it was ended. */
  readonly onOver?: () => void;
  readonly pieceBytesMax?: number;
  /** The sink passes pieces on, to one that may look at them later: they are not given back. */
  readonly passesOn?: boolean;
};

export class FileSending {
  readonly #exchange: RequestUnderWay;
  readonly #source: Pieces;
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #bytes: number;
  readonly #lease: MemoryLease;
  #listeners: Listeners = {};
  #wake: (() => void) | undefined;
  #isOver = false;
  isSending = false;

  constructor(exchange: RequestUnderWay, source: Pieces, bytes: number, lease: MemoryLease) {
    this.#exchange = exchange;
    this.#source = source instanceof Readable ? ownEmitter(source, ignoreError) : source;
    this.#pieces = this.#source[Symbol.asyncIterator]();
    this.#bytes = bytes;
    this.#lease = lease;
  }

  /** The client has everything that was read: a delay is not its own. */
  get waitsForReading(): boolean {
    return !this.#isOver && this.#exchange.sink.writableLength === 0;
  }

  /** Sends the content after the header section. */
  send(listeners: Listeners = {}): void {
    this.#listeners = listeners;
    this.isSending = true;
    this.#exchange.onGone(this.close);
    void this.#send();
  }

  /** Ends the reading, and gives back the memory. */
  readonly close = (): void => {
    this.#lease.release();
    if (this.#isOver) return;
    this.#finish();
    this.#flushed();
  };

  async #send(): Promise<void> {
    const { context, sink, id } = this.#exchange;
    let left = this.#bytes;
    try {
      while (left > 0) {
        const { done, value } = await this.#pieces.next();
        if (this.#hasEnded()) return;
        if (done === true) throw new Error(`the content of a response ended ${left} octets early`);
        left -= value.length;
        if (left < 0) throw new Error('the content of a response is longer than it was said to be');
        // Pieces of many files come in one turn of the event loop.
        await context.turns.next();
        await this.#write(value);
        if (this.#hasEnded()) return;
      }
      this.#finish();
      sink.end();
    } catch (error) {
      // What is read for a client that has left may fail because of that.
      if (this.#isOver) return;
      context.observe({ kind: 'failed', id, traceId: this.#exchange.traceId, error });
      this.close();
      this.#exchange.cut();
    }
  }

  /** The event comes in a later turn than the end of the socket, and until then each write would succeed. */
  #hasEnded(): boolean {
    if (!this.#isOver && this.#exchange.isGone) this.close();
    return this.#isOver;
  }

  #finish(): void {
    this.#isOver = true;
    // The iterator of a stream would end it only after the read that is under way.
    if (this.#source instanceof Readable) this.#source.destroy();
    else this.#pieces.return?.().catch(ignoreError);
    this.#listeners.onOver?.();
  }

  /** Resolves when less than a piece waits for the client. */
  async #write(bytes: Uint8Array): Promise<void> {
    const { sink } = this.#exchange;
    const { onProgress, pieceBytesMax = filePieceBytesMax, passesOn = false } = this.#listeners;
    const allFlushed = (): void => {
      if (!passesOn) this.#source.giveBack?.(bytes);
      this.#flushed();
    };
    for (let at = 0; at < bytes.length && !this.#isOver; at += pieceBytesMax) {
      if (sink.writableLength === 0) onProgress?.();
      const isLast = at + pieceBytesMax >= bytes.length;
      sink.write(bytes.subarray(at, at + pieceBytesMax), isLast ? allFlushed : this.#flushed);
      while (sink.writableLength >= pieceBytesMax && !this.#isOver) await this.#untilFlushed();
    }
  }

  #untilFlushed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return promise;
  }

  /** Called for each write and not on 'drain', which node 26 leaves out in some cases (open-stream.ts). */
  readonly #flushed = (): void => {
    this.#listeners.onProgress?.();
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  };
}
