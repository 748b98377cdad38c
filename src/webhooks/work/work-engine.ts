/**
 * The engine of due work: takes what is due in many queues and makes attempts at it, for the queues that are this process's. Sending
 * deliveries and handing on received messages are its two policies (sending/delivery-engine.ts, receiving/handing-on-engine.ts).
 *
 * There is no claim in the store. A queue is one process's by its lane (lanes.ts), and within the process a row is taken in memory
 * (due-queue.ts). So an attempt costs one unit, which writes down what came of it, and a process that dies leaves nothing to clean up:
 * what it had not written down is still due. Should two processes work at the same row, its revision lets one of them write.
 */
import { type Row, StoreUnavailable } from '../../store/store.ts';
import type { DueQueue } from './due-queue.ts';
import { createReading, type Read } from './due-rows.ts';
import type { Lanes } from './lanes.ts';
import { settleSurely } from './settlement.ts';
import { Alarm, runtimeTimers, type Timers } from './timers.ts';
import { Turns } from './turns.ts';

/** After something of our own that failed, which will not be better at once. */
const storePauseMs = 1000;
export const faultPauseMs = 30_000;
/** Turns given before other work has the event loop: each may read, and begin four attempts, some 0.3 ms for one. */
const turnsPerPump = 16;
/** After the time for draining: what is aborted is written down still. */
const abortMs = 1000;
/** Between two looks for an attempt that a person asked for, since every row that becomes due wakes its queue. */
const askedPauseMs = 1000;

export type WorkEngineOptions = {
  readonly lanes: Pick<Lanes, 'hold' | 'release'>;
  /** Milliseconds since the epoch: what rows are due by. */
  readonly clock: () => number;
  readonly timers?: Timers;
};

/** What one kind of work decides for itself. None of these rejects or throws. */
export type WorkPolicy<Due extends { readonly id: string }, Q extends DueQueue<Due>> = {
  /** Reads under way at once. */
  readonly readsAtOnce: number;
  /** Attempts that begin in one turn of a queue: few, so that the turn of the next is soon. */
  readonly attemptsPerTurn: number;
  /** The party that the queue belongs to: parties take turns, and within a party its queues. */
  partyOf(queue: Q): string;
  /** Whether this process works at the queue now; where not, the policy lets go of it. */
  mayWork(queue: Q): boolean;
  /** Whether any attempt may begin at all. */
  hasRoom(): boolean;
  /** Whether an attempt of the queue must end before its next one begins. */
  isFull(queue: Q): boolean;
  /** Whether what is at hand may begin now; where not, the policy makes the queue ready when it may. */
  admits(queue: Q): boolean;
  /** Makes the attempt and writes down what came of it. `probe`: the breaker lets no other begin before its end. */
  attempt(queue: Q, due: Due, probe: boolean): Promise<void>;
  /** An attempt ended: others may have room now. */
  ended(): void;
  /** Nothing is due in the queue for now. */
  rests?(queue: Q): void;
  /** The time of an alarm has come for the queue. */
  wake(id: string): void;
  /**
   * Whether a person asked for the row, the last one that is due in a queue whose breaker is open: then a probe begins before its time. May
   * put the row before the others.
   */
  isAsked(queue: Q, row: Row): boolean;
  /** Reports a failure of the store: of reads the first in a row, of settling the first of an attempt. */
  failed(doing: 'reading' | 'settling', error: unknown): void;
};

/**
 * A queue goes round in this circle. Nothing in it polls.
 * - A wake, an alarm, an end of its own or lanes that came make it *ready*: it gets a turn.
 * - In its turn it begins a few attempts, or meets an obstacle. Each obstacle names what makes it ready again: the time of an alarm (left
 *   alone, asked to wait, over its rate, nothing due yet), an end of its own (window full, probe under way), rows that are being read, or
 *   room that others hold. The obstacles are asked in the order of their cost.
 * - An attempt is made, written down, and understood: what it says goes to the breaker, what the row became may set an alarm.
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

  /** Attempts that are being made or written down. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Aborted when what is under way is given up. */
  get working(): AbortSignal {
    return this.#working.signal;
  }

  /** Aborted when nothing waits for the store any longer. */
  get settling(): AbortSignal {
    return this.#settling.signal;
  }

  /** From here on queues that are ready get turns; until `drain`. */
  start(): void {
    this.#isRunning = true;
  }

  /**
   * Begins nothing more and waits for what is under way, at most so long; then aborts it.
   * @param ms milliseconds
   */
  drain(ms: number): Promise<void> {
    this.#draining ??= this.#drain(ms);
    return this.#draining;
  }

  /** Aborts what is under way, where it was not drained. */
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

  /** It may be able to begin something: gives it a turn. */
  readonly ready = (queue: Q): void => {
    if (!this.#isRunning) return;
    this.turns.add(queue, this.#policy.partyOf(queue));
    this.#pumpSoon();
  };

  /** What happens in one go, such as the answers of one read of a socket, is met with one pass. */
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
    for (let begun = 0; begun < policy.attemptsPerTurn; begun += 1) {
      if (!policy.mayWork(queue) || this.#isPaused(queue)) return;
      if (policy.isFull(queue) || queue.breaker.probing) return;
      if (queue.buffered === 0 && !this.#fill(queue)) return;
      if (!policy.hasRoom()) break;
      if (!policy.admits(queue)) return;
      const due = queue.shift();
      if (due === undefined) return;
      const probe = queue.breaker.began();
      this.begin(queue, due.id, () => policy.attempt(queue, due, probe));
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

  /** @returns whether something that is due is at hand */
  #fill(queue: Q): boolean {
    if (queue.mayHoldMore || queue.nextDueAt <= this.#options.clock()) {
      // One that is being read is ready afterwards.
      if (!this.#read(queue)) return false;
      if (queue.buffered > 0) return true;
    }
    if (queue.nextDueAt !== Number.POSITIVE_INFINITY) this.alarm.set(queue.id, queue.nextDueAt);
    this.#policy.rests?.(queue);
    return false;
  }

  /** Reads ahead, where reading takes time. */
  readAhead(queue: Q): void {
    this.#read(queue);
  }

  /** Begins an attempt at a row that the queue has taken. Its lane is not handed on in good order before it ends. */
  begin(queue: Q, id: string, attempt: () => Promise<void>): void {
    this.#underWay += 1;
    this.#options.lanes.hold(queue.lane);
    void this.#finish(queue, id, attempt());
  }

  async #finish(queue: Q, id: string, attempt: Promise<void>): Promise<void> {
    await attempt;
    queue.release(id);
    this.#options.lanes.release(queue.lane);
    this.#underWay -= 1;
    this.ready(queue);
    this.#policy.ended();
    if (this.turns.size > 0) this.#pumpSoon();
    if (this.#underWay === 0) this.#onEmpty?.();
  }

  /** @returns undefined where the outcome could not be written: the program stops, or the store refuses it */
  settleSurely<S>(settle: () => Promise<S>): Promise<S | undefined> {
    return settleSurely(settle, {
      ...{ timers: this.timers, signal: this.settling },
      onFailed: (error) => this.#policy.failed('settling', error),
    });
  }

  /** Leaves the queue alone for a while after a failure of our own. */
  pauseAfter(queue: Q, error: unknown): void {
    queue.pause(this.#options.clock() + (error instanceof StoreUnavailable ? storePauseMs : faultPauseMs));
  }

  /**
   * Lets a queue whose breaker is open make its probe before its time where a person asked for an attempt: after repairing a receiver one should
   * not have to wait ten minutes. What was asked for is the last row that is due, since it became due just now; rows that become due all the time
   * may hide it. To be called where a wake meets such a queue. Never rejects: what it does not find is tried when its time has come.
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
