/**
 * Secrets of endpoints and of senders: how one is made, and which are active together while one replaces another (§5.6, §6.7). A secret is
 * text, `whsec_` and Base64 (Standard Webhooks, "Signature scheme"), and each scheme makes its own key of it.
 */
import type { EndpointSecret } from '../model/endpoint.ts';

/** What a secret begins with, so that people and scanners of leaked secrets know it. */
const secretPrefix = 'whsec_';

/** As many as HMAC-SHA256 gives back (RFC 2104 §3); Standard Webhooks permits 24 to 64. */
const secretBytes = 32;

/** @param random that many octets of good randomness */
export function makeEndpointSecret(random: (count: number) => Buffer): string {
  return `${secretPrefix}${random(secretBytes).toString('base64')}`;
}

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
