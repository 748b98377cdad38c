/**
 * Tells what outlives its request, such as an event stream, when the credential behind it is no longer good: because its time is over,
 * or because a row that it rests on has changed and it would not be admitted again as the same principal.
 *
 * Each credential is in one of two modes: *held*, from the first listener on, and *ended*, when the listeners have been told or
 * have gone. One timer serves the ends of all. After a change all that are held are looked at, a slice in each turn of the event
 * loop, and then none for `lookIntervalMs`: a busy table costs no more than that. Requests do not wait for this; they look for
 * themselves.
 */
import type { MaybePromise } from '../store/store.ts';
import type { Basis, Good, Verdict } from './verdict.ts';

/** A credential that something holds on to. */
export type Held = {
  readonly verdict: Good;
  /** Verifies it anew; undefined where nothing was kept to do so with, and any change ends it. */
  readonly again: (() => MaybePromise<Verdict>) | undefined;
};

type Holding = {
  /** As of the last look. */
  verdict: Good;
  readonly again: Held['again'];
  readonly listeners: Set<() => void>;
  /** Not looked at since it was held: something may have changed between its use and then. */
  isNew: boolean;
};

/** Least time from one look to the next, also when storage failed. */
const lookIntervalMs = 200;
/** Looked at in one turn of the event loop: half a millisecond of reads. */
const looksPerTurn = 64;
/** A timer takes no longer time. */
const timerMsMax = 2_147_483_647;

export class CredentialEnds {
  readonly #clock: () => number;
  readonly #holds: (basis: readonly Basis[]) => MaybePromise<boolean>;
  readonly #held = new Map<Good, Holding>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #rest: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isChanged = false;
  #isClosed = false;

  /** @param options.clock milliseconds since the epoch */
  constructor(options: {
    readonly clock: () => number;
    readonly holds: (basis: readonly Basis[]) => MaybePromise<boolean>;
  }) {
    this.#clock = options.clock;
    this.#holds = options.holds;
  }

  /** Calls back once, when it ends. @returns what stops that */
  add({ verdict, again }: Held, listener: () => void): () => void {
    const holding = this.#held.get(verdict) ?? { verdict, again, listeners: new Set(), isNew: true };
    this.#held.set(verdict, holding);
    // Wrapped, so that one listener added twice is called twice and stopped once.
    const call = (): void => listener();
    holding.listeners.add(call);
    holding.isNew = true;
    this.#lookSoon();
    this.#wakeAt(holding.verdict.expiresAt);
    return () => {
      holding.listeners.delete(call);
      if (holding.listeners.size === 0 && this.#held.get(verdict) === holding) this.#held.delete(verdict);
    };
  }

  /** Something may have changed. */
  look(): void {
    if (this.#held.size === 0) return;
    this.#isChanged = true;
    this.#lookSoon();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#rest);
    this.#held.clear();
  }

  #wakeAt(at: number): void {
    if (this.#isClosed || at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    const waitMs = Math.min(timerMsMax, Math.max(0, at - this.#clock()));
    this.#timer = setTimeout(() => void this.#endOnTime(), waitMs).unref();
  }

  #endOnTime(): Promise<void> {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock();
    return this.#judgeAll(({ verdict }) => verdict.expiresAt <= now);
  }

  /** Looks at what is new, and after a change at everything. */
  #lookSoon(): void {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    setImmediate(async () => {
      const isAll = this.#isChanged;
      this.#isChanged = false;
      await this.#judgeAll(({ isNew }) => isAll || isNew);
      if (!this.#isClosed) this.#rest = setTimeout(() => this.#lookAgain(), lookIntervalMs).unref();
    });
  }

  #lookAgain(): void {
    this.#isLooking = false;
    const isSomeNew = this.#held.values().some(({ isNew }) => isNew);
    if (this.#isChanged || isSomeNew) this.#lookSoon();
  }

  async #judgeAll(isDue: (holding: Holding) => boolean): Promise<void> {
    const due = [...this.#held].filter(([, holding]) => isDue(holding));
    for (let start = 0; start < due.length && !this.#isClosed; start += looksPerTurn) {
      if (start > 0) await new Promise((resolve) => setImmediate(resolve));
      const slice = due.slice(start, start + looksPerTurn);
      await Promise.all(slice.map(([key, holding]) => this.#judge(key, holding)));
    }
    for (const { verdict } of this.#held.values()) this.#wakeAt(verdict.expiresAt);
  }

  async #judge(key: Good, holding: Holding): Promise<void> {
    holding.isNew = false;
    if (await this.#isGood(holding)) return;
    this.#held.delete(key);
    // One that throws keeps no other from being told.
    for (const listener of holding.listeners) queueMicrotask(listener);
    holding.listeners.clear();
  }

  async #isGood(holding: Holding): Promise<boolean> {
    const { verdict, again } = holding;
    const isOver = this.#clock() >= verdict.expiresAt;
    try {
      if (!isOver && (await this.#holds(verdict.basis))) return true;
      const anew = again === undefined ? undefined : await again();
      if (anew === undefined || 'problem' in anew || !isSame(anew, verdict)) return false;
      holding.verdict = anew;
      return this.#clock() < anew.expiresAt;
    } catch {
      // Storage failed, which whoever asks it next tells: nothing is known, but what time has ended stays ended.
      this.#isChanged = true;
      return !isOver;
    }
  }
}

/** Whether whoever was admitted then is the same now, with the same rights: what is under way was begun under those. */
function isSame(one: Good, other: Good): boolean {
  return (
    one.principal.id === other.principal.id &&
    one.principal.audience === other.principal.audience &&
    one.session === other.session &&
    one.key === other.key
  );
}
