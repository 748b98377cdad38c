/**
 * The delivery engine (§6): takes what is due and sends it, for the endpoints that are this process's.
 *
 * There is no claim in the store. A lane of endpoints is one process's (lanes.ts), and within the process a delivery is taken in
 * memory (endpoint-queue.ts). So an attempt costs one unit, which writes down what came of it, and a process that dies leaves nothing
 * to clean up: what it had not written down is still due.
 *
 * What it does not do: decide what an answer means for a delivery (conclude.ts), or when a failed one is tried again (schedule.ts).
 */
import type { KnownEndpoint } from '../known-endpoint.ts';
import { partyOf } from '../party.ts';
import { Alarm } from './alarm.ts';
import { ask, heedAsked, sendAsked } from './asked.ts';
import { attempt } from './attempt.ts';
import { begin } from './begin.ts';
import { Capacity } from './capacity.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import { Looks } from './looks.ts';
import type { Attempt, EngineOptions, EngineParts } from './parts.ts';
import { Queues } from './queues.ts';
import { createReading } from './reading.ts';
import { createRoster, isSendable, type Roster } from './roster.ts';
import { runtimeTimers, type Timers } from './timers.ts';
import { Turns } from './turns.ts';

const readsAtOnce = 16;
/** Endpoints whose party had no room, and which get a turn again when an attempt ends, besides one for each free place. */
const crowdedPerEnd = 8;
/** Turns given before other work has the event loop: each may read, and begin four attempts, some 0.3 ms for one. */
const turnsPerPump = 16;
/** Between two sweeps over all endpoints, where other processes write and a wake may be lost. */
const sweepMs = 60_000;
/** After the time for draining: what is aborted is written down still. */
const abortMs = 1000;

export type EngineCounts = {
  /** Attempts under way. */
  readonly inFlight: number;
  /** Attempts that are being written down. */
  readonly settling: number;
  /** Of those under way, the ones that take long. */
  readonly slow: number;
  /** Deliveries that were read and wait in memory; all others wait in the store. */
  readonly waiting: number;
  /** Endpoints that something is known of in memory. */
  readonly endpoints: number;
  /** Endpoints that a time is set for. */
  readonly alarms: number;
};

export type Engine = {
  /** Begins with what is due; goes on until `drain`. */
  start(): Promise<void>;
  /**
   * Begins nothing more and waits for what is under way, at most so long; then aborts it.
   * @param ms milliseconds
   */
  drain(ms: number): Promise<void>;
  counts(): EngineCounts;
};

export function createEngine(options: EngineOptions): Engine {
  return new DeliveryEngine(options);
}

/**
 * An endpoint goes round in this circle. Nothing in it polls.
 * - A wake, an alarm, an answer or a change of the roster makes it *ready*: it gets a turn.
 * - In its turn (begin.ts) it begins a few attempts, or meets an obstacle. Each obstacle names what makes it ready again: the time of
 *   an alarm (left alone, asked to wait, over its rate, nothing due yet), an answer of its own (window full, probe under way), rows
 *   that are being read, or capacity that others hold.
 * - An attempt (attempt.ts) is sent, written down, and understood: what it says goes to breaker and window, what the delivery became
 *   may set an alarm.
 */
class DeliveryEngine implements Engine {
  readonly #options: EngineOptions;
  readonly #parts: EngineParts;
  readonly #timers: Timers;
  readonly #budget = { buffered: 0 };
  readonly #looks: Looks;
  readonly #sending = new AbortController();
  readonly #settling = new AbortController();
  #roster: Roster | undefined;
  #stopWakes: (() => void) | undefined;
  #stopSweeps: (() => void) | undefined;
  #running = false;
  #pumping = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: EngineOptions) {
    const { store, clock, random, settings, observe } = options;
    const timers = options.timers ?? runtimeTimers;
    const budget = this.#budget;
    const ready = this.#ready;
    this.#options = options;
    this.#timers = timers;
    this.#looks = new Looks({ store, timers, observe, onDue: this.#onDue });
    this.#parts = {
      ...{ ...options, timers, ready, start: this.#start },
      queues: new Queues({ store, breaker: settings, random, clock, budget }),
      capacity: new Capacity(settings.webhookInFlightMax),
      alarm: new Alarm({ clock, timers, ring: (id) => this.#wake(id) }),
      held: new Set(),
      crowded: new Set(),
      turns: new Turns(),
      asking: new Set(),
      isRunning: () => this.#running,
      isAlone: () => (this.#roster?.parties ?? 0) <= 1,
      read: createReading<EndpointQueue>({
        ...{ clock, timers, ready, readsAtOnce },
        wanted: (queue) => queue.wanted,
        onFailed: (error) => observe({ kind: 'sending-failed', what: 'reading deliveries', error }),
      }),
      sending: this.#sending.signal,
      settling: this.#settling.signal,
    };
  }

  async start(): Promise<void> {
    const { store, directory, wakes, lanes } = this.#options;
    const timers = this.#timers;
    this.#running = true;
    this.#stopWakes = wakes.onWake(this.#wake);
    if (store.shared) this.#stopSweeps = timers.after(sweepMs, this.#sweep);
    const listeners = { onCome: this.#onCome, onLeave: this.#onLeave, onLanes: this.#onLanes };
    this.#roster = createRoster({ directory, lanes, timers, ...listeners });
    this.#roster.review();
  }

  async drain(ms: number): Promise<void> {
    this.#running = false;
    this.#stopWakes?.();
    this.#stopSweeps?.();
    this.#roster?.close();
    this.#looks.close();
    this.#parts.alarm.close();
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#isEmpty()) resolve();
    });
    await within(ms, empty, this.#timers);
    this.#sending.abort();
    await within(abortMs, empty, this.#timers);
    this.#settling.abort();
  }

  counts(): EngineCounts {
    const { capacity, queues, alarm, monotonic } = this.#parts;
    const { sending: inFlight, settling } = capacity;
    const waiting = this.#budget.buffered;
    return {
      ...{ inFlight, settling, slow: capacity.slowAt(monotonic()), waiting },
      ...{ endpoints: queues.size, alarms: alarm.size },
    };
  }

  #isEmpty(): boolean {
    const { capacity } = this.#parts;
    return capacity.sending + capacity.settling === 0;
  }

  /** Gives a turn to an endpoint that has something due, or may have. */
  readonly #wake = (id: string, deliveryId?: string): void => {
    const { directory, lanes } = this.#options;
    const known = directory.get(id);
    // One that the directory does not know yet is looked at when it does.
    if (!isSendable(known) || !lanes.owns(id)) return;
    const queue = this.#open(known);
    queue.mayHoldMore = true;
    if (deliveryId !== undefined) ask(this.#parts, queue, deliveryId);
    else if (queue.breaker.mode === 'open' && this.#running) heedAsked(this.#parts, queue);
    this.#ready(queue);
  };

  #open({ endpoint }: KnownEndpoint): EndpointQueue {
    const { webhookEndpointInFlightDefault } = this.#options.settings;
    return this.#parts.queues.open(endpoint.id, endpoint.maxInFlight ?? webhookEndpointInFlightDefault);
  }

  readonly #ready = (queue: EndpointQueue): void => {
    if (!this.#running) return;
    const known = this.#options.directory.get(queue.id);
    this.#parts.turns.add(queue, known === undefined ? '' : partyOf(known));
    this.#pumpSoon();
  };

  /** What happens in one go, such as the answers of one read of a socket, is met with one pass. */
  #pumpSoon(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(this.#pump);
  }

  readonly #pump = (): void => {
    const { capacity, turns } = this.#parts;
    this.#pumping = false;
    for (let given = 0; this.#running && !capacity.full; given += 1) {
      const queue = turns.next();
      if (queue === undefined) return;
      begin(this.#parts, queue);
      if (given < turnsPerPump) continue;
      this.#pumping = true;
      setImmediate(this.#pump);
      return;
    }
  };

  readonly #start = (begun: Attempt): void => {
    void attempt(this.#parts, begun).then(this.#ended);
  };

  readonly #ended = (): void => {
    const { capacity, held, crowded, turns, asking } = this.#parts;
    for (const queue of asking) void sendAsked(this.#parts, queue);
    if (capacity.easy && held.size > 0) {
      for (const queue of held) this.#ready(queue);
      held.clear();
    }
    let left = crowdedPerEnd + capacity.free;
    for (const queue of crowded) {
      if (left === 0) break;
      left -= 1;
      crowded.delete(queue);
      this.#ready(queue);
    }
    if (turns.size > 0) this.#pumpSoon();
    if (this.#isEmpty()) this.#onEmpty?.();
  };

  readonly #onDue = (id: string, at: number): void => {
    const { alarm, clock } = this.#parts;
    if (at <= clock()) this.#wake(id);
    else if (at < (alarm.at(id) ?? Number.POSITIVE_INFINITY)) alarm.set(id, at);
  };

  readonly #onCome = (id: string, returning: boolean): void => {
    const known = this.#options.directory.get(id);
    if (returning && known !== undefined) {
      const queue = this.#open(known);
      queue.breaker.reset();
      queue.window.paused();
      queue.notBefore = 0;
    }
    this.#looks.add(id);
  };

  readonly #onLeave = (id: string): void => {
    const { alarm, queues, turns, held, crowded, asking } = this.#parts;
    alarm.clear(id);
    const queue = queues.get(id);
    if (queue === undefined) return;
    turns.remove(queue);
    held.delete(queue);
    crowded.delete(queue);
    asking.delete(queue);
    queue.asked.clear();
    queues.forget(queue);
  };

  readonly #onLanes = (): void => {
    for (const queue of this.#parts.queues.all()) {
      queue.drop();
      if (queue.mayHoldMore) this.#ready(queue);
    }
  };

  readonly #sweep = (): void => {
    for (const id of this.#roster?.ids() ?? []) this.#looks.add(id);
    this.#stopSweeps = this.#timers.after(sweepMs, this.#sweep);
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
