/**
 * Limits attempts to open a WebSocket (§9) by a token bucket for each caller: it holds `burst` attempts and gets one back every `attemptMs`. A caller is a
 * principal, or without one an address, so that users behind one address do not use up each other's attempts. A burst lets several tabs, or a page
 * that is loaded again, connect at once: a browser shows its script no 429, only that the connection closed (1006).
 *
 * Asked after the handshake was found sound, so what is no attempt does not count; a refused attempt does not count either, and Retry-After does not
 * move away from a client that keeps trying. Each process counts for itself.
 */
import type { Allowance } from '../../http/allowance.ts';
import { memoryBounds } from '../../memory/bounds.ts';

export type Attempts = {
  /** Counts the attempt, unless it comes too soon; undefined: no limit applies. @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance | undefined;
  /** The same without counting it. */
  isTooSoon(caller: string, nowMs: number): boolean;
};

/** Callers remembered. One that is forgotten has its whole burst again. */
export const attemptCallersMax = memoryBounds.realtimeAttempts.entries;

/** @param attemptMs 0 sets no limit */
export function createAttempts(attemptMs: number, burst: number): Attempts {
  if (attemptMs === 0) return { admit: () => undefined, isTooSoon: () => false };
  const policy = `"realtime";q=${burst};w=${Math.ceil((burst * attemptMs) / 1000)}`;
  /** When each bucket is full again; the one used least recently first. */
  const fullAt = new Map<string, number>();

  /** Time until all that was taken from the bucket is back. A clock that stepped back shuts nobody out for longer than that takes. */
  function owedMs(caller: string, nowMs: number): number {
    const at = fullAt.get(caller);
    return at === undefined ? 0 : Math.min(burst * attemptMs, Math.max(0, at - nowMs));
  }

  function forgetOld(nowMs: number): void {
    for (const [caller, at] of fullAt) {
      if (at > nowMs && fullAt.size < attemptCallersMax) return;
      fullAt.delete(caller);
    }
  }

  return {
    isTooSoon: (caller, nowMs) => owedMs(caller, nowMs) > (burst - 1) * attemptMs,
    admit(caller, nowMs) {
      const owed = owedMs(caller, nowMs);
      const exceeded = owed > (burst - 1) * attemptMs;
      const owedAfter = exceeded ? owed : owed + attemptMs;
      if (!exceeded) {
        fullAt.delete(caller);
        forgetOld(nowMs);
        fullAt.set(caller, nowMs + owedAfter);
      }
      const remaining = Math.max(0, Math.floor(burst - owedAfter / attemptMs));
      // Until the next attempt is back.
      const waitMs = owedAfter - (Math.ceil(owedAfter / attemptMs) - 1) * attemptMs;
      const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
      const rate = `"realtime";r=${remaining};t=${retryAfterSeconds}`;
      return { exceeded, policy, rate, remaining: String(remaining), retryAfterSeconds };
    },
  };
}
