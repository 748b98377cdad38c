/**
 * Tells what outlives its request, such as an event stream, when the credential behind it is no longer good: because its time is over,
 * or because a row that it rests on has changed and it would not be admitted again as the same principal.
 *
 * Each credential is in one of two modes: *held*, from the first listener on, and *ended*, when the listeners have been told or
 * have gone. One timer serves the ends of all. After a change all that are held are looked at, a slice in each turn of the event
 * loop, and then none for ten times as long as that took, `restMsMax` at most: a busy table costs a tenth of the time. Requests do not wait
 * for this; they look for themselves.
 *
 * A commit of this process waits until the credentials that rest on the rows it changed have been looked at (`settle`), so a logout is
 * answered after its streams were cut.
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

/** Most time from one look to the next, and the time when storage failed. */
const restMsMax = 200;
/** Rest after a look, in times of what it took. */
const restFactor = 10;
/** Looked at in one turn of the event loop: half a millisecond of reads. */
const looksPerTurn = 64;
/** A timer takes no longer time. */
const timerMsMax = 2_147_483_647;

export class CredentialEnds {
  readonly #clock: () => number;
  readonly #holds: (basis: readonly Basis[]) => MaybePromise<boolean>;
  readonly #held = new Map<Good, Holding>();
  /** What is held, by each row that it rests on. */
  readonly #byRow = new Map<string, Set<Good>>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #rest: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isChanged = false;
  #hasFailed = false;
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
    this.#index(verdict, holding.verdict.basis);
    // Wrapped, so that one listener added twice is called twice and stopped once.
    const call = (): void => listener();
    holding.listeners.add(call);
    holding.isNew = true;
    this.#lookSoon();
    this.#wakeAt(holding.verdict.expiresAt);
    return () => {
      holding.listeners.delete(call);
      if (holding.listeners.size === 0 && this.#held.get(verdict) === holding) this.#forget(verdict, holding);
    };
  }

  /** Something may have changed. */
  look(): void {
    if (this.#held.size === 0) return;
    this.#isChanged = true;
    this.#lookSoon();
  }

  /** Resolves when everything that rests on one of the rows has been looked at, and its listeners told where it ended. */
  async settle(rows: Iterable<{ readonly table: string; readonly id: string }>): Promise<void> {
    if (this.#held.size === 0 || this.#isClosed) return;
    const due = new Set<Good>();
    for (const { table, id } of rows)
      for (const key of this.#byRow.get(rowName(table, id)) ?? []) due.add(key);
    if (due.size === 0) return;
    await this.#judgeThose([...due]);
    // Listeners write the ends of their streams in this turn of the event loop; what is answered after it comes behind them.
    if ([...due].some((key) => !this.#held.has(key))) await new Promise((resolve) => setImmediate(resolve));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#rest);
    this.#held.clear();
    this.#byRow.clear();
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
      const begun = performance.now();
      await this.#judgeAll(({ isNew }) => isAll || isNew);
      if (this.#isClosed) return;
      const tookMs = performance.now() - begun;
      const restMs = this.#hasFailed ? restMsMax : Math.min(restMsMax, tookMs * restFactor);
      this.#hasFailed = false;
      this.#rest = setTimeout(() => this.#lookAgain(), restMs).unref();
    });
  }

  #lookAgain(): void {
    this.#isLooking = false;
    const isSomeNew = this.#held.values().some(({ isNew }) => isNew);
    if (this.#isChanged || isSomeNew) this.#lookSoon();
  }

  async #judgeAll(isDue: (holding: Holding) => boolean): Promise<void> {
    await this.#judgeThose([...this.#held].filter(([, holding]) => isDue(holding)).map(([key]) => key));
    for (const { verdict } of this.#held.values()) this.#wakeAt(verdict.expiresAt);
  }

  async #judgeThose(keys: readonly Good[]): Promise<void> {
    for (let start = 0; start < keys.length && !this.#isClosed; start += looksPerTurn) {
      if (start > 0) await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(keys.slice(start, start + looksPerTurn).map((key) => this.#judge(key)));
    }
  }

  async #judge(key: Good): Promise<void> {
    const holding = this.#held.get(key);
    if (holding === undefined) return;
    holding.isNew = false;
    if (await this.#isGood(key, holding)) return;
    this.#forget(key, holding);
    // One that throws keeps no other from being told.
    for (const listener of holding.listeners) queueMicrotask(listener);
    holding.listeners.clear();
  }

  #index(key: Good, basis: readonly Basis[]): void {
    for (const { table, id } of basis) {
      const name = rowName(table, id);
      const keys = this.#byRow.get(name);
      if (keys === undefined) this.#byRow.set(name, new Set([key]));
      else keys.add(key);
    }
  }

  #unindex(key: Good, basis: readonly Basis[]): void {
    for (const { table, id } of basis) {
      const name = rowName(table, id);
      const keys = this.#byRow.get(name);
      keys?.delete(key);
      if (keys?.size === 0) this.#byRow.delete(name);
    }
  }

  #forget(key: Good, holding: Holding): void {
    if (this.#held.get(key) === holding) this.#held.delete(key);
    this.#unindex(key, holding.verdict.basis);
  }

  async #isGood(key: Good, holding: Holding): Promise<boolean> {
    const { verdict, again } = holding;
    const isOver = this.#clock() >= verdict.expiresAt;
    try {
      if (!isOver && (await this.#holds(verdict.basis))) return true;
      const anew = again === undefined ? undefined : await again();
      if (anew === undefined || 'problem' in anew || !isSame(anew, verdict)) return false;
      this.#unindex(key, holding.verdict.basis);
      holding.verdict = anew;
      if (this.#held.get(key) === holding) this.#index(key, anew.basis);
      return this.#clock() < anew.expiresAt;
    } catch {
      // Storage failed, which whoever asks it next tells: nothing is known, but what time has ended stays ended.
      this.#isChanged = true;
      this.#hasFailed = true;
      return !isOver;
    }
  }
}

function rowName(table: string, id: string): string {
  return `${table}/${id}`;
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
