/**
 * Counters in memory (`tally` of the contract); no other process uses the folder. A sweep removes expired counters when their number has
 * doubled, so its cost is amortised.
 * Clients choose the keys: accounts and addresses of logins. If too many counters are current, a sweep removes those with the lowest
 * totals, so flooding with new keys resets no counter with many counts.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { Tally } from '../store.ts';

type Counter = { total: number; expiresAt: number };

/** Counters kept before the first sweep: about 1 MiB. */
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
      // A read of an unknown key creates no counter.
      if (add === 0) return 0;
      if (counters.size >= sweepAt) sweep();
      counters.set(key, { total: add, expiresAt });
      return add;
    });
}
