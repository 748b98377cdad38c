/**
 * Records of Idempotency-Keys that must still be put right, because the store did not answer when it was tried
 * (idempotency.ts). Each is tried again until the store answers, or until its claim is so old that anyone may take it over.
 *
 * A request that brings such a key to this process puts it right first, so it is never told that itself is still running.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { memoryBounds } from '../memory/bounds.ts';
import { StoreUnavailable } from '../store/store.ts';

/** Between two rounds of tries: what a client on another process may be told 409 for once the store answers. */
const roundMs = 500;
/** What an answer waits for its key at most; a store that answers takes milliseconds. */
const waitMs = 1000;
/** Beyond these a key is left to its age. A request with one waits for the store, so there are hardly more. */
const keysMax = memoryBounds.unsettledKeys.entries;

type Waiting = { readonly since: number; readonly settle: () => Promise<unknown>; trying?: Promise<void> };

export class UnsettledKeys {
  readonly #clock: () => number;
  readonly #ageMs: number;
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  /** @param ageMs after which a claim is over by itself */
  constructor(clock: () => number, ageMs: number) {
    this.#clock = clock;
    this.#ageMs = ageMs;
  }

  /** Leaves it to the rounds. @param settle is called again while it rejects with StoreUnavailable */
  add(id: string, settle: () => Promise<unknown>): void {
    this.#keep(id, settle);
  }

  /** Tries at once and waits for it, but not for long; after that it is left to the rounds. */
  async settle(id: string, settle: () => Promise<unknown>): Promise<void> {
    const tried = this.#attempt(id, this.#keep(id, settle)).catch((error) => {
      if (!(error instanceof StoreUnavailable)) throw error;
    });
    await Promise.race([tried, pause(waitMs, undefined, { ref: false })]);
  }

  /** Puts the record right now, where one is waiting. @throws StoreUnavailable */
  async finish(id: string): Promise<void> {
    const entry = this.#waiting.get(id);
    if (entry !== undefined) await this.#attempt(id, entry);
  }

  #keep(id: string, settle: () => Promise<unknown>): Waiting {
    const before = this.#waiting.get(id)?.settle;
    const entry: Waiting = {
      since: this.#clock(),
      settle: before === undefined ? settle : () => before().then(settle),
    };
    if (this.#waiting.size < keysMax) this.#waiting.set(id, entry);
    this.#schedule();
    return entry;
  }

  #attempt(id: string, entry: Waiting): Promise<void> {
    entry.trying ??= entry
      .settle()
      .then(
        () => this.#forget(id, entry),
        (error) => {
          if (!(error instanceof StoreUnavailable)) this.#forget(id, entry);
          throw error;
        },
      )
      .finally(() => {
        delete entry.trying;
      });
    return entry.trying;
  }

  #forget(id: string, entry: Waiting): void {
    if (this.#waiting.get(id) === entry) this.#waiting.delete(id);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return;
    this.#timer = setTimeout(async () => {
      await this.#round();
      this.#timer = undefined;
      this.#schedule();
    }, roundMs);
    this.#timer.unref();
  }

  async #round(): Promise<void> {
    for (const [id, entry] of this.#waiting) {
      if (this.#clock() - entry.since > this.#ageMs) this.#forget(id, entry);
      else {
        try {
          await this.#attempt(id, entry);
        } catch {
          // The store does not answer yet: so neither will it for the others.
          return;
        }
      }
    }
  }
}
