/**
 * The timestamped scheme of §5.6: `t=<unix seconds>,v1=<hex>[,v1=<hex>...]`, each `v1` an HMAC-SHA256 over `<t>.<body>` keyed with the
 * whole text of a secret. Other versions, such as `v0`, are ignored.
 */
import { decodeHex, encodeHex } from './hex.ts';
import { hmacBytes, hmacWithEach } from './hmac.ts';
import { type Body, octetsOf, sameOctets, withPrefix } from './octets.ts';
import { type FieldValue, type Refused, refused, refuseField, signaturesMax } from './refusal.ts';
import { keysOf, textKey } from './secret.ts';
import { readTimestamp, refuseTime, type TimeWindow, timestampOf } from './time-window.ts';

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
  const { body, header, secrets } = options;
  const keys = keysOf(secrets, textKey);
  octetsOf(body);
  const unreadable = refuseField(header);
  if (unreadable !== undefined) return refused(unreadable);
  const read = readHeader(String(header));
  if (read === undefined) return refused('malformed');
  const expected = await hmacWithEach(keys, withPrefix(timestampedPrefix(read.text), body));
  if (!read.signatures.some((signature) => expected.some((each) => sameOctets(each, signature)))) {
    return refused('no-match');
  }
  const reason = refuseTime(read.timestamp, options);
  return reason === undefined ? { ok: true, timestamp: read.timestamp } : refused(reason);
}

type Header = {
  readonly timestamp: number;
  /** The timestamp as it was written, which is how it was signed. */
  readonly text: string;
  readonly signatures: readonly Uint8Array[];
};

function readHeader(header: string): Header | undefined {
  let text: string | undefined;
  const signatures: Uint8Array[] = [];
  const items = header.split(',');
  if (items.length > signaturesMax) return undefined;
  for (const item of items) {
    const at = item.indexOf('=');
    if (at < 0) return undefined;
    const name = item.slice(0, at).trim();
    const value = item.slice(at + 1).trim();
    if (name === 't') {
      if (text !== undefined) return undefined;
      text = value;
    } else if (name === 'v1') {
      const signature = decodeHex(value, hmacBytes);
      if (signature !== undefined) signatures.push(signature);
    }
  }
  if (text === undefined) return undefined;
  const timestamp = readTimestamp(text);
  return timestamp === undefined ? undefined : { timestamp, text, signatures };
}
