/**
 * Secrets of endpoints and of senders: their creation, and which are active together during a rotation (§5.6, §6.7). A
 * secret is text, `whsec_` and Base64 (Standard Webhooks, "Signature scheme"); each scheme derives its own key from it.
 */
import type { EndpointSecret } from '../model/endpoint.ts';

/** Identifies a secret to people and to scanners for leaked secrets. */
const secretPrefix = 'whsec_';

/** The output length of HMAC-SHA256 (RFC 2104 §3); Standard Webhooks permits 24 to 64. */
const secretBytes = 32;

/** @param random returns that many octets of cryptographic randomness */
export function makeEndpointSecret(random: (count: number) => Buffer): string {
  return `${secretPrefix}${random(secretBytes).toString('base64')}`;
}

/** Active secrets, and so signatures to make or to try; beyond this the oldest is dropped. */
export const secretsMax = 10;

/**
 * @param at milliseconds since the epoch
 * @returns the new secret first, without an end even if it existed before; then the others, latest first, none of them
 * valid for longer than before
 */
export function rotatedSecrets(
  previous: readonly EndpointSecret[],
  secret: string,
  at: number,
  overlapMs: number,
): readonly EndpointSecret[] {
  const others = previous
    .filter((each) => each.secret !== secret)
    .map((each) => ({
      secret: each.secret,
      until: Math.min(each.until ?? Number.POSITIVE_INFINITY, at + overlapMs),
    }))
    .filter(({ until }) => until > at);
  return [{ secret, until: null }, ...others.slice(0, secretsMax - 1)];
}
