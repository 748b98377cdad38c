/**
 * The engine of due work: reads what is due in the queues of this process and makes the attempts. It has three policies: sending deliveries
 * (sending/delivery-engine.ts), handing on received messages (receiving/handing-on-engine.ts), and sending mails (mail/mail-engine.ts).
 *
 * A claim is kept in memory only. A queue belongs to one process by its lane (lanes.ts), and the process takes rows in
 * memory (due-queue.ts). So an attempt costs one unit, which records its outcome, and a process that dies leaves
 * nothing to clean up: what it had not recorded is still due. If two processes work on one row, the row's revision lets
 * only one of them write.
 */
import type { Services } from '../store/capabilities.ts';
import { type Row, type Store, StoreUnavailable } from '../store/store.ts';
import { type DueQueue, Turns } from './due-queue.ts';
import type { Lanes } from './lanes.ts';
import type { Starts } from './starts.ts';
import { Alarm, endedWithin, gatherHints, pauseUntil, setBackMs, type Timers } from './timers.ts';

const storePauseMs = 1000;
/** Pause after an outcome that could not be recorded. */
const faultPauseMs = 30_000;
/** Turns before the event loop serves other work: each may read and begin four attempts, about 0.3 ms per attempt. */
const turnsPerPump = 16;
/** Time after the drain to record attempts that were aborted. */
const abortMs = 1000;
/** Minimum time between two looks for a requested attempt, because every row that becomes due wakes its queue. */
const askedPauseMs = 1000;
/** Interval of looks at the times of a queue that are in the future. A queue that waits longer for its next row has a turn for it. */
export const lookMs = 300_000;
/** Pause after a failed read. */
const readAgainMs = 1000;
/** First and longest wait before an outcome is recorded again, while the store is away. */
const settleWaitMs = 100;
const settleWaitMsMax = 5000;

/** The parts that each kind of due work gets beside the services. */
export type DueWork = {
  readonly lanes: Omit<Lanes, 'close'>;
  readonly starts: Starts;
  readonly timers: Timers;
  /** Returns numbers uniformly from 0 to 1. */
  readonly uniform: () => number;
};

type EngineServices = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'commit' | 'onChange'>;
};

/** An attempt that begins. */
export type BegunAttempt<Due, Q> = {
  readonly queue: Q;
  readonly due: Due;
  /** The breaker admits no other attempt until this one ends. */
  readonly probe: boolean;
};

/** The decisions that differ between kinds of work. No function here throws or rejects. */
export type WorkPolicy<Due extends { readonly id: string }, Q extends DueQueue<Due>> = {
  readonly readsAtOnce: number;
  /** Attempts that begin in one turn of a queue: few, so that other queues wait briefly. */
  readonly attemptsPerTurn: number;
  /** The words in which failures are reported. */
  readonly faults: {
    readonly kind: 'sending-failed' | 'receiving-failed' | 'store-failed';
    readonly reading: string;
    readonly attempt: string;
  };
  /** The party of the queue: parties take turns, and so do the queues within a party. */
  partyOf(queue: Q): string;
  /**
   * Returns true if this process may work on the queue now; if not, the policy stops following the queue. Default: its lane is this
   * process's.
   */
  mayWork?(queue: Q): boolean;
  /** Returns true if the engine may begin another attempt. */
  hasRoom(): boolean;
  /** Returns true if an attempt of the queue must end before its next one begins. */
  isFull(queue: Q): boolean;
  /** Returns true if the buffered row may begin now; if not, the policy makes the queue ready later. */
  admits(queue: Q): boolean;
  /** Makes the attempt, records its outcome and then calls the engine's `ended`. */
  attempt(begun: BegunAttempt<Due, Q>): void;
  /** Called when an attempt has ended: other queues may have room now. */
  ended?(): void;
  /** Called when nothing of the queue is due. */
  rests?(queue: Q): void;
  wake(id: string): void;
  /**
   * Returns true if a person requested this row, the last due row of a queue whose breaker is open; a probe then begins
   * early. May move the row to the front.
   */
  isAsked(queue: Q, row: Row): boolean;
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
  readonly alarm: Alarm;
  readonly turns = new Turns<Q>();
  readonly #services: EngineServices;
  readonly #work: Pick<DueWork, 'lanes' | 'timers'>;
  readonly #policy: WorkPolicy<Due, Q>;
  readonly #working = new AbortController();
  readonly #settling = new AbortController();
  readonly #stops: (() => void)[] = [];
  /** Queues of which none had a due row yet. */
  #withoutLanes: readonly Q[] = [];
  #isRunning = false;
  #isPumping = false;
  #underWay = 0;
  /** Queues that wait for the end of another one's read, and the reads under way. */
  readonly #unread = new Set<Q>();
  #reads = 0;
  #isReadFailing = false;
  #draining: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(services: EngineServices, work: Pick<DueWork, 'lanes' | 'timers'>, policy: WorkPolicy<Due, Q>) {
    this.#services = services;
    this.#work = work;
    this.#policy = policy;
    this.alarm = new Alarm(services.clock, (id) => policy.wake(id), work.timers);
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

  /** Starts, and works on queues whose number is fixed: looks at all of them after a change of the table by any process. */
  async follow(table: string, queues: readonly Q[]): Promise<void> {
    const { lanes, timers } = this.#work;
    this.#withoutLanes = queues;
    const look = (): void => {
      void this.#needLanes();
      for (const queue of queues) this.#wake(queue);
    };
    const onLanes = (): void => {
      for (const queue of queues) {
        queue.drop();
        this.#wake(queue);
      }
    };
    const hints = gatherHints(timers, look);
    this.start();
    this.untilDrain(this.#services.store.onChange(table, hints.hint), lanes.onChange(onLanes), hints.stop);
    await this.#needLanes();
    for (const queue of queues) this.#wake(queue);
  }

  /** Leases lanes with the first due row of any queue: a program without such work leases nothing. */
  async #needLanes(): Promise<void> {
    try {
      for (const { rows } of this.#withoutLanes) {
        if ((await rows.first(1)).length === 0) continue;
        this.#withoutLanes = [];
        this.#work.lanes.need();
        return;
      }
    } catch (error) {
      this.#failed(this.#policy.faults.reading, error);
    }
  }

  /** Calls back when no more attempts may begin. */
  untilDrain(...stops: readonly (() => void)[]): void {
    this.#stops.push(...stops);
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
    const { timers } = this.#work;
    this.#isRunning = false;
    for (const stop of this.#stops) stop();
    this.alarm.close();
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#underWay === 0) resolve();
    });
    await endedWithin(ms, empty, timers);
    this.#working.abort();
    await endedWithin(abortMs, empty, timers);
    this.#settling.abort();
  }

  /** Gives a turn to a queue that may have a due row which this process does not know. */
  wake(queue: Q): void {
    if (this.#withoutLanes.length > 0) void this.#needLanes();
    this.#wake(queue);
  }

  #wake(queue: Q): void {
    if (!this.#isRunning || !this.#work.lanes.owns(queue.lane)) return;
    queue.mayHoldMore = true;
    if (queue.breaker.mode === 'open') void this.heedAsked(queue);
    this.ready(queue);
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
    const now = this.#services.clock();
    if (now < queue.turnAt - setBackMs) queue.clockSetBack();
    queue.turnAt = now;
    for (let begun = 0; begun < policy.attemptsPerTurn; begun += 1) {
      if (!this.#mayWork(queue) || this.#isPaused(queue)) return;
      if (policy.isFull(queue) || queue.breaker.probing) return;
      if (queue.buffered === 0 && !this.#fill(queue)) return;
      if (!policy.hasRoom()) break;
      if (!policy.admits(queue)) return;
      const due = queue.shift();
      if (due === undefined) return;
      const probe = queue.breaker.began();
      this.begin(queue);
      policy.attempt({ queue, due, probe });
    }
    this.ready(queue);
  }

  #mayWork(queue: Q): boolean {
    if (this.#policy.mayWork !== undefined) return this.#policy.mayWork(queue);
    if (this.#work.lanes.owns(queue.lane)) return true;
    queue.drop();
    return false;
  }

  #isPaused(queue: Q): boolean {
    const now = this.#services.clock();
    const until = Math.max(queue.notBefore, queue.breaker.pausedUntil(now));
    if (until <= now) return false;
    queue.drop();
    this.alarm.set(queue.id, until);
    return true;
  }

  /** @returns true if a due row is buffered */
  #fill(queue: Q): boolean {
    const { clock } = this.#services;
    if (queue.mayHoldMore || queue.nextDueAt <= clock()) {
      // A queue under read becomes ready afterwards.
      if (!this.read(queue)) return false;
      if (queue.buffered > 0) return true;
    }
    if (queue.nextDueAt !== Number.POSITIVE_INFINITY) {
      this.alarm.set(queue.id, Math.min(queue.nextDueAt, clock() + lookMs));
      void this.#setRight(queue);
    }
    this.#policy.rests?.(queue);
    return false;
  }

  /**
   * Reads the first rows of the queue: at once if the store answers at once. Other reads are bounded for all queues together.
   * @returns true if the read has ended; otherwise the queue becomes ready later
   */
  read(queue: Q): boolean {
    if (queue.reading) return false;
    if (this.#reads >= this.#policy.readsAtOnce) {
      this.#unread.add(queue);
      return false;
    }
    const now = this.#services.clock();
    const epoch = queue.beginRead(now);
    const { readsBehind } = queue;
    // Taken rows are among the first rows only.
    const wanted = queue.wanted - (readsBehind === undefined ? 0 : queue.taken);
    try {
      const rows = queue.rows.first(wanted, readsBehind);
      if (!(rows instanceof Promise)) {
        this.#isReadFailing = false;
        queue.endRead(epoch, rows, wanted, now);
        return true;
      }
      this.#reads += 1;
      void this.#finishRead(queue, rows, (found) => queue.endRead(epoch, found, wanted, now));
    } catch (error) {
      this.#failRead(queue, error);
    }
    return false;
  }

  async #finishRead(
    queue: Q,
    rows: Promise<readonly Row[]>,
    end: (rows: readonly Row[]) => void,
  ): Promise<void> {
    try {
      end(await rows);
      this.#isReadFailing = false;
      this.ready(queue);
    } catch (error) {
      this.#failRead(queue, error);
    }
    this.#reads -= 1;
    for (const next of this.#unread) {
      this.#unread.delete(next);
      this.ready(next);
      return;
    }
  }

  /** Reports the first of consecutive failures. */
  #failRead(queue: Q, error: unknown): void {
    queue.failRead();
    if (!this.#isReadFailing) this.#failed(this.#policy.faults.reading, error);
    this.#isReadFailing = true;
    this.#work.timers.after(readAgainMs, () => this.ready(queue));
  }

  #failed(what: string, error: unknown): void {
    this.#services.observe({ kind: this.#policy.faults.kind, what, error });
  }

  /** Sets times right that a clock which was ahead had set. Never rejects. */
  async #setRight(queue: Q): Promise<void> {
    const { clock, observe } = this.#services;
    if (Math.abs(clock() - queue.lookedAt) < lookMs) return;
    try {
      for await (const { rows, aheadMs } of queue.setRight(this.#services)) {
        if (rows > 0) {
          observe({ kind: 'work-rescheduled', queue: queue.lane, rows, aheadMs });
          this.ready(queue);
        }
        if (!this.#isRunning) return;
      }
    } catch (error) {
      this.#failed(this.#policy.faults.reading, error);
    }
  }

  /** Begins an attempt at a row that the queue has taken. The queue's lane is not given away until `ended`. */
  begin(queue: Q): void {
    this.#underWay += 1;
    this.#work.lanes.hold(queue.lane);
  }

  /** Ends the attempt at the row: it was settled or given up. */
  ended(queue: Q, id: string): void {
    queue.release(id);
    this.#work.lanes.release(queue.lane);
    this.#underWay -= 1;
    this.ready(queue);
    this.#policy.ended?.();
    if (this.turns.size > 0) this.#pumpSoon();
    if (this.#underWay === 0) this.#onEmpty?.();
  }

  /**
   * Makes an attempt and evaluates its outcome. Never rejects.
   * @param make undefined: there was nothing left to do, or the program stops
   */
  async conclude<C>(
    { queue, probe }: BegunAttempt<Due, Q>,
    make: () => Promise<C | undefined>,
    understand: (concluded: C) => void,
  ): Promise<C | undefined> {
    try {
      const concluded = await make();
      if (concluded === undefined) queue.breaker.ignored(probe);
      else understand(concluded);
      return concluded;
    } catch (error) {
      this.failAttempt(queue, probe, error);
      return undefined;
    }
  }

  /** Pauses the queue after an internal failure. */
  failAttempt(queue: Q, probe: boolean, error: unknown): void {
    this.#failed(this.#policy.faults.attempt, error);
    queue.pause(this.#services.clock() + (error instanceof StoreUnavailable ? storePauseMs : faultPauseMs));
    queue.breaker.ignored(probe);
  }

  /**
   * Settles an attempt, however long the store is away: repeating the attempt because its outcome was not recorded would
   * be a duplicate that Comity caused. The bound on attempts under way bounds the number of waiting ones.
   *
   * @returns undefined if it could not be written, because the program stops or the failure is not StoreUnavailable: the queue then pauses,
   * without which the attempt would be repeated again and again
   */
  async settle<S>(queue: Q, settle: () => Promise<S>): Promise<S | undefined> {
    const signal = this.settling;
    let waitMs = settleWaitMs;
    do {
      try {
        return await settle();
      } catch (error) {
        if (waitMs === settleWaitMs) this.#failed('storing the outcome of an attempt', error);
        if (!(error instanceof StoreUnavailable)) break;
      }
      if (!signal.aborted) await pauseUntil(waitMs, this.#work.timers, signal);
      waitMs = Math.min(2 * waitMs, settleWaitMsMax);
    } while (!signal.aborted);
    if (!signal.aborted) queue.pause(this.#services.clock() + faultPauseMs);
    return undefined;
  }

  /**
   * Starts the probe of an open breaker early if a person requested an attempt, so that the repair of a receiver can be
   * tested without waiting up to ten minutes. A requested row is the last one due, because it became due just now; rows
   * that constantly become due may hide it. Called when a wake meets a queue whose breaker is open. Never rejects: a
   * row that it misses is tried at its time.
   */
  async heedAsked(queue: Q): Promise<void> {
    const now = this.#services.clock();
    if (now - queue.askedAt < askedPauseMs) return;
    queue.askedAt = now;
    try {
      const [row] = await queue.rows.lastBefore(now + 1);
      if (row === undefined || queue.breaker.mode !== 'open') return;
      if (!this.#policy.isAsked(queue, row)) return;
      queue.breaker.allowProbe();
      this.ready(queue);
    } catch (error) {
      this.#failed(this.#policy.faults.reading, error);
    }
  }
}
