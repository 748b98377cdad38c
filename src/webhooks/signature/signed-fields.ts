/**
 * Reads the fields of a signed message by a rule: signatures of the rule's version, and the signed time and id. Nothing
 * is verified yet. Each field is bounded before it is parsed, and a repeated field is malformed, because which value
 * was meant is unknown.
 */

import { ed25519SignatureBytes } from './ed25519.ts';
import { decodeBase64, decodeHex } from './octets.ts';
import { refuseField, signaturesMax } from './refusal.ts';
import type { Hash, HmacRule } from './signature-rule.ts';

/** Returns the value of a field by lower-case name. Undefined: absent; an array: repeated. */
export type HeaderReader = (name: string) => string | readonly string[] | undefined;

export type SignedFields = {
  readonly signatures: readonly Uint8Array[];
  readonly asymmetric: readonly Uint8Array[];
  /** Unix seconds. */
  readonly timestamp: number | null;
  /** The timestamp as written, which is what was signed. */
  readonly timestampText: string;
  readonly id: string | null;
};

const hashBytes: Readonly<Record<Hash, number>> = { sha1: 20, sha256: 32, sha512: 64 };
const idCharactersMax = 512;
/** Bounds the cost of unauthenticated messages: each is tried with each public key, about 100 µs per try. */
const asymmetricMax = 4;

/** @param idEnd the character that an id must not contain; may be empty */
export function readSignedFields(
  rule: HmacRule,
  header: HeaderReader,
  idEnd: string,
): SignedFields | 'missing' | 'malformed' {
  const signatureText = header(rule.header);
  const { timestamp: place } = rule;
  const timeText = place !== undefined && 'header' in place ? header(place.header) : undefined;
  const id = rule.id === undefined ? undefined : header(rule.id);
  const refusals = [refuseField(signatureText)];
  if (place !== undefined && 'header' in place) refusals.push(refuseField(timeText));
  if (rule.id !== undefined) refusals.push(refuseField(id));
  if (refusals.includes('missing')) return 'missing';
  if (refusals.includes('malformed')) return 'malformed';
  if (typeof id === 'string' && !isSignedId(id, idEnd)) return 'malformed';
  const list = readList(rule, String(signatureText));
  if (list === undefined) return 'malformed';
  const timestampText = list.timestampText ?? (typeof timeText === 'string' ? timeText : '');
  const timestamp = place === undefined ? null : readTimestamp(timestampText);
  if (timestamp === undefined) return 'malformed';
  return { ...list, timestamp, timestampText, id: id === undefined ? null : String(id) };
}

/**
 * Returns true if the text can be the id of a message: visible ASCII without the character that ends it in the signed
 * content.
 */
export function isSignedId(id: string, idEnd: string): boolean {
  if (id.length === 0 || id.length > idCharactersMax) return false;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    if (code < 0x21 || code > 0x7e) return false;
  }
  return idEnd === '' || !id.includes(idEnd);
}

type SignatureList = Pick<SignedFields, 'signatures' | 'asymmetric'> & {
  readonly timestampText: string | undefined;
};

/** Undefined for a malformed field. An entry of another version is ignored, but must have a version. */
function readList(rule: HmacRule, field: string): SignatureList | undefined {
  const timePrefix =
    rule.timestamp !== undefined && 'prefix' in rule.timestamp ? rule.timestamp.prefix : undefined;
  const { asymmetricPrefix, prefix, hash, encoding } = rule;
  const mark = prefix.charAt(prefix.length - 1);
  const signatures: Uint8Array[] = [];
  const asymmetric: Uint8Array[] = [];
  let timestampText: string | undefined;
  const entries = entriesOf(rule, field);
  if (entries.length > signaturesMax) return undefined;
  for (const entry of entries) {
    if (timePrefix !== undefined && entry.startsWith(timePrefix)) {
      if (timestampText !== undefined) return undefined;
      timestampText = entry.slice(timePrefix.length);
    } else if (asymmetricPrefix !== undefined && entry.startsWith(asymmetricPrefix)) {
      const octets = decode(entry.slice(asymmetricPrefix.length), encoding, ed25519SignatureBytes);
      if (octets !== undefined) asymmetric.push(octets);
    } else if (entry.startsWith(prefix)) {
      const octets = decode(entry.slice(prefix.length), encoding, hashBytes[hash]);
      if (octets !== undefined) signatures.push(octets);
    } else if (!entry.includes(mark)) {
      return undefined;
    }
  }
  return asymmetric.length > asymmetricMax ? undefined : { signatures, asymmetric, timestampText };
}

function entriesOf({ separator }: HmacRule, field: string): readonly string[] {
  if (separator === null) return [field];
  if (separator === ' ') return field.split(' ').filter((entry) => entry !== '');
  return field.split(',').map((entry) => entry.trim());
}

function decode(text: string, encoding: HmacRule['encoding'], length: number): Uint8Array | undefined {
  if (encoding === 'hex') return decodeHex(text, length);
  if (text.length !== Math.ceil(length / 3) * 4) return undefined;
  const octets = decodeBase64(text);
  return octets?.length === length ? octets : undefined;
}

/*
 * The signed time of a message, and its greatest difference from now (§5.6, §8), which prevents replay attacks with old
 * messages.
 */

export type TimeWindow = {
  /** Greatest difference of the signed time from now, in seconds; default 300, 0 for any time. */
  readonly toleranceSeconds?: number | undefined;
  /** Milliseconds since the epoch; default: the runtime's clock. */
  readonly nowMs?: number | undefined;
};

export const toleranceSecondsDefault = 300;

/** Twelve digits reach beyond the year 30,000. */
const digitsMax = 12;

/** Parses Unix seconds in decimal digits; undefined for anything else. */
function readTimestamp(text: string): number | undefined {
  if (text.length === 0 || text.length > digitsMax) return undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return undefined;
  }
  return Number(text);
}

/** Checks Unix seconds; default: now. @throws TypeError unless it is a whole number of seconds */
export function timestampOf(seconds: number = Math.floor(Date.now() / 1000)): number {
  if (readTimestamp(String(seconds)) === undefined) {
    throw new TypeError('a timestamp must be a whole number of seconds since the epoch');
  }
  return seconds;
}

/**
 * Returns the fault of the signed time; undefined: none.
 * @throws TypeError for a negative or non-numeric tolerance, which would disable the check
 */
export function refuseTime(timestamp: number, window: TimeWindow): 'stale' | 'ahead' | undefined {
  const { toleranceSeconds = toleranceSecondsDefault, nowMs = Date.now() } = window;
  if (!(toleranceSeconds >= 0) || !Number.isFinite(nowMs)) {
    throw new TypeError(
      'toleranceSeconds and nowMs must be numbers, and toleranceSeconds must not be negative',
    );
  }
  if (toleranceSeconds === 0) return undefined;
  const age = Math.floor(nowMs / 1000) - timestamp;
  if (age > toleranceSeconds) return 'stale';
  return -age > toleranceSeconds ? 'ahead' : undefined;
}
