/**
 * The timestamped scheme of §5.6: `t=<unix seconds>,v1=<hex>[,v1=<hex>...]`, each `v1` an HMAC-SHA256 over `<t>.<body>`
 * keyed with the whole text of a secret. Other versions, such as `v0`, are ignored.
 */

import { hmacWithEach, keysOf, prepareKeys, textKey, webPrimitives } from './mac-keys.ts';
import { type Body, encodeHex, octetsOf, withPrefix } from './octets.ts';
import { type FieldValue, type Refused, refused } from './refusal.ts';
import type { HmacRule } from './signature-rule.ts';
import { type TimeWindow, timestampOf, toleranceSecondsDefault } from './signed-fields.ts';
import { verifyByRule } from './verify-by-rule.ts';

export const timestampedRule: HmacRule = {
  kind: 'hmac',
  header: 'service-signature',
  hash: 'sha256',
  encoding: 'hex',
  prefix: 'v1=',
  separator: ',',
  signed: '{timestamp}.{body}',
  timestamp: { prefix: 't=' },
  key: 'text',
  toleranceSeconds: toleranceSecondsDefault,
};

/** Returns the signed text before the body. */
export function timestampedPrefix(timestamp: number | string): string {
  return `${timestamp}.`;
}

/** Returns the field value. @param signatures in lower-case hexadecimal */
export function timestampedHeader(timestamp: number, signatures: readonly string[]): string {
  return `t=${timestamp},v1=${signatures.join(',v1=')}`;
}

export type SignTimestamped = {
  readonly body: Body;
  /** Each makes one signature. */
  readonly secrets: readonly string[];
  /** Unix seconds; default: now. */
  readonly timestamp?: number | undefined;
};

/**
 * Returns the value of the field `Service-Signature` (§5.6). @throws TypeError for an invalid secret, body or timestamp
 */
export async function signTimestamped({ body, secrets, timestamp }: SignTimestamped): Promise<string> {
  const seconds = timestampOf(timestamp);
  const content = withPrefix(timestampedPrefix(seconds), body);
  const signatures = await hmacWithEach(keysOf(secrets, textKey), content);
  return timestampedHeader(seconds, signatures.map(encodeHex));
}

export type VerifyTimestamped = TimeWindow & {
  /** As received: parsing and serialising changes the octets. */
  readonly body: Body;
  /** The value of `Service-Signature`, or of another sender's field, such as `Stripe-Signature`. */
  readonly header: FieldValue;
  /** One match is enough; several during a rotation. */
  readonly secrets: readonly string[];
};

/** `timestamp`: the signed Unix seconds. */
export type TimestampedVerdict = { readonly ok: true; readonly timestamp: number } | Refused;

/**
 * Verifies that the sender signed this body, within the tolerance. Reports `stale` and `ahead` only for valid
 * signatures. Never throws because of the header.
 * @throws TypeError for an invalid secret, body or tolerance
 */
export async function verifyTimestamped(options: VerifyTimestamped): Promise<TimestampedVerdict> {
  const { header, secrets } = options;
  const body = octetsOf(options.body);
  const keys = prepareKeys(timestampedRule, secrets, webPrimitives);
  const message = { body, header: () => header ?? undefined };
  const { toleranceSeconds, nowMs } = options;
  const verdict = await verifyByRule(timestampedRule, message, keys, {
    primitives: webPrimitives,
    toleranceSeconds,
    nowMs,
  });
  if (!verdict.ok) return verdict;
  return verdict.timestamp === null ? refused('malformed') : { ok: true, timestamp: verdict.timestamp };
}
