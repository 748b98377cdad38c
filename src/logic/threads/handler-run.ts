/**
 * One attempt of one message, in the program. It ends once, by the first of these events: the handler returns or fails,
 * its time passes, its thread ends, the store is unavailable, or the program stops. Later messages of the handler
 * change nothing.
 */
import { ResourceRefused } from '../../config/senders.ts';
import { problems } from '../../http/problem-registry.ts';
import type { Cause } from '../../model/actor.ts';
import { ignoreError } from '../../observe/own-emitter.ts';
import { MemoryUnavailable, StoreUnavailable } from '../../store/store.ts';
import { FunctionFailed } from '../function-failed.ts';
import type { Opening, Transaction } from '../transaction/resource-call.ts';
import {
  type Failure,
  type FileRead,
  failure,
  type HandedOn,
  type Refusal,
  type RunMessage,
  runBegun,
  runWaits,
  runWithdrawn,
  type Task,
  type ThreadCall,
} from './handler-protocol.ts';

type RunTransaction = Pick<Transaction, 'call' | 'unit' | 'openFile'>;

/** Each holds at most two pieces (filePieceBytesMax). */
export const openFilesMax = 16;

export type RunOptions = {
  readonly openTransaction: (caller: undefined, cause: Cause, how: Opening) => RunTransaction;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly monotonic: () => number;
};

function causeOfTask({ source, given }: Task): Cause {
  return {
    actor:
      given.kind === 'message' || given.kind === 'verify'
        ? { kind: 'handler', id: source }
        : { kind: given.kind, id: given.of },
  };
}

export class Run {
  readonly number: number;
  readonly task: Task;
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
  #transaction: RunTransaction;
  readonly #openTransaction: RunOptions['openTransaction'];
  readonly #settle: PromiseWithResolvers<HandedOn>;
  readonly #clock: () => number;
  readonly #monotonic: () => number;
  /** The files that the function reads, by the number of the reading. */
  readonly #files = new Map<number, AsyncIterator<Uint8Array>>();

  constructor(number: number, task: Task, { openTransaction, clock, monotonic }: RunOptions) {
    this.number = number;
    this.task = task;
    this.#clock = clock;
    this.#openTransaction = openTransaction;
    this.#transaction = openTransaction(undefined, causeOfTask(task), task);
    this.#settle = Promise.withResolvers();
    this.result = this.#settle.promise;
    this.#monotonic = monotonic;
  }

  get hasBegun(): boolean {
    return Atomics.load(this.#state, 0) === runBegun;
  }

  message(): RunMessage {
    return {
      kind: 'run',
      run: this.number,
      state: this.#state,
      given: this.task.given,
      now: this.#clock(),
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
    this.#closeFiles();
    this.#state = waits();
    this.#transaction = this.#openTransaction(undefined, causeOfTask(this.task), this.task);
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

  fail(failed: Failure): void {
    if (this.overSince !== undefined) return;
    this.#end();
    this.#settle.resolve(failed);
  }

  abort(): void {
    if (this.overSince !== undefined) return;
    this.#end();
    this.#settle.resolve({ outcome: 'aborted' });
  }

  /** @returns JSON text, octets of a file, or the refusal */
  async answer(
    call: ThreadCall,
  ): Promise<
    { result: string | Uint8Array<ArrayBuffer> | undefined } | { refusal: Refusal; error?: unknown }
  > {
    if (this.overSince !== undefined) return { refusal: isOver };
    const transaction = this.#transaction;
    try {
      return { result: call.do === 'read' ? await this.#read(call) : await transaction.call(call) };
    } catch (error) {
      if (error instanceof ResourceRefused) {
        const { code, message, status, pointer } = error;
        return { refusal: { code, message, status, pointer } };
      }
      if (error instanceof FunctionFailed) {
        const { message } = error;
        return { refusal: { code: 'internal', message, status: problems.internal.status, isMistake: true } };
      }
      const isCurrent = this.overSince === undefined && transaction === this.#transaction;
      if (error instanceof StoreUnavailable && isCurrent) {
        this.#end();
        if (error instanceof MemoryUnavailable) this.#settle.resolve({ outcome: 'aborted' });
        else this.#settle.reject(error);
      }
      const code = error instanceof StoreUnavailable ? 'unavailable' : 'internal';
      return {
        refusal: {
          code,
          message: 'Comity failed to carry out the call; the log has the reason',
          status: problems[code].status,
        },
        // The budget reports refusals itself, a second at a time.
        ...(error instanceof MemoryUnavailable ? {} : { error }),
      };
    }
  }

  async #read({ reading, file }: FileRead): Promise<Uint8Array<ArrayBuffer> | undefined> {
    let pieces = this.#files.get(reading);
    if (pieces === undefined) {
      if (this.#files.size >= openFilesMax)
        throw new FunctionFailed(`a function reads at most ${openFilesMax} files at a time`);
      pieces = this.#transaction.openFile(file)[Symbol.asyncIterator]();
      this.#files.set(reading, pieces);
    }
    const { done, value } = await pieces.next();
    if (done === true) {
      this.#files.delete(reading);
      return undefined;
    }
    // Transferred with its buffer, which others may share.
    return value.length === value.buffer.byteLength && value.buffer instanceof ArrayBuffer
      ? new Uint8Array(value.buffer)
      : new Uint8Array(value);
  }

  /** Ends a reading before its file does. */
  closeFile(reading: number): void {
    this.#files.get(reading)?.return?.().catch(ignoreError);
    this.#files.delete(reading);
  }

  #closeFiles(): void {
    for (const reading of this.#files.keys()) this.closeFile(reading);
  }

  #end(): void {
    this.#closeFiles();
    this.overSince = this.#monotonic();
    clearTimeout(this.#timer);
  }
}

const isOver: Refusal = {
  code: 'request_timeout',
  message: 'the time for this message is over',
  status: 408,
};

function waits(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
}
