/**
 * Counters of one process (`tally` of the contract), in memory: no other process has the folder. Counters that are over are swept
 * out whenever as many were made as are kept, so the cost of a sweep is shared by those that made it needed.
 *
 * Clients choose what is counted: accounts and addresses of sign-ins. Where too many counters are not over, those with the least counts
 * go: whoever tries each of so many names once gets no further than by trying names that were never counted.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { Tally } from '../store.ts';

type Counter = { total: number; expiresAt: number };

/** Counters kept before the first sweep looks for those that are over: about 1 MiB. */
const countersBeforeSweep = 8192;
const countersMax = memoryBounds.tallies.entries;

/** @param clock milliseconds since the epoch */
export function createTallies(clock: () => number): (tallies: readonly Tally[]) => readonly number[] {
  const counters = new Map<string, Counter>();
  let sweepAt = countersBeforeSweep;

  function sweep(): void {
    const now = clock();
    for (const [key, { expiresAt }] of counters) if (expiresAt <= now) counters.delete(key);
    for (let least = 1; counters.size > countersMax / 2; least *= 2) {
      for (const [key, { total }] of counters) if (total <= least) counters.delete(key);
    }
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
      // A key that is only asked for makes no counter.
      if (add === 0) return 0;
      if (counters.size >= sweepAt) sweep();
      counters.set(key, { total: add, expiresAt });
      return add;
    });
}
