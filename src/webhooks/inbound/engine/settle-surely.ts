/**
 * Writes down what came of an attempt however long the store is away: a message was handed on, and to do so again because it could not be
 * written would be a repetition of our own making. How many wait so at once is bounded by what may be in flight.
 */
import type { Observe } from '../../../observe/observation.ts';
import { StoreUnavailable } from '../../../store/store.ts';
import type { Timers } from '../../outbound/engine/timers.ts';
import type { Settled } from '../settle/settle.ts';

const firstWaitMs = 100;
const waitMsMax = 5000;

export type SettleSurelyOptions = {
  readonly timers: Timers;
  readonly observe: Observe;
  /** Aborted when nobody waits any longer. */
  readonly settling: AbortSignal;
};

/** @returns undefined where it could not be written: the program stops, or the outcome cannot be understood */
export async function settleSurely(
  settle: () => Promise<Settled>,
  { timers, observe, settling }: SettleSurelyOptions,
): Promise<Settled | undefined> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, waitMsMax)) {
    try {
      return await settle();
    } catch (error) {
      if (waitMs === firstWaitMs)
        observe({ kind: 'receiving-failed', what: 'writing down an attempt', error });
      if (!(error instanceof StoreUnavailable) || settling.aborted) return undefined;
    }
    await pause(waitMs, timers, settling);
    if (settling.aborted) return undefined;
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
