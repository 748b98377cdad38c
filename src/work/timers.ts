/** Timers as a parameter, so that a test can let a week pass at once, and one alarm for all queues. */

export type Timers = {
  /** Calls back once after `delayMs`; returns a function that cancels the timer. */
  after(delayMs: number, call: () => void): () => void;
  /** Milliseconds of a clock that is never set, for durations. */
  monotonic(): number;
};

/** Timers of the runtime. They do not keep an otherwise idle program running. */
export const runtimeTimers: Timers = {
  after(delayMs, call) {
    const timer = setTimeout(call, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  monotonic: () => performance.now(),
};

/** Resolves when the work is done, or after `ms` milliseconds. */
export async function endedWithin(ms: number, done: Promise<void>, timers: Timers): Promise<void> {
  let cancel: (() => void) | undefined;
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(ms, resolve);
  });
  await Promise.race([done, over]);
  cancel?.();
}

/** Waits, but not after the signal aborts. */
export function pauseUntil(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.after(ms, end);
    signal.addEventListener('abort', end, { once: true });
    function end(): void {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    }
  });
}

/**
 * Minimum interval of looks after hints, each a read per queue (40 µs for a sender). What comes from other processes,
 * or is replayed, may wait this long.
 */
const hintMs = 100;

type Hints = { readonly hint: () => void; stop(): void };

/** The first hint causes a look at once, and all others within the interval one more at its end. */
export function gatherHints(timers: Timers, look: () => void): Hints {
  let stopGathering: (() => void) | undefined;
  let isHinted = false;
  const hint = (): void => {
    if (stopGathering !== undefined) {
      isHinted = true;
      return;
    }
    isHinted = false;
    stopGathering = timers.after(hintMs, () => {
      stopGathering = undefined;
      if (isHinted) hint();
    });
    look();
  };
  return { hint, stop: () => stopGathering?.() };
}

/** The longest sleep: a clock that was set is noticed within it. */
const sleepMsMax = 300_000;
/** A timer that ends this much before its time, by the clock, shows that the clock was set back. */
export const setBackMs = 60_000;

type Entry = { readonly id: string; readonly at: number };

/**
 * One timer for the next due time of all queues. A queue has at most one time; setting another replaces it. Times are
 * of the wall clock, like those of due work.
 */
export class Alarm {
  readonly #clock: () => number;
  readonly #ring: (queueId: string) => void;
  readonly #timers: Timers;
  /** A binary heap by time. Replaced entries remain until they reach the top. */
  #heap: Entry[] = [];
  readonly #times = new Map<string, number>();
  #armedAt = Number.POSITIVE_INFINITY;
  /** The time of the clock when the timer ends, unless it is set. */
  #awakeAt = 0;
  #disarm: (() => void) | undefined;

  constructor(clock: () => number, ring: (queueId: string) => void, timers: Timers) {
    this.#clock = clock;
    this.#ring = ring;
    this.#timers = timers;
  }

  get size(): number {
    return this.#times.size;
  }

  at(id: string): number | undefined {
    return this.#times.get(id);
  }

  set(id: string, at: number): void {
    if (this.#times.get(id) === at) return;
    this.#times.set(id, at);
    push(this.#heap, { id, at });
    // Rebuilding removes replaced entries and keeps the heap within twice the number of queues.
    if (this.#heap.length > 2 * this.#times.size + 64) this.#rebuild();
    this.#arm();
  }

  clear(id: string): void {
    this.#times.delete(id);
  }

  close(): void {
    this.#times.clear();
    this.#heap = [];
    this.#disarm?.();
    this.#disarm = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
  }

  #rebuild(): void {
    this.#heap = [];
    for (const [id, at] of this.#times) push(this.#heap, { id, at });
  }

  #isCurrent({ id, at }: Entry): boolean {
    return this.#times.get(id) === at;
  }

  #arm(): void {
    let [first] = this.#heap;
    while (first !== undefined && !this.#isCurrent(first)) {
      pop(this.#heap);
      [first] = this.#heap;
    }
    if (first === undefined || first.at >= this.#armedAt) return;
    this.#disarm?.();
    this.#armedAt = first.at;
    const now = this.#clock();
    const delayMs = Math.min(Math.max(0, first.at - now), sleepMsMax);
    this.#awakeAt = now + delayMs;
    this.#disarm = this.#timers.after(delayMs, () => this.#fire());
  }

  /** The clock was set back: who waits for a time that it had set looks again. */
  #ringAll(): void {
    const ids = [...this.#times.keys()];
    this.#times.clear();
    this.#heap = [];
    for (const id of ids) this.#ring(id);
  }

  #fire(): void {
    this.#disarm = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
    const now = this.#clock();
    if (now < this.#awakeAt - setBackMs) this.#ringAll();
    for (let [first] = this.#heap; first !== undefined && first.at <= now; [first] = this.#heap) {
      pop(this.#heap);
      if (!this.#isCurrent(first)) continue;
      this.#times.delete(first.id);
      this.#ring(first.id);
    }
    this.#arm();
  }
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.length;
  heap.push(entry);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || parent.at <= entry.at) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const right = left + 1;
    const rightEntry = heap[right];
    const leftEntry = heap[left];
    if (leftEntry === undefined) break;
    const less = rightEntry !== undefined && rightEntry.at < leftEntry.at ? right : left;
    const child = less === right ? rightEntry : leftEntry;
    if (child === undefined || child.at >= last.at) break;
    heap[at] = child;
    at = less;
  }
  heap[at] = last;
}
