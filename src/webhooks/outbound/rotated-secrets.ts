/** The secrets that are active together while one replaces another (§5.6, §6.7): of an endpoint, and of a sender that is received from. */
import type { EndpointSecret } from '../../model/endpoint.ts';

/** At once, so many signatures there may be, or to try: beyond it the one that was rotated away first goes. */
export const secretsMax = 10;

/**
 * @param at milliseconds since the epoch
 * @returns the new one first, without an end also if it stood already; the others in the order of their making, the latest first, none of them
 * for longer than it had
 */
export function rotatedSecrets(
  stood: readonly EndpointSecret[],
  secret: string,
  at: number,
  overlapMs: number,
): readonly EndpointSecret[] {
  const others = stood
    .filter((each) => each.secret !== secret)
    .map((each) => ({
      secret: each.secret,
      until: Math.min(each.until ?? Number.POSITIVE_INFINITY, at + overlapMs),
    }))
    .filter(({ until }) => until > at);
  return [{ secret, until: null }, ...others.slice(0, secretsMax - 1)];
}
