/**
 * The delivery engine (§6): takes what is due and sends it, for the endpoints that are this process's.
 *
 * There is no claim in the store. A lane of endpoints is one process's (lanes.ts), and within the process a delivery is taken in
 * memory (endpoint-queue.ts). So an attempt costs one unit, which writes down what came of it, and a process that dies leaves nothing
 * to clean up: what it had not written down is still due.
 *
 * An endpoint goes round in this circle. Nothing in it polls.
 * - A wake, an alarm, an answer or a change of the roster makes it *ready*: it gets a turn.
 * - In its turn (begin.ts) it begins a few attempts, or meets an obstacle. Each obstacle names what makes it ready again: the time of
 *   an alarm (left alone, asked to wait, over its rate, nothing due yet), an answer of its own (window full, probe under way), rows
 *   that are being read, or capacity that others hold.
 * - An attempt (attempt.ts) is sent, written down, and understood: what it says goes to breaker and window, what the delivery became
 *   may set an alarm.
 *
 * What it does not do: decide what an answer means for a delivery (conclude.ts), or when a failed one is tried again (schedule.ts).
 */
import type { KnownEndpoint } from '../known-endpoint.ts';
import { Alarm } from './alarm.ts';
import { heedAsked } from './asked.ts';
import { attempt } from './attempt.ts';
import { begin } from './begin.ts';
import { Capacity } from './capacity.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import { Looks } from './looks.ts';
import type { Attempt, EngineOptions, EngineParts } from './parts.ts';
import { Queues } from './queues.ts';
import { createReading } from './reading.ts';
import { createRoster, isSendable } from './roster.ts';
import { runtimeTimers, type Timers } from './timers.ts';
import { Turns } from './turns.ts';

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
  const { store, directory, wakes, lanes, clock, monotonic, random, settings, observe } = options;
  const timers = options.timers ?? runtimeTimers;
  const capacity = new Capacity(settings.webhookInFlightMax);
  const budget = { buffered: 0 };
  const queues = new Queues({ store, breaker: settings, random, clock, budget });
  const turns = new Turns<EndpointQueue>();
  const held = new Set<EndpointQueue>();
  const sending = new AbortController();
  const settling = new AbortController();
  let stopWakes: (() => void) | undefined;
  let stopSweeps: (() => void) | undefined;
  let running = false;
  let pumping = false;
  let onEmpty: (() => void) | undefined;

  const alarm = new Alarm({ clock, timers, ring: wake });
  const reading = createReading({ clock, timers, observe, ready, budget });
  const looks = new Looks({ store, timers, observe, onDue });
  const roster = createRoster({ directory, lanes, timers, onCome, onLeave, onLanes });
  const parts: EngineParts = {
    ...{ ...options, timers, queues, capacity, alarm, held, turns, ready, read: reading.read, start },
    ...{ sending: sending.signal, settling: settling.signal },
  };

  /** Gives a turn to an endpoint that has something due, or may have. */
  function wake(id: string): void {
    const known = directory.get(id);
    // One that the directory does not know yet is looked at when it does.
    if (!isSendable(known) || !lanes.owns(id)) return;
    const queue = queues.open(id, inFlightMaxOf(known.endpoint.maxInFlight));
    queue.mayHoldMore = true;
    if (queue.breaker.mode === 'open' && running) heedAsked(parts, queue);
    ready(queue);
  }

  function inFlightMaxOf(own: number | undefined): number {
    return own ?? settings.webhookEndpointInFlightDefault;
  }

  function ready(queue: EndpointQueue): void {
    if (!running) return;
    const known = directory.get(queue.id);
    turns.add(queue, known === undefined ? '' : partyOf(known));
    pumpSoon();
  }

  /** What happens in one go, such as the answers of one read of a socket, is met with one pass. */
  function pumpSoon(): void {
    if (pumping) return;
    pumping = true;
    queueMicrotask(pump);
  }

  function pump(): void {
    try {
      while (running && !capacity.full) {
        const queue = turns.next();
        if (queue === undefined) return;
        begin(parts, queue);
      }
    } finally {
      pumping = false;
    }
  }

  function start(begun: Attempt): void {
    void attempt(parts, begun).then(ended);
  }

  function ended(): void {
    if (capacity.easy && held.size > 0) {
      for (const queue of held) ready(queue);
      held.clear();
    }
    if (turns.size > 0) pumpSoon();
    if (capacity.sending + capacity.settling === 0) onEmpty?.();
  }

  function onDue(id: string, at: number): void {
    if (at <= clock()) wake(id);
    else if (at < (alarm.at(id) ?? Number.POSITIVE_INFINITY)) alarm.set(id, at);
  }

  function onCome(id: string, returning: boolean): void {
    const known = directory.get(id);
    if (returning && known !== undefined) {
      const queue = queues.open(id, inFlightMaxOf(known.endpoint.maxInFlight));
      queue.breaker.reset();
      queue.window.paused();
      queue.notBefore = 0;
    }
    looks.add(id);
  }

  function onLeave(id: string): void {
    alarm.clear(id);
    const queue = queues.get(id);
    if (queue === undefined) return;
    turns.remove(queue);
    held.delete(queue);
    queues.forget(queue);
  }

  function onLanes(): void {
    for (const queue of queues.all()) {
      queue.drop();
      if (queue.mayHoldMore) ready(queue);
    }
  }

  function sweep(): void {
    for (const id of roster.ids()) looks.add(id);
    stopSweeps = timers.after(sweepMs, sweep);
  }

  return {
    async start() {
      running = true;
      stopWakes = wakes.onWake(wake);
      if (store.shared) stopSweeps = timers.after(sweepMs, sweep);
      roster.review();
    },
    async drain(ms) {
      running = false;
      stopWakes?.();
      stopSweeps?.();
      roster.close();
      looks.close();
      alarm.close();
      const empty = new Promise<void>((resolve) => {
        onEmpty = resolve;
        if (capacity.sending + capacity.settling === 0) resolve();
      });
      await within(ms, empty, timers);
      sending.abort();
      await within(abortMs, empty, timers);
      settling.abort();
    },
    counts() {
      const { sending: inFlight, settling } = capacity;
      const slow = capacity.slowAt(monotonic());
      return {
        inFlight,
        settling,
        slow,
        waiting: budget.buffered,
        endpoints: queues.size,
        alarms: alarm.size,
      };
    },
  };
}

/** Whose turn an endpoint waits in: its tenant's, or its owner's where there are no tenants. */
function partyOf({ endpoint, principal, owner }: KnownEndpoint): string {
  return endpoint.tenant ?? principal?.tenant ?? owner ?? '';
}

async function within(ms: number, done: Promise<void>, timers: Timers): Promise<void> {
  let cancel: (() => void) | undefined;
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(ms, resolve);
  });
  await Promise.race([done, over]);
  cancel?.();
}
