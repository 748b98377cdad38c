/**
 * How often one address may try to open a WebSocket (§9): once in `realtimeAttemptMs`. Asked after the handshake was found sound, so what is
 * no attempt does not count; a refused attempt does not count either, and Retry-After does not move away from who keeps trying.
 *
 * Counted by each process for itself: whoever reaches several has as many attempts.
 */
import type { Allowance } from '../../http/allowance.ts';

export type Attempts = {
  /** Counts the attempt, unless it comes too soon; undefined: no limit applies. @param nowMs since the epoch */
  admit(address: string, nowMs: number): Allowance | undefined;
  /** The same without counting it. */
  isTooSoon(address: string, nowMs: number): boolean;
};

/** Addresses remembered. Whoever has more of them gains nothing by the oldest being forgotten. */
export const attemptAddressesMax = 65_536;

/** @param attemptMs 0 sets no limit */
export function createAttempts(attemptMs: number): Attempts {
  if (attemptMs === 0) return { admit: () => undefined, isTooSoon: () => false };
  const seconds = Math.max(1, Math.ceil(attemptMs / 1000));
  const policy = `"realtime";q=1;w=${seconds}`;
  /** When each was admitted last, the oldest first. */
  const admittedAt = new Map<string, number>();

  function leftMs(address: string, nowMs: number): number {
    const at = admittedAt.get(address);
    // A clock that stepped back shuts nobody out for longer than the limit.
    return at === undefined ? 0 : Math.min(attemptMs, at + attemptMs - nowMs);
  }

  function forgetOld(nowMs: number): void {
    for (const [address, at] of admittedAt) {
      if (at + attemptMs > nowMs && admittedAt.size < attemptAddressesMax) return;
      admittedAt.delete(address);
    }
  }

  return {
    isTooSoon: (address, nowMs) => leftMs(address, nowMs) > 0,
    admit(address, nowMs) {
      const left = leftMs(address, nowMs);
      const exceeded = left > 0;
      if (!exceeded) {
        admittedAt.delete(address);
        forgetOld(nowMs);
        admittedAt.set(address, nowMs);
      }
      const retryAfterSeconds = Math.max(1, Math.ceil((exceeded ? left : attemptMs) / 1000));
      return {
        exceeded,
        policy,
        rate: `"realtime";r=0;t=${retryAfterSeconds}`,
        remaining: '0',
        retryAfterSeconds,
      };
    },
  };
}
