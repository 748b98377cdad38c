/**
 * Hands received messages on (§4.14.5): gives what is due to the handler of its sender, or forwards it, for the senders that are this
 * process's. It is the policy of receiving for the engine of due work (work/work-engine.ts).
 *
 * Messages of a sender begin in the order in which they came, as many at once as the sender says; with one at once each is written down before
 * the next begins. A message that failed waits for its time and those behind it go on without it. Where a receiver asked to wait (Retry-After),
 * or everything fails (the breaker), the whole sender waits.
 */
import type { Received } from '../../model/received.ts';
import type { Row } from '../../store/store.ts';
import { DueRows, dueIndexOf } from '../work/due-rows.ts';
import { WorkEngine, type WorkPolicy } from '../work/work-engine.ts';
import { triggerOf } from './conclude-received.ts';
import { attempt, type HandingOnOptions, type HandingOnParts } from './handing-on-attempt.ts';
import { receivedCollection } from './received-tables.ts';
import { type DueMessage, SenderQueue, Shares } from './sender-queue.ts';
import { createSettle } from './settle-received.ts';

/**
 * Between two looks for what changes of the table told of, each 40 µs for each sender. What this process accepts it is told of at once; replays and
 * other processes can wait so long.
 */
const hintMs = 100;
/** As many as may be under way at once, and a buffer. */
const dueMessages = dueIndexOf(receivedCollection, 'sender', 4096);

export type HandingOnCounts = {
  /** Messages that are being handed on or written down. */
  readonly inFlight: number;
  /** Messages that were read and wait in memory; all others wait in the store. */
  readonly waiting: number;
  /** Senders whose messages wait because handing them on failed. */
  readonly paused: number;
};

export type HandingOn = {
  /** Begins with what is due; goes on until `drain`. */
  start(): Promise<void>;
  /** A message of the sender was accepted or replayed by this process. Others are heard of by the store. */
  wake(sender: string): void;
  /**
   * Begins nothing more and waits for what is under way, at most so long; then aborts it.
   * @param ms milliseconds
   */
  drain(ms: number): Promise<void>;
  /** Aborts what is under way, where it was not drained. */
  close(): Promise<void>;
  counts(): HandingOnCounts;
};

export function createHandingOn(options: HandingOnOptions): HandingOn {
  return new HandingOnEngine(options);
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
  /** Those that others' shares hold back. */
  readonly #held = new Set<SenderQueue>();
  #stops: (() => void)[] = [];
  /** Ends the time in which hints are gathered; undefined: the next is heeded at once. */
  #stopGathering: (() => void) | undefined;
  #isHinted = false;
  #hasLanes = false;

  constructor(options: HandingOnOptions) {
    const { store, senders, handOnOf, random, settings } = options;
    this.#options = options;
    this.#engine = new WorkEngine(options, this);
    this.#parts = { ...options, engine: this.#engine, settle: createSettle({ store, random }) };
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
      const queue = new SenderQueue({ ...own, breaker: settings, random, budget: this.#budget });
      this.#queues.set(sender.name, queue);
    }
  }

  async start(): Promise<void> {
    if (this.#queues.size === 0) return;
    const { store, lanes } = this.#options;
    this.#engine.start();
    this.#stops = [store.onChange(receivedCollection.name, this.#hint), lanes.onChange(this.#onLanes)];
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
    this.#stopGathering?.();
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

  async attempt(queue: SenderQueue, due: DueMessage, probe: boolean): Promise<void> {
    this.#shares.begin(queue.share);
    await attempt(this.#parts, { queue, due, probe });
    this.#shares.end(queue.share);
  }

  ended(): void {
    const waiting = [...this.#held];
    this.#held.clear();
    for (const queue of waiting) this.#engine.ready(queue);
  }

  /** What was asked for before the last failure has had its probe. */
  isAsked({ pausedAt }: SenderQueue, row: Row): boolean {
    const received = JSON.parse(row.doc) as Received;
    return triggerOf(received) === 'manual' && Date.parse(received.dueAt ?? '') > pausedAt;
  }

  failed(doing: 'reading' | 'settling', error: unknown): void {
    const what = doing === 'reading' ? 'reading messages' : 'writing down an attempt';
    this.#options.observe({ kind: 'receiving-failed', what, error });
  }

  /** The table changed, by whatever process: which senders it concerns is not known. One look serves all changes of a short time. */
  readonly #hint = (): void => {
    if (this.#stopGathering !== undefined) {
      this.#isHinted = true;
      return;
    }
    this.#isHinted = false;
    void this.#needLanes();
    this.#stopGathering = this.#engine.timers.after(hintMs, () => {
      this.#stopGathering = undefined;
      if (this.#isHinted && this.#engine.isRunning) this.#hint();
    });
    for (const queue of this.#queues.values()) this.#wakeQueue(queue);
  };

  /** Asks for lanes with the first message that is due, whichever process may own its sender: a program that receives nothing leases nothing. */
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
