/**
 * Tells the other processes what was admitted here, and learns what they admitted: one exchange an interval over the counters
 * that changed in it, beside the requests and never waited for by one.
 *
 * Two modes: `resting` (nothing waits; no timer runs) and `gathering` (a timer or an exchange is under way, after which what came
 * meanwhile gathers again). So exchanges never overlap, and a database that answers slowly is asked less often.
 *
 * An exchange that failed may have been carried out. What it told is not told again: others may count too little, but
 * no caller is charged twice, and what this process admitted it goes on counting by itself.
 */
import { type Store, StoreUnavailable } from '../../store/store.ts';
import type { Counter } from './counter.ts';
import { windowMs } from './window.ts';

export type ReconcileOptions = {
  readonly tally: Store['tally'];
  readonly intervalMs: number;
  /** Told of a failure that is no passing lack of the database, and again only after an exchange that went well. */
  readonly onFailure: (error: unknown) => void;
};

export type Reconciler = {
  /** Has the counter told with the next exchange. */
  add(counter: Counter): void;
  /** Begins no further exchange; resolves when the one under way has ended. */
  close(): Promise<void>;
};

/** Counters of one statement: 250 take some 2 ms, which others on its connection may have to wait. */
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
    // Counts alone are no reason to stay.
    timer.unref();
  }

  return {
    add(counter) {
      counter.waits = true;
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

/** Resolves with the failure, if there was one; after it the rest is not tried, which would wait for the same database. */
async function exchange(counters: readonly Counter[], tally: Store['tally']): Promise<unknown> {
  let failure: unknown;
  for (let at = 0; at < counters.length; at += countersPerTallyMax) {
    const part = counters.slice(at, at + countersPerTallyMax);
    for (const counter of part) counter.waits = false;
    if (failure !== undefined) continue;
    try {
      await tell(part, tally);
    } catch (error) {
      failure = error;
    }
  }
  return failure;
}

async function tell(counters: readonly Counter[], tally: Store['tally']): Promise<void> {
  const tallies = counters.map((counter) => {
    const add = counter.untold;
    counter.untold = 0;
    // A window is asked for until the one after it is over.
    return { key: counter.key, add, expiresAt: (counter.window + 2) * windowMs };
  });
  const totals = await tally(tallies);
  for (const [index, counter] of counters.entries()) {
    const total = (totals[index] ?? 0) + counter.untold;
    // The database may have forgotten what this process has not.
    if (total > counter.admitted) counter.admitted = total;
  }
}
