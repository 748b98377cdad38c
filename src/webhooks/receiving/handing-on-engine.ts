/**
 * The receiving engine (§4.14.5): hands due messages of this process's senders to their handlers, or forwards them. It
 * is the policy of receiving for the engine of due work (work/work-engine.ts).
 *
 * Messages of a sender begin in the order of their receipt, up to the sender's limit at once; with a limit of one, each
 * is settled before the next begins. A failed message waits for its time while those behind it continue. The whole
 * sender waits if a receiver asks for it (Retry-After) or if everything fails (the breaker). Events of a subscriber and
 * runs of a job never wait for one another in this way.
 */
import type { Source } from '../../config/sources.ts';
import type { Received } from '../../model/received.ts';
import type { Row } from '../../store/store.ts';
import { type BreakerSettings, neverOpens } from '../../work/breaker.ts';
import { DueRows, dueIndexOf } from '../../work/due-rows.ts';
import { WorkEngine, type WorkPolicy } from '../../work/work-engine.ts';
import { triggerOf } from './conclude-received.ts';
import { attempt, type HandingOnOptions, type HandingOnParts } from './handing-on-attempt.ts';
import { receivedCollection } from './received-tables.ts';
import { type DueMessage, SenderQueue, Shares } from './sender-queue.ts';
import { createSettle } from './settle-received.ts';

/** As many as may be under way at once, and a buffer. */
const dueMessages = dueIndexOf(receivedCollection, 'sender', 4096);

export type HandingOnCounts = {
  readonly inFlight: number;
  /** Messages read into memory; all others wait in the store. */
  readonly waiting: number;
  readonly paused: number;
};

export type HandingOn = {
  /** Hands on due messages until `drain`. */
  start(): Promise<void>;
  /**
   * Wakes a sender: this process accepted or replayed a message of it. Changes by other processes are noticed through
   * the store.
   */
  wake(sender: string): void;
  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void>;
  /** Aborts attempts that a drain has not ended. */
  close(): Promise<void>;
  counts(): HandingOnCounts;
};

export function createHandingOn(options: HandingOnOptions): HandingOn {
  return new HandingOnEngine(options);
}

/**
 * Messages of a sender depend on what takes them, so a row of failures pauses the sender and saves the attempts of
 * those behind. Those of a subscriber or a job fail by their own content, and each has its schedule.
 */
function breakerOf({ handOn }: Source, settings: BreakerSettings): BreakerSettings {
  return handOn.kind === 'subscriber' || handOn.kind === 'job' ? neverOpens : settings;
}

class HandingOnEngine implements HandingOn, WorkPolicy<DueMessage, SenderQueue> {
  readonly readsAtOnce = 8;
  readonly attemptsPerTurn = 1;
  readonly #options: HandingOnOptions;
  readonly #engine: WorkEngine<DueMessage, SenderQueue>;
  readonly #parts: HandingOnParts;
  readonly #budget = { buffered: 0 };
  readonly #queues = new Map<string, SenderQueue>();
  readonly #shares: Shares;
  /** Queues held back by the shares of others. */
  readonly #held = new Set<SenderQueue>();
  #stops: (() => void)[] = [];
  #hasLanes = false;

  constructor(options: HandingOnOptions) {
    const { store, senders, handOnOf, random, settings } = options;
    this.#options = options;
    this.#engine = new WorkEngine(options, this);
    this.#parts = { ...options, engine: this.#engine, settle: createSettle(store, random) };
    const handed = [...senders.values()].flatMap((sender) => {
      const handOn = handOnOf(sender);
      return handOn === undefined ? [] : [{ sender, handOn }];
    });
    this.#shares = new Shares(settings.handOnInFlightMax, handed.length);
    for (const { sender, handOn } of handed) {
      const inFlightMax = sender.inFlightMax ?? settings.senderInFlightDefault;
      const rows = new DueRows(store, dueMessages, sender.name);
      const share = this.#shares.add(inFlightMax);
      const own = { sender, handOn, rows, share, inFlightMax };
      const queue = new SenderQueue({
        ...own,
        breaker: breakerOf(sender, settings),
        random,
        budget: this.#budget,
      });
      this.#queues.set(sender.name, queue);
    }
  }

  async start(): Promise<void> {
    if (this.#queues.size === 0) return;
    const { store, lanes } = this.#options;
    this.#engine.start();
    const { hint, stop } = this.#engine.gather(() => this.#look());
    this.#stops = [store.onChange(receivedCollection.name, hint), lanes.onChange(this.#onLanes), stop];
    await this.#needLanes();
    for (const queue of this.#queues.values()) this.#wakeQueue(queue);
  }

  wake(sender: string): void {
    const queue = this.#queues.get(sender);
    if (queue === undefined) return;
    if (!this.#hasLanes) void this.#needLanes();
    this.#wakeQueue(queue);
  }

  drain(ms: number): Promise<void> {
    this.#stop();
    return this.#engine.drain(ms);
  }

  close(): Promise<void> {
    this.#stop();
    return this.#engine.close();
  }

  #stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  counts(): HandingOnCounts {
    const paused = [...this.#queues.values()].filter(({ breaker }) => breaker.mode === 'open').length;
    return { inFlight: this.#engine.underWay, waiting: this.#budget.buffered, paused };
  }

  partyOf(queue: SenderQueue): string {
    return queue.id;
  }

  mayWork(queue: SenderQueue): boolean {
    if (this.#options.lanes.owns(queue.lane)) return true;
    queue.drop();
    return false;
  }

  hasRoom(): boolean {
    return this.#shares.hasRoom;
  }

  isFull({ share, inFlightMax, rerunning }: SenderQueue): boolean {
    return share.inFlight >= inFlightMax || rerunning > 0;
  }

  admits(queue: SenderQueue): boolean {
    if (this.#shares.admits(queue.share)) return true;
    this.#held.add(queue);
    return false;
  }

  attempt(queue: SenderQueue, due: DueMessage, probe: boolean): void {
    this.#shares.begin(queue.share);
    void attempt(this.#parts, { queue, due, probe }).then(() => {
      this.#shares.end(queue.share);
      this.#engine.ended(queue, due.id);
    });
  }

  ended(): void {
    const waiting = [...this.#held];
    this.#held.clear();
    for (const queue of waiting) this.#engine.ready(queue);
  }

  /** A request before the last failure has had its probe. */
  isAsked({ pausedAt }: SenderQueue, row: Row): boolean {
    const received = JSON.parse(row.doc) as Received;
    return triggerOf(received) === 'manual' && Date.parse(received.dueAt ?? '') > pausedAt;
  }

  failed(doing: 'reading' | 'settling', error: unknown): void {
    const what = doing === 'reading' ? 'reading messages' : 'storing the outcome of an attempt';
    this.#options.observe({ kind: 'receiving-failed', what, error });
  }

  /** After changes of the table: their senders are unknown. */
  #look(): void {
    void this.#needLanes();
    for (const queue of this.#queues.values()) this.#wakeQueue(queue);
  }

  /** Leases lanes with the first due message of any sender: a program that receives nothing leases nothing. */
  async #needLanes(): Promise<void> {
    if (this.#hasLanes) return;
    try {
      for (const { rows } of this.#queues.values()) {
        if ((await rows.first(1)).length === 0) continue;
        this.#hasLanes = true;
        this.#options.lanes.need();
        return;
      }
    } catch (error) {
      this.#options.observe({ kind: 'receiving-failed', what: 'looking for messages', error });
    }
  }

  #wakeQueue(queue: SenderQueue): void {
    if (!this.#engine.isRunning || !this.#options.lanes.owns(queue.lane)) return;
    queue.mayHoldMore = true;
    if (queue.breaker.mode === 'open') void this.#engine.heedAsked(queue);
    this.#engine.ready(queue);
  }

  readonly #onLanes = (): void => {
    for (const queue of this.#queues.values()) {
      queue.drop();
      this.#wakeQueue(queue);
    }
  };
}
