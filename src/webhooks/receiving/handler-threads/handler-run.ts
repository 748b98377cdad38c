/**
 * One attempt of one message, in the program. It ends once, by the first of these events: the handler returns or fails,
 * its time passes, its thread ends, the store is unavailable, or the program stops. Later messages of the handler
 * change nothing.
 */
import { ResourceRefused } from '../../../config/handler.ts';
import { StoreUnavailable } from '../../../store/store.ts';
import {
  type Claimed,
  failure,
  type HandedOn,
  type OpenTransaction,
  type ResourceCall,
  type Transaction,
} from '../hand-on.ts';
import {
  type Failure,
  type Refusal,
  type RunMessage,
  runBegun,
  runWaits,
  runWithdrawn,
} from './handler-protocol.ts';

export class Run {
  readonly number: number;
  readonly claimed: Claimed;
  readonly result: Promise<HandedOn>;
  /** When it ended, in monotonic ms; undefined: it has not. */
  overSince: number | undefined;
  /** Number of threads that it was withdrawn from. */
  moves = 0;
  /** It gets a thread of its own: if that thread ends, this run is the cause. */
  isAlone = false;
  /** Its time is over, but another run may have kept the thread busy; decided when the thread responds or ends. */
  isOverdue = false;
  #state = waits();
  #timer: NodeJS.Timeout | undefined;
  #transaction: Transaction;
  readonly #openTransaction: OpenTransaction;
  readonly #settle: PromiseWithResolvers<HandedOn>;
  readonly #monotonic: () => number;

  constructor(number: number, claimed: Claimed, openTransaction: OpenTransaction, monotonic: () => number) {
    this.number = number;
    this.claimed = claimed;
    this.#openTransaction = openTransaction;
    this.#transaction = openTransaction();
    this.#settle = Promise.withResolvers();
    this.result = this.#settle.promise;
    this.#monotonic = monotonic;
  }

  get hasBegun(): boolean {
    return Atomics.load(this.#state, 0) === runBegun;
  }

  message(): RunMessage {
    const { received, content, attempt } = this.claimed;
    const { id, sender, dedupeKey, type, receivedAt } = received;
    const { contentType, contentEncoding, headers, body } = content;
    return {
      kind: 'run',
      run: this.number,
      state: this.#state,
      message: {
        id,
        sender,
        dedupeKey,
        type,
        receivedAt,
        attempt,
        contentType,
        contentEncoding,
        headers,
        body,
      },
    };
  }

  /** @returns false if the thread has begun it */
  withdraw(): boolean {
    if (Atomics.compareExchange(this.#state, 0, runWaits, runWithdrawn) !== runWaits) return false;
    this.#state = waits();
    this.moves += 1;
    return true;
  }

  /** Restarts the run after another run ended its thread: nothing is counted, and its writes are dropped. */
  restart(): void {
    clearTimeout(this.#timer);
    this.isOverdue = false;
    // A thread that cannot be terminated may still read its messages.
    Atomics.compareExchange(this.#state, 0, runWaits, runWithdrawn);
    this.#state = waits();
    this.#transaction = this.#openTransaction();
    this.moves += 1;
  }

  startTime(ms: number, onOver: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onOver, ms);
  }

  done(): void {
    if (this.overSince !== undefined) return;
    this.#end();
    try {
      this.#settle.resolve({ outcome: 'processed', unit: this.#transaction.unit(), statusCode: null });
    } catch (error) {
      this.#settle.resolve(failure('refused', String(error)));
    }
  }

  fail(error: Failure['error'] | 'timeout' | 'thread-ended', message: string, permanent = false): void {
    if (this.overSince !== undefined) return;
    this.#end();
    this.#settle.resolve(failure(error, message, permanent));
  }

  abort(): void {
    if (this.overSince !== undefined) return;
    this.#end();
    this.#settle.resolve({ outcome: 'aborted' });
  }

  /** @returns JSON text, or the refusal */
  async answer(
    call: ResourceCall,
  ): Promise<{ text: string | undefined } | { refusal: Refusal; error?: unknown }> {
    if (this.overSince !== undefined) return { refusal: isOver };
    const transaction = this.#transaction;
    try {
      const found = await transaction.call(call);
      return { text: found === undefined || typeof found === 'string' ? found : JSON.stringify(found) };
    } catch (error) {
      if (error instanceof ResourceRefused) return { refusal: { code: error.code, message: error.message } };
      const isCurrent = this.overSince === undefined && transaction === this.#transaction;
      if (error instanceof StoreUnavailable && isCurrent) {
        this.#end();
        this.#settle.reject(error);
      }
      const code = error instanceof StoreUnavailable ? 'unavailable' : 'internal';
      return {
        refusal: { code, message: 'Comity failed to carry out the call; the log has the reason' },
        error,
      };
    }
  }

  #end(): void {
    this.overSince = this.#monotonic();
    clearTimeout(this.#timer);
  }
}

const isOver: Refusal = { code: 'request_timeout', message: 'the time for this message is over' };

function waits(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}
