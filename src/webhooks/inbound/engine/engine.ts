/**
 * Hands received messages on (§4.14.5): takes what is due and gives it to the handler of its sender, or forwards it, for the senders that
 * are this process's.
 *
 * There is no claim in the store. A sender is one process's by its lane (outbound/lanes.ts), and within the process a message is taken in
 * memory (sender-queue.ts). Nothing is marked before it is done, so a process that dies leaves nothing to clean up: what it had not written
 * down is still due. Should two processes hand the same message on, its revision lets one of them write.
 *
 * Messages of a sender begin in the order in which they came, as many at once as the sender says; with one at once each is written down before
 * the next begins. A message that failed waits for its time and those behind it go on without it. Where a receiver asked to wait (Retry-After),
 * or everything fails (the breaker), the whole sender waits.
 */
import { Alarm } from '../../outbound/engine/alarm.ts';
import { DueRows, dueIndexOf } from '../../outbound/engine/due-rows.ts';
import { createReading } from '../../outbound/engine/reading.ts';
import { runtimeTimers, type Timers } from '../../outbound/engine/timers.ts';
import { Turns } from '../../outbound/engine/turns.ts';
import { receivedCollection } from '../collections.ts';
import { createSettle } from '../settle/settle.ts';
import { heedAsked } from './asked.ts';
import { attempt } from './attempt.ts';
import { begin } from './begin.ts';
import type { Attempt, EngineParts, HandingOnOptions } from './parts.ts';
import { SenderQueue } from './sender-queue.ts';
import { Shares } from './shares.ts';

/**
 * Between two looks for what changes of the table told of, each 40 µs for each sender. What this process accepts it is told of at once; replays and
 * other processes can wait so long.
 */
const hintMs = 100;
const readsAtOnce = 8;
/** As many as may be under way at once, and a buffer. */
const dueMessages = dueIndexOf(receivedCollection, 'sender', 4096);
/** After the time for draining: what is aborted is written down still. */
const abortMs = 1000;

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
  return new Engine(options);
}

/**
 * A sender goes round in this circle. Nothing in it polls.
 * - A wake, an alarm, an end of its own or lanes that came make it *ready*: it gets a turn.
 * - In its turn (begin.ts) it begins one message, or meets an obstacle. Each obstacle names what makes it ready again: the time of an
 *   alarm (paused, asked to wait, nothing due yet), an end of its own (window full, probe under way), rows that are being read, or
 *   shares that others hold.
 * - An attempt (attempt.ts) is handed on, written down, and understood: what it says goes to the breaker, what the message became may set
 *   an alarm.
 */
class Engine implements HandingOn {
  readonly #options: HandingOnOptions;
  readonly #parts: EngineParts;
  readonly #timers: Timers;
  readonly #queues = new Map<string, SenderQueue>();
  readonly #running = new AbortController();
  readonly #settling = new AbortController();
  #stops: (() => void)[] = [];
  #isOpen = false;
  #isPumping = false;
  #draining: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;
  /** Ends the time in which hints are gathered; undefined: the next is heeded at once. */
  #stopGathering: (() => void) | undefined;
  #isHinted = false;
  #hasLanes = false;

  constructor(options: HandingOnOptions) {
    const { store, senders, handOnOf, clock, random, settings, observe } = options;
    const timers = options.timers ?? runtimeTimers;
    const ready = this.#ready;
    this.#options = options;
    this.#timers = timers;
    const handed = [...senders.values()].flatMap((sender) => {
      const handOn = handOnOf(sender);
      return handOn === undefined ? [] : [{ sender, handOn }];
    });
    const shares = new Shares(settings.handOnInFlightMax, handed.length);
    for (const { sender, handOn } of handed) {
      const inFlightMax = sender.inFlightMax ?? settings.senderInFlightDefault;
      const rows = new DueRows(store, dueMessages, sender.name);
      const share = shares.add(inFlightMax);
      const parts = { sender, handOn, rows, share, inFlightMax, breaker: settings, random };
      this.#queues.set(sender.name, new SenderQueue(parts));
    }
    this.#parts = {
      ...{ ...options, timers, shares, ready, start: this.#start },
      alarm: new Alarm({ clock, timers, ring: (sender) => this.wake(sender) }),
      held: new Set(),
      turns: new Turns(),
      settle: createSettle({ store, random }),
      read: createReading<SenderQueue>({
        ...{ clock, timers, ready, readsAtOnce },
        wanted: (queue) => queue.wanted,
        onFailed: (error) => observe({ kind: 'receiving-failed', what: 'reading messages', error }),
      }),
      running: this.#running.signal,
      settling: this.#settling.signal,
    };
  }

  async start(): Promise<void> {
    if (this.#queues.size === 0) return;
    const { store, lanes } = this.#options;
    this.#isOpen = true;
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
    this.#draining ??= this.#drain(ms);
    return this.#draining;
  }

  async close(): Promise<void> {
    this.#running.abort();
    await this.drain(0);
  }

  counts(): HandingOnCounts {
    let waiting = 0;
    let paused = 0;
    for (const { buffered, breaker } of this.#queues.values()) {
      waiting += buffered;
      if (breaker.mode === 'open') paused += 1;
    }
    return { inFlight: this.#parts.shares.inFlight, waiting, paused };
  }

  async #drain(ms: number): Promise<void> {
    this.#isOpen = false;
    for (const stop of this.#stops) stop();
    this.#stopGathering?.();
    this.#parts.alarm.close();
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#parts.shares.inFlight === 0) resolve();
    });
    await within(ms, empty, this.#timers);
    this.#running.abort();
    await within(abortMs, empty, this.#timers);
    this.#settling.abort();
  }

  /** The table changed, by whomever: which senders it concerns is not known. One look serves all changes of a short time. */
  readonly #hint = (): void => {
    if (this.#stopGathering !== undefined) {
      this.#isHinted = true;
      return;
    }
    this.#isHinted = false;
    void this.#needLanes();
    this.#stopGathering = this.#timers.after(hintMs, () => {
      this.#stopGathering = undefined;
      if (this.#isHinted && this.#isOpen) this.#hint();
    });
    for (const queue of this.#queues.values()) this.#wakeQueue(queue);
  };

  /** Lanes are asked for with the first message that is due, whoever may own its sender: a program that receives nothing leases nothing. */
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
    if (!this.#isOpen || !this.#options.lanes.owns(queue.lane)) return;
    queue.mayHoldMore = true;
    if (queue.breaker.mode === 'open') void heedAsked(this.#parts, queue);
    this.#ready(queue);
  }

  readonly #ready = (queue: SenderQueue): void => {
    if (!this.#isOpen) return;
    this.#parts.turns.add(queue, queue.sender.name);
    if (this.#isPumping) return;
    this.#isPumping = true;
    // What happens in one go, such as the settlements of one commit, is met with one pass.
    queueMicrotask(this.#pump);
  };

  readonly #pump = (): void => {
    const { turns } = this.#parts;
    try {
      for (let queue = turns.next(); queue !== undefined && this.#isOpen; queue = turns.next()) {
        begin(this.#parts, queue);
      }
    } finally {
      this.#isPumping = false;
    }
  };

  readonly #start = (begun: Attempt): void => {
    void attempt(this.#parts, begun).then(this.#ended);
  };

  readonly #ended = (): void => {
    const { held, shares } = this.#parts;
    const waiting = [...held];
    held.clear();
    for (const queue of waiting) this.#ready(queue);
    if (shares.inFlight === 0) this.#onEmpty?.();
  };

  readonly #onLanes = (): void => {
    for (const queue of this.#queues.values()) {
      queue.drop();
      this.#wakeQueue(queue);
    }
  };
}

async function within(ms: number, done: Promise<void>, timers: Timers): Promise<void> {
  let cancel: (() => void) | undefined;
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(ms, resolve);
  });
  await Promise.race([done, over]);
  cancel?.();
}
