/**
 * The engine of due work: reads what is due in the queues of this process and makes the attempts. It has two policies:
 * sending deliveries (sending/delivery-engine.ts) and handing on received messages (receiving/handing-on-engine.ts).
 *
 * A claim is kept in memory only. A queue belongs to one process by its lane (lanes.ts), and the process takes rows in
 * memory (due-queue.ts). So an attempt costs one unit, which records its outcome, and a process that dies leaves
 * nothing to clean up: what it had not recorded is still due. If two processes work on one row, the row's revision lets
 * only one of them write.
 */
import type { Observe } from '../observe/observation.ts';
import { nextTurn } from '../store/in-batches.ts';
import { type Row, type Store, StoreUnavailable } from '../store/store.ts';
import type { DueQueue } from './due-queue.ts';
import { createReading, type DueKey, isAhead, keyOf, mayBeAhead, type Read } from './due-rows.ts';
import type { Lanes } from './lanes.ts';
import { settleSurely } from './settlement.ts';
import { Alarm, gatherHints, type Hints, runtimeTimers, setBackMs, type Timers } from './timers.ts';
import { Turns } from './turns.ts';

const storePauseMs = 1000;
export const faultPauseMs = 30_000;
/** Turns before the event loop serves other work: each may read and begin four attempts, about 0.3 ms per attempt. */
const turnsPerPump = 16;
/** Time after the drain to record attempts that were aborted. */
const abortMs = 1000;
/** Minimum time between two looks for a requested attempt, because every row that becomes due wakes its queue. */
const askedPauseMs = 1000;
/** Interval of looks at the times of a queue that are in the future. A queue that waits longer for its next row has a turn for it. */
export const lookMs = 300_000;
/** Rows that a look reads in a turn of the event loop, and that one unit sets right. */
const setAtOnce = 100;

export type WorkEngineOptions = {
  readonly lanes: Pick<Lanes, 'hold' | 'release'>;
  /** Milliseconds since the epoch, compared with `dueAt`. */
  readonly clock: () => number;
  readonly timers?: Timers;
  readonly store: Pick<Store, 'commit'>;
  readonly observe: Observe;
};

/** The decisions that differ between kinds of work. No function here throws or rejects. */
export type WorkPolicy<Due extends { readonly id: string }, Q extends DueQueue<Due>> = {
  readonly readsAtOnce: number;
  /** Attempts that begin in one turn of a queue: few, so that other queues wait briefly. */
  readonly attemptsPerTurn: number;
  /** The party of the queue: parties take turns, and so do the queues within a party. */
  partyOf(queue: Q): string;
  /** Returns true if this process may work on the queue now; if not, the policy stops following the queue. */
  mayWork(queue: Q): boolean;
  /** Returns true if the engine may begin another attempt. */
  hasRoom(): boolean;
  /** Returns true if an attempt of the queue must end before its next one begins. */
  isFull(queue: Q): boolean;
  /** Returns true if the buffered row may begin now; if not, the policy makes the queue ready later. */
  admits(queue: Q): boolean;
  /**
   * Makes the attempt, records its outcome and then calls the engine's `ended`. `probe`: the breaker admits no other
   * attempt until this one ends.
   */
  attempt(queue: Q, due: Due, probe: boolean): void;
  /** Called when an attempt has ended: other queues may have room now. */
  ended(): void;
  rests?(queue: Q): void;
  wake(id: string): void;
  /**
   * Returns true if a person requested this row, the last due row of a queue whose breaker is open; a probe then begins
   * early. May move the row to the front.
   */
  isAsked(queue: Q, row: Row): boolean;
  /**
   * Reports a failure of the store: for reads the first of consecutive failures, for settling the first of an attempt.
   */
  failed(doing: 'reading' | 'settling', error: unknown): void;
};

/**
 * A queue passes through these states; nothing polls.
 * - Ready: a wake, an alarm, the end of one of its attempts or a change of lanes gives it a turn.
 * - In its turn it begins a few attempts or meets an obstacle. Each obstacle defines what makes the queue ready again:
 *   an alarm (paused by an error, by Retry-After or by a rate; nothing due yet), the end of one of its attempts (window
 *   full, probe under way), the end of a read, or room that other queues hold. Obstacles are checked in the order of
 *   their cost.
 * - An attempt is made, recorded and evaluated: its outcome goes to the breaker, and the new state of the row may set
 *   an alarm.
 */
export class WorkEngine<Due extends { readonly id: string }, Q extends DueQueue<Due>> {
  readonly timers: Timers;
  readonly alarm: Alarm;
  readonly turns = new Turns<Q>();
  readonly #options: WorkEngineOptions;
  readonly #policy: WorkPolicy<Due, Q>;
  readonly #read: Read<Q>;
  readonly #working = new AbortController();
  readonly #settling = new AbortController();
  #isRunning = false;
  #isPumping = false;
  #underWay = 0;
  #draining: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(options: WorkEngineOptions, policy: WorkPolicy<Due, Q>) {
    const { clock, timers = runtimeTimers } = options;
    this.#options = options;
    this.#policy = policy;
    this.timers = timers;
    this.alarm = new Alarm({ clock, timers, ring: (id) => policy.wake(id) });
    this.#read = createReading<Q>({
      ...{ clock, timers, ready: this.ready, readsAtOnce: policy.readsAtOnce },
      onFailed: (error) => policy.failed('reading', error),
    });
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Attempts that are being made or settled. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Aborts attempts under way. */
  get working(): AbortSignal {
    return this.#working.signal;
  }

  /** Aborts waits for the store. */
  get settling(): AbortSignal {
    return this.#settling.signal;
  }

  start(): void {
    this.#isRunning = true;
  }

  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void> {
    this.#draining ??= this.#drain(ms);
    return this.#draining;
  }

  /** Aborts attempts that a drain has not ended. */
  async close(): Promise<void> {
    this.#working.abort();
    await this.drain(0);
  }

  async #drain(ms: number): Promise<void> {
    this.#isRunning = false;
    this.alarm.close();
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#underWay === 0) resolve();
    });
    await within(ms, empty, this.timers);
    this.#working.abort();
    await within(abortMs, empty, this.timers);
    this.#settling.abort();
  }

  /** Gives the queue a turn: it may be able to begin an attempt. */
  readonly ready = (queue: Q): void => {
    if (!this.#isRunning) return;
    if (!this.turns.has(queue)) this.turns.add(queue, this.#policy.partyOf(queue));
    this.#pumpSoon();
  };

  /** Handles all events of one turn of the event loop, such as responses from one read of a socket, in one pass. */
  #pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(this.#pump);
  }

  readonly #pump = (): void => {
    this.#isPumping = false;
    for (let given = 0; this.#isRunning && this.#policy.hasRoom(); given += 1) {
      const queue = this.turns.next();
      if (queue === undefined) return;
      this.#takeTurn(queue);
      if (given < turnsPerPump) continue;
      this.#isPumping = true;
      setImmediate(this.#pump);
      return;
    }
  };

  #takeTurn(queue: Q): void {
    const policy = this.#policy;
    const now = this.#options.clock();
    if (now < queue.turnAt - setBackMs) queue.clockSetBack();
    queue.turnAt = now;
    for (let begun = 0; begun < policy.attemptsPerTurn; begun += 1) {
      if (!policy.mayWork(queue) || this.#isPaused(queue)) return;
      if (policy.isFull(queue) || queue.breaker.probing) return;
      if (queue.buffered === 0 && !this.#fill(queue)) return;
      if (!policy.hasRoom()) break;
      if (!policy.admits(queue)) return;
      const due = queue.shift();
      if (due === undefined) return;
      const probe = queue.breaker.began();
      this.begin(queue);
      policy.attempt(queue, due, probe);
    }
    this.ready(queue);
  }

  #isPaused(queue: Q): boolean {
    const now = this.#options.clock();
    const until = Math.max(queue.notBefore, queue.breaker.pausedUntil(now));
    if (until <= now) return false;
    queue.drop();
    this.alarm.set(queue.id, until);
    return true;
  }

  /** @returns true if a due row is buffered */
  #fill(queue: Q): boolean {
    if (queue.mayHoldMore || queue.nextDueAt <= this.#options.clock()) {
      // A queue under read becomes ready afterwards.
      if (!this.#read(queue)) return false;
      if (queue.buffered > 0) return true;
    }
    if (queue.nextDueAt !== Number.POSITIVE_INFINITY) {
      this.alarm.set(queue.id, Math.min(queue.nextDueAt, this.#options.clock() + lookMs));
      void this.#setRight(queue);
    }
    this.#policy.rests?.(queue);
    return false;
  }

  /**
   * Sets times right that a clock which was ahead had set, from the last row of the queue back to those that are due soon, without those of
   * taken rows, which their attempt sets: to the attempt a time that changed meanwhile would be a request for another one. Rows that wait by
   * the schedule lie between them, so a look passes over all. Never rejects.
   */
  async #setRight(queue: Q): Promise<void> {
    const { clock } = this.#options;
    if (Math.abs(clock() - queue.lookedAt) < lookMs) return;
    queue.lookedAt = clock();
    try {
      for (let before: DueKey | undefined; this.#isRunning; await nextTurn()) {
        const now = clock();
        const rows = await queue.rows.last(setAtOnce, before);
        const ahead = rows.filter((row) => !queue.hasTaken(row.id) && isAhead(row, now));
        if (ahead.length > 0) await this.#reschedule(queue, ahead, now);
        const [first] = rows;
        if (first === undefined) return;
        before = keyOf(first);
        if (!mayBeAhead(before, now)) return;
      }
    } catch (error) {
      this.#policy.failed('reading', error);
    }
  }

  async #reschedule(queue: Q, ahead: readonly Row[], now: number): Promise<void> {
    const { store, observe } = this.#options;
    const commit = await store.commit({ changes: queue.rows.setRight(ahead, now), events: [] });
    // An attempt or a person changed one of them meanwhile: the others wait for the next look.
    if (commit.outcome !== 'committed') return;
    const aheadMs = Math.max(...ahead.map(({ updatedAt }) => updatedAt - now));
    observe({ kind: 'work-rescheduled', queue: queue.lane, rows: ahead.length, aheadMs });
    queue.mayHoldMore = true;
    this.ready(queue);
  }

  /** Gathers changes of a table by any process: `look` serves all of an interval, as long as the engine runs. */
  gather(look: () => void): Hints {
    return gatherHints(this.timers, () => {
      if (this.#isRunning) look();
    });
  }

  /** Reads before the queue has a turn, for stores whose reads take time. */
  readAhead(queue: Q): void {
    this.#read(queue);
  }

  /** Begins an attempt at a row that the queue has taken. The queue's lane is not given away until `ended`. */
  begin(queue: Q): void {
    this.#underWay += 1;
    this.#options.lanes.hold(queue.lane);
  }

  /** Ends the attempt at the row: it was settled or given up. */
  ended(queue: Q, id: string): void {
    queue.release(id);
    this.#options.lanes.release(queue.lane);
    this.#underWay -= 1;
    this.ready(queue);
    this.#policy.ended();
    if (this.turns.size > 0) this.#pumpSoon();
    if (this.#underWay === 0) this.#onEmpty?.();
  }

  /** @returns undefined if the outcome could not be written: the program stops, or the store refuses it */
  settleSurely<S>(settle: () => Promise<S>): Promise<S | undefined> {
    return settleSurely(settle, {
      ...{ timers: this.timers, signal: this.settling },
      onFailed: (error) => this.#policy.failed('settling', error),
    });
  }

  /** Pauses the queue after an internal failure. */
  pauseAfter(queue: Q, error: unknown): void {
    queue.pause(this.#options.clock() + (error instanceof StoreUnavailable ? storePauseMs : faultPauseMs));
  }

  /**
   * Starts the probe of an open breaker early if a person requested an attempt, so that the repair of a receiver can be
   * tested without waiting up to ten minutes. A requested row is the last one due, because it became due just now; rows
   * that constantly become due may hide it. Called when a wake meets a queue whose breaker is open. Never rejects: a
   * row that it misses is tried at its time.
   */
  async heedAsked(queue: Q): Promise<void> {
    const now = this.#options.clock();
    if (now - queue.askedAt < askedPauseMs) return;
    queue.askedAt = now;
    try {
      const [row] = await queue.rows.lastBefore(now + 1);
      if (row === undefined || queue.breaker.mode !== 'open') return;
      if (!this.#policy.isAsked(queue, row)) return;
      queue.breaker.allowProbe();
      this.ready(queue);
    } catch (error) {
      this.#policy.failed('reading', error);
    }
  }
}

async function within(ms: number, done: Promise<void>, timers: Timers): Promise<void> {
  let cancel: (() => void) | undefined;
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(ms, resolve);
  });
  await Promise.race([done, over]);
  cancel?.();
}
