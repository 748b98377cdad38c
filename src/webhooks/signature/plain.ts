/**
 * The plain scheme of §5.6: `sha256=<hex>`, an HMAC-SHA256 over the body keyed with the whole text of the secret. It
 * signs no time: an attacker with a recorded message can send it again, so a receiver must remember the ids of
 * deliveries.
 *
 * A field holds one signature, because receivers of this scheme read only one. If a list comes nevertheless, one
 * matching signature is enough.
 */

import { hmacWithEach, keysOf, prepareKeys, textKey, webPrimitives } from './mac-keys.ts';
import { type Body, encodeHex, octetsOf } from './octets.ts';
import type { FieldValue, Refused } from './refusal.ts';
import type { HmacRule } from './signature-rule.ts';
import { verifyByRule } from './verify-by-rule.ts';

export const plainRule: HmacRule = {
  kind: 'hmac',
  header: 'x-hub-signature-256',
  hash: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  separator: ',',
  signed: '{body}',
  key: 'text',
  toleranceSeconds: 0,
};

/** Returns the field value. @param signature in lower-case hexadecimal */
export function plainHeader(signature: string): string {
  return `sha256=${signature}`;
}

export type SignPlain = {
  readonly body: Body;
  /** Each makes one signature. */
  readonly secrets: readonly string[];
};

/**
 * Returns values for the field `X-Hub-Signature-256` (§5.6), one for each secret in order; a request holds only one.
 * @throws TypeError for an invalid secret or body
 */
export async function signPlain({ body, secrets }: SignPlain): Promise<readonly string[]> {
  const signatures = await hmacWithEach(keysOf(secrets, textKey), octetsOf(body));
  return signatures.map((signature) => plainHeader(encodeHex(signature)));
}

export type VerifyPlain = {
  /** As received: parsing and serialising changes the octets. */
  readonly body: Body;
  /** The value of `X-Hub-Signature-256`. */
  readonly header: FieldValue;
  /** One match is enough; several during a rotation. */
  readonly secrets: readonly string[];
};

export type PlainVerdict = { readonly ok: true } | Refused;

/**
 * Verifies that the sender signed this body, at any time. Never throws because of the header.
 * @throws TypeError for an invalid secret or body
 */
export async function verifyPlain({ body, header, secrets }: VerifyPlain): Promise<PlainVerdict> {
  const message = { body: octetsOf(body), header: () => header ?? undefined };
  const keys = prepareKeys(plainRule, secrets, webPrimitives);
  const verdict = await verifyByRule(plainRule, message, keys, { primitives: webPrimitives });
  return verdict.ok ? { ok: true } : verdict;
}
