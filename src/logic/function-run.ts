/** One run of a function of an application on the main thread: its calls, its time, and how it ends. */

import { inspect } from 'node:util';
import type { Problem } from '../http/problem.ts';
import type { RunningFunction } from '../observe/running-function.ts';
import { StoreUnavailable } from '../store/store.ts';
import { FunctionFailed } from './function-failed.ts';
import { problemThrown } from './refusal.ts';
import { CallWatch } from './transaction/calls.ts';

/** The time that a function has, and the setting that says so. */
export type TimeLimit = { readonly ms: number; readonly setting: string };

/** Runs until it is settled or fails, whichever is first; then it is over. */
export class FunctionRun implements RunningFunction {
  readonly named: string;
  readonly #begunMs = performance.now();
  #watch: CallWatch | undefined;
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #reject: ((error: unknown) => void) | undefined;

  constructor(named: string) {
    this.named = named;
  }

  /** Most hooks make no call. */
  get watch(): CallWatch {
    this.#watch ??= new CallWatch(this.named);
    return this.#watch;
  }

  /** It has begun a call that has not ended. */
  get isCalling(): boolean {
    return this.#watch?.isBusy === true;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  fail(error: unknown): boolean {
    if (this.#isOver) return false;
    this.#failure ??= { error };
    this.#reject?.(error);
    return true;
  }

  /**
   * Waits for the function and all of its calls.
   * @throws FunctionFailed when the time is over; the function cannot be stopped, but its calls are refused from then on. One that
   * never gave the turn back could not be interrupted by the timer, so its time is measured when it ends.
   */
  async settled<T>(running: T | Promise<T>, limit: TimeLimit): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const early = new Promise<never>((_, reject) => {
      this.#reject = reject;
      const leftMs = Math.max(0, this.#begunMs + limit.ms - performance.now());
      timer = setTimeout(() => reject(this.#lateFailure(limit)), leftMs);
    });
    try {
      const value = await Promise.race([this.#withCalls(running), early]);
      if (this.#failure !== undefined) throw this.#failure.error;
      this.failIfLate(limit);
      return value;
    } finally {
      clearTimeout(timer);
    }
  }

  /** @throws FunctionFailed if the time is over */
  failIfLate(limit: TimeLimit): void {
    if (performance.now() - this.#begunMs > limit.ms) throw this.#lateFailure(limit);
  }

  #lateFailure({ ms, setting }: TimeLimit): FunctionFailed {
    return new FunctionFailed(`${this.named} was not done within ${ms} ms (${setting})`);
  }

  async #withCalls<T>(running: T | Promise<T>): Promise<T> {
    const value = await running;
    await this.#watch?.settled();
    return value;
  }

  end(): void {
    this.#isOver = true;
  }
}

/** @throws FunctionFailed for everything but a refusal; StoreUnavailable */
export function problemOrFailure(error: unknown, named: string): Problem {
  const problem = problemThrown(error);
  if (problem !== undefined) return problem;
  if (error instanceof StoreUnavailable || error instanceof FunctionFailed) throw error;
  throw new FunctionFailed(`${named} failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}

// The argument of an application's functions: some members of a run, as if they were the object's own, so that a function may spread and
// print them. Most functions read a part of it, so a run makes each member when it is read, by an accessor of its class. In an object
// with accessors of its own each would have a hidden class of its own, too: 7 us for each write, most of it in collections.

/** The run of a function. */
export abstract class ShownRun {
  /** The argument of the function: `showing(...)(this)`. */
  abstract readonly given: object;

  /** For console.log, which finds this behind the proxy and calls it with the proxy. */
  [inspect.custom](): object {
    return { ...this };
  }
}

/** @returns shows the members of a run, and nothing else of it */
export function showing<Run extends ShownRun>(
  members: readonly (keyof Run & string)[],
): (run: Run) => object {
  const names: ReadonlySet<unknown> = new Set(members);
  const isShown = (name: unknown): name is keyof Run & string => names.has(name);
  const handler: ProxyHandler<Run> = {
    get: (run, name) => (isShown(name) ? run[name] : undefined),
    set(run, name, value) {
      if (isShown(name)) run[name] = value;
      return isShown(name);
    },
    has: (_run, name) => isShown(name),
    ownKeys: () => [...members],
    getOwnPropertyDescriptor: (run, name) =>
      isShown(name) ? { value: run[name], enumerable: true, configurable: true } : undefined,
  };
  return (run) => new Proxy(run, handler);
}
