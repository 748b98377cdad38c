/**
 * Writes down what came of an attempt however long the store is away: an answer was given, or a message handed on, and to do so again because it
 * could not be written would be a duplicate of our own making. How many wait so at once is bounded by what may be under way.
 */
import { StoreUnavailable } from '../../../store/store.ts';
import type { Timers } from './timers.ts';

const firstWaitMs = 100;
const waitMsMax = 5000;

export type SettleSurelyOptions = {
  readonly timers: Timers;
  /** Aborted when nobody waits any longer. */
  readonly signal: AbortSignal;
  /** Told of the first failure. */
  readonly onFailed: (error: unknown) => void;
};

/** @returns undefined where it could not be written: the program stops, or the outcome cannot be understood */
export async function settleSurely<S>(
  settle: () => Promise<S>,
  { timers, signal, onFailed }: SettleSurelyOptions,
): Promise<S | undefined> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, waitMsMax)) {
    try {
      return await settle();
    } catch (error) {
      if (waitMs === firstWaitMs) onFailed(error);
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
