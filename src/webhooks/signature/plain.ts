/**
 * The plain scheme of §5.6: `sha256=<hex>`, an HMAC-SHA256 over the body keyed with the whole text of the secret. Nothing in it says when
 * the body was sent: whoever gets hold of a message can send it again, so a receiver must remember the ids of deliveries.
 *
 * A field holds one signature, since every receiver of this scheme reads one. Where a list comes nevertheless, it is enough that one fits.
 */
import { decodeHex, encodeHex } from './hex.ts';
import { hmacBytes, hmacWithEach } from './hmac.ts';
import { type Body, octetsOf, sameOctets } from './octets.ts';
import { type FieldValue, type Refused, refused, refuseField, signaturesMax } from './refusal.ts';
import { keysOf, textKey } from './secret.ts';

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
  const keys = keysOf(secrets, textKey);
  const content = octetsOf(body);
  const unreadable = refuseField(header);
  if (unreadable !== undefined) return refused(unreadable);
  const signatures = readHeader(String(header));
  if (signatures === undefined) return refused('malformed');
  const expected = await hmacWithEach(keys, content);
  const fits = signatures.some((signature) => expected.some((each) => sameOctets(each, signature)));
  return fits ? { ok: true } : refused('no-match');
}

function readHeader(header: string): readonly Uint8Array[] | undefined {
  const items = header.split(',');
  if (items.length > signaturesMax) return undefined;
  const signatures: Uint8Array[] = [];
  for (const item of items) {
    const at = item.indexOf('=');
    if (at < 0) return undefined;
    if (item.slice(0, at).trim() !== 'sha256') continue;
    const signature = decodeHex(item.slice(at + 1).trim(), hmacBytes);
    if (signature !== undefined) signatures.push(signature);
  }
  return signatures;
}
