/**
 * Counters of one process (`tally` of the contract), in memory: no other process has the folder. Counters that are over are swept
 * out whenever as many were made as are kept, so the cost of a sweep is shared by those that made it needed.
 */
import type { Tally } from '../store.ts';

type Counter = { total: number; expiresAt: number };

/** Counters kept before the first sweep looks for those that are over: about 1 MiB. */
const countersBeforeSweep = 8192;

/** @param clock milliseconds since the epoch */
export function createTallies(clock: () => number): (tallies: readonly Tally[]) => readonly number[] {
  const counters = new Map<string, Counter>();
  let sweepAt = countersBeforeSweep;

  function sweep(): void {
    const now = clock();
    for (const [key, { expiresAt }] of counters) if (expiresAt <= now) counters.delete(key);
    sweepAt = Math.max(countersBeforeSweep, counters.size * 2);
  }

  return (tallies) =>
    tallies.map(({ key, add, expiresAt }) => {
      const counter = counters.get(key);
      if (counter !== undefined) {
        counter.total += add;
        counter.expiresAt = Math.max(counter.expiresAt, expiresAt);
        return counter.total;
      }
      if (counters.size >= sweepAt) sweep();
      counters.set(key, { total: add, expiresAt });
      return add;
    });
}
