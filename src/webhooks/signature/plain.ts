/**
 * The plain scheme of §5.6: `sha256=<hex>`, an HMAC-SHA256 over the body keyed with the whole text of the secret. Nothing in it says when
 * the body was sent: whoever gets hold of a message can send it again, so a receiver must remember the ids of deliveries.
 *
 * A field holds one signature, since every receiver of this scheme reads one. Where a list comes nevertheless, it is enough that one fits.
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

/** The field value. @param signature in lower-case hexadecimal */
export function plainHeader(signature: string): string {
  return `sha256=${signature}`;
}

export type SignPlain = {
  readonly body: Body;
  /** One signature is made with each. */
  readonly secrets: readonly string[];
};

/**
 * Values for the field `X-Hub-Signature-256` (§5.6), one for each secret in their order; a request has room for one.
 * @throws TypeError for what can be no secret or body
 */
export async function signPlain({ body, secrets }: SignPlain): Promise<readonly string[]> {
  const signatures = await hmacWithEach(keysOf(secrets, textKey), octetsOf(body));
  return signatures.map((signature) => plainHeader(encodeHex(signature)));
}

export type VerifyPlain = {
  /** As it came: bytes that were parsed and written again are other bytes. */
  readonly body: Body;
  /** The value of `X-Hub-Signature-256`. */
  readonly header: FieldValue;
  /** It is enough that one of them fits: several while a secret is being replaced. */
  readonly secrets: readonly string[];
};

export type PlainVerdict = { readonly ok: true } | Refused;

/**
 * Whether the sender signed this body, now or ever. Whatever stands in the header, it does not throw.
 * @throws TypeError for what can be no secret or body
 */
export async function verifyPlain({ body, header, secrets }: VerifyPlain): Promise<PlainVerdict> {
  const message = { body: octetsOf(body), header: () => header ?? undefined };
  const keys = prepareKeys(plainRule, secrets, webPrimitives);
  const verdict = await verifyByRule(plainRule, message, keys, { primitives: webPrimitives });
  return verdict.ok ? { ok: true } : verdict;
}
