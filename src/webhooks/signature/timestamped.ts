/**
 * The timestamped scheme of §5.6: `t=<unix seconds>,v1=<hex>[,v1=<hex>...]`, each `v1` an HMAC-SHA256 over `<t>.<body>` keyed with the
 * whole text of a secret. Other versions, such as `v0`, are ignored.
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

/** What is signed before the body. */
export function timestampedPrefix(timestamp: number | string): string {
  return `${timestamp}.`;
}

/** The field value. @param signatures in lower-case hexadecimal */
export function timestampedHeader(timestamp: number, signatures: readonly string[]): string {
  return `t=${timestamp},v1=${signatures.join(',v1=')}`;
}

export type SignTimestamped = {
  readonly body: Body;
  /** One signature is made with each. */
  readonly secrets: readonly string[];
  /** Unix seconds; now if not said. */
  readonly timestamp?: number | undefined;
};

/** The value of the field `Service-Signature` (§5.6). @throws TypeError for what can be no secret, body or timestamp */
export async function signTimestamped({ body, secrets, timestamp }: SignTimestamped): Promise<string> {
  const seconds = timestampOf(timestamp);
  const content = withPrefix(timestampedPrefix(seconds), body);
  const signatures = await hmacWithEach(keysOf(secrets, textKey), content);
  return timestampedHeader(seconds, signatures.map(encodeHex));
}

export type VerifyTimestamped = TimeWindow & {
  /** As it came: bytes that were parsed and written again are other bytes. */
  readonly body: Body;
  /** The value of `Service-Signature`, or of what another sender calls it, such as `Stripe-Signature`. */
  readonly header: FieldValue;
  /** It is enough that one of them fits: several while a secret is being replaced. */
  readonly secrets: readonly string[];
};

/** `timestamp`: the Unix seconds that were signed. */
export type TimestampedVerdict = { readonly ok: true; readonly timestamp: number } | Refused;

/**
 * Whether the sender signed this body, and did so now. `stale` and `ahead` are said only of what a secret did sign.
 * Whatever stands in the header, it does not throw.
 * @throws TypeError for what can be no secret, body or tolerance
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
