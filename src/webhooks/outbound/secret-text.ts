/**
 * The text of an endpoint's secret, as receivers are given it: `whsec_` and Base64 (Standard Webhooks, "Signature scheme"). Each scheme
 * makes its own key of the text (§5.6).
 */

/** What a secret begins with, so that people and scanners of leaked secrets know it. */
export const secretPrefix = 'whsec_';

/** As many as HMAC-SHA256 gives back (RFC 2104 §3); Standard Webhooks permits 24 to 64. */
const secretBytes = 32;

/** @param random that many octets of good randomness */
export function makeEndpointSecret(random: (count: number) => Buffer): string {
  return `${secretPrefix}${random(secretBytes).toString('base64')}`;
}
