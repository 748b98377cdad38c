/**
 * The calls of a handler in its thread: each is a message to the program. The number of
 * concurrent calls of a run is bounded; further ones wait here, bounded by the thread's heap.
 */
import { ResourceRefused } from '../../config/senders.ts';
import { FunctionFailed } from '../function-failed.ts';
import { type Calls, CallWatch, callsOver } from '../transaction/calls.ts';
import type { ResourceCall } from '../transaction/resource-call.ts';
import type { FromThread, Refusal } from './handler-protocol.ts';

const callsUnderWayMax = 64;

type Waiting = {
  readonly call: ResourceCall;
  readonly resolve: (text: string | undefined) => void;
  readonly reject: (error: Error) => void;
};

export class ThreadCalls {
  readonly given: Calls;
  readonly #watch = new CallWatch('the function');
  readonly #run: number;
  readonly #post: (message: FromThread) => void;
  readonly #underWay = new Map<number, Waiting>();
  readonly #waiting: Waiting[] = [];
  #seq = 0;
  #over = false;

  constructor(run: number, post: (message: FromThread) => void) {
    this.#run = run;
    this.#post = post;
    this.given = callsOver((call) => this.#call(call), this.#watch);
  }

  /** Waits, after the handler returned, for calls that it did not await. Rejects if one of them failed. */
  settled(): Promise<void> {
    return this.#watch.settled();
  }

  /** Refuses all further calls. */
  end(): void {
    this.#over = true;
    for (const { reject } of [...this.#underWay.values(), ...this.#waiting]) reject(isOver());
    this.#underWay.clear();
    this.#waiting.length = 0;
  }

  result(seq: number, text: string | undefined): void {
    this.#take(seq)?.resolve(text);
    this.#next();
  }

  refused(seq: number, { code, message, status, pointer, isMistake }: Refusal): void {
    const error =
      isMistake === true ? new FunctionFailed(message) : new ResourceRefused(code, message, status, pointer);
    this.#take(seq)?.reject(error);
    this.#next();
  }

  #call(call: ResourceCall): Promise<string | undefined> {
    if (this.#over) return Promise.reject(isOver());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    while (this.#underWay.size < callsUnderWayMax) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#seq += 1;
      this.#underWay.set(this.#seq, next);
      this.#post({ kind: 'call', run: this.#run, seq: this.#seq, call: next.call });
    }
  }

  #take(seq: number): Waiting | undefined {
    const found = this.#underWay.get(seq);
    this.#underWay.delete(seq);
    return found;
  }
}

function isOver(): ResourceRefused {
  return new ResourceRefused('request_timeout', 'the time for this message is over, or it was handled', 408);
}
