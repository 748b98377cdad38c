/**
 * Writes down what came of an attempt however long the store is away: an answer was given, and to send again because it could not be
 * written would be a duplicate of our own making. How many wait so at once is bounded by the capacity.
 */
import type { Observe } from '../../../observe/observation.ts';
import { StoreUnavailable } from '../../../store/store.ts';
import type { Attempted, Claim, Settle, Settled } from '../claim.ts';
import type { Timers } from './timers.ts';

const firstWaitMs = 100;
const waitMsMax = 5000;

export type SettleSurelyOptions = {
  readonly settle: Settle;
  readonly timers: Timers;
  readonly observe: Observe;
  /** Aborted when nobody waits any longer. */
  readonly signal: AbortSignal;
};

/** @returns undefined where it could not be written: the program stops, or the outcome cannot be understood */
export async function settleSurely(
  { settle, timers, observe, signal }: SettleSurelyOptions,
  claim: Claim,
  attempted: Attempted,
): Promise<Settled | undefined> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, waitMsMax)) {
    try {
      return await settle(claim, attempted);
    } catch (error) {
      if (waitMs === firstWaitMs) observe({ kind: 'sending-failed', what: 'writing down an attempt', error });
      if (!(error instanceof StoreUnavailable) || signal.aborted) return undefined;
    }
    await pause(waitMs, timers, signal);
    if (signal.aborted) return undefined;
  }
}

/** Ends early when the signal says so. */
function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
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
