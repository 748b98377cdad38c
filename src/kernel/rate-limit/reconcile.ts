/**
 * Exchanges counters with other processes: one exchange an interval, over the counters that changed; no request waits
 * for it.
 *
 * Two modes: `resting` (nothing is queued; no timer runs) and `gathering` (a timer or an exchange is pending; counters
 * queued meanwhile start the next). So exchanges never overlap, and a slow database receives fewer.
 *
 * A failed exchange may have been committed, so its counts are not sent again: other processes may count too little,
 * but no caller is charged twice, and this process keeps its own count.
 */
import { type Store, StoreUnavailable } from '../../store/store.ts';
import { type Counter, windowMs } from './meter.ts';

export type ReconcileOptions = {
  readonly tally: Store['tally'];
  readonly intervalMs: number;
  /** Receives a failure that is not a passing outage, and the next one only after an exchange succeeded. */
  readonly onFailure: (error: unknown) => void;
};

export type Reconciler = {
  add(counter: Counter): void;
  /** Starts no further exchange; resolves when the current one has ended. */
  close(): Promise<void>;
};

/** Counters of one statement: 250 take about 2 ms, for which others on the connection may have to wait. */
const countersPerTallyMax = 250;

export function createReconciler({ tally, intervalMs, onFailure }: ReconcileOptions): Reconciler {
  let waiting: Counter[] = [];
  let timer: NodeJS.Timeout | undefined;
  let underWay: Promise<void> | undefined;
  let closed = false;
  let reported = false;

  function settle(error: unknown): void {
    underWay = undefined;
    if (error !== undefined && !(error instanceof StoreUnavailable) && !reported) onFailure(error);
    reported = error !== undefined && !(error instanceof StoreUnavailable);
    if (waiting.length > 0) gather();
  }

  function gather(): void {
    if (closed || timer !== undefined || underWay !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      const counters = waiting;
      waiting = [];
      underWay = exchange(counters, tally).then(settle);
    }, intervalMs);
    // Counts alone do not keep the process alive.
    timer.unref();
  }

  return {
    add(counter) {
      counter.isQueued = true;
      waiting.push(counter);
      gather();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await underWay;
    },
  };
}

/** Resolves with the failure, if any; the rest is then skipped, because it would wait for the same database. */
async function exchange(counters: readonly Counter[], tally: Store['tally']): Promise<unknown> {
  let failure: unknown;
  for (let at = 0; at < counters.length; at += countersPerTallyMax) {
    const part = counters.slice(at, at + countersPerTallyMax);
    for (const counter of part) counter.isQueued = false;
    if (failure !== undefined) continue;
    try {
      await exchangePart(part, tally);
    } catch (error) {
      failure = error;
    }
  }
  return failure;
}

async function exchangePart(counters: readonly Counter[], tally: Store['tally']): Promise<void> {
  const tallies = counters.map((counter) => {
    const add = counter.unsent;
    counter.unsent = 0;
    // A window is read until the next one is over.
    return { key: counter.key, add, expiresAt: (counter.window + 2) * windowMs };
  });
  const totals = await tally(tallies);
  for (const [index, counter] of counters.entries()) {
    const total = (totals[index] ?? 0) + counter.unsent;
    // The database may have dropped a counter that this process still has.
    if (total > counter.admitted) counter.admitted = total;
  }
}
