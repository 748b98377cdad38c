/**
 * Octets to sign and to compare, and their hexadecimal and Base64 texts. Text is encoded as UTF-8, and octets are never
 * decoded: a body that is not UTF-8 is signed unchanged.
 */

/** A body as it travels. A text stands for its UTF-8 octets. */
export type Body = string | Uint8Array | ArrayBuffer;

declare const TextEncoder: { new (): { encode(text: string): Uint8Array } };
const encoder = new TextEncoder();

/**
 * Returns the octets of a body.
 * @throws TypeError for anything else, such as a parsed body, from which the octets cannot be recovered
 */
export function octetsOf(body: Body): Uint8Array {
  if (typeof body === 'string') return encoder.encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new TypeError('the body must be the text or the bytes as sent, not the parsed value');
}

/** Returns the prefix in UTF-8, followed by the body. */
export function withPrefix(prefix: string, body: Body): Uint8Array {
  return joinOctets([octetsOf(prefix), octetsOf(body)]);
}

/** Concatenates the parts. Returns a single part itself. */
export function joinOctets(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Returns true if both are equal, in a time that depends only on the length (§4.14.2: lengths first). */
export function sameOctets(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= (one[at] ?? 0) ^ (other[at] ?? 0);
  return difference === 0;
}

/* Hexadecimal text: written in lower case, read in either. */

const digits = '0123456789abcdef';

export function encodeHex(octets: Uint8Array): string {
  let text = '';
  for (const octet of octets) text += digits.charAt(octet >> 4) + digits.charAt(octet & 15);
  return text;
}

/** Returns the octets; undefined unless the text is exactly `length` octets in hexadecimal. */
export function decodeHex(text: string, length: number): Uint8Array | undefined {
  if (text.length !== 2 * length) return undefined;
  const octets = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) {
    const high = digitOf(text.charCodeAt(2 * at));
    const low = digitOf(text.charCodeAt(2 * at + 1));
    if (high < 0 || low < 0) return undefined;
    octets[at] = (high << 4) | low;
  }
  return octets;
}

/** Returns the octets of a hexadecimal text of any length; undefined for anything else. */
export function decodeHexOfAny(text: string): Uint8Array | undefined {
  return text.length % 2 === 0 ? decodeHex(text, text.length / 2) : undefined;
}

function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/*
 * Base64 (RFC 4648 §4), with padding, and base64url without padding (RFC 4648 §5), as in a JWK. Strict, so that each
 * octet sequence has exactly one text: no white space, no other alphabet, no set bits beyond the end.
 */

const standardAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const urlAlphabet = `${standardAlphabet.slice(0, 62)}-_`;
const standardValues = valuesOf(standardAlphabet);
const urlValues = valuesOf(urlAlphabet);

export function encodeBase64(octets: Uint8Array): string {
  const text = encode(octets, standardAlphabet);
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

/** Returns the octets; undefined for invalid base64. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  let end = text.length;
  if (text.endsWith('==')) end -= 2;
  else if (text.endsWith('=')) end -= 1;
  return decode(text, end, standardValues);
}

export function encodeBase64Url(octets: Uint8Array): string {
  return encode(octets, urlAlphabet);
}

/** Returns the octets; undefined for invalid base64url, and with padding. */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  return decode(text, text.length, urlValues);
}

function encode(octets: Uint8Array, alphabet: string): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const octet of octets) {
    bits = ((bits << 8) | octet) & 0xffff;
    held += 8;
    while (held >= 6) {
      held -= 6;
      text += alphabet.charAt((bits >> held) & 63);
    }
  }
  return held === 0 ? text : text + alphabet.charAt((bits << (6 - held)) & 63);
}

function decode(text: string, end: number, values: Int8Array): Uint8Array | undefined {
  if (end % 4 === 1) return undefined;
  const octets = new Uint8Array(Math.floor((end * 3) / 4));
  let bits = 0;
  let held = 0;
  let length = 0;
  for (let at = 0; at < end; at += 1) {
    const value = values[text.charCodeAt(at)] ?? -1;
    if (value < 0) return undefined;
    bits = ((bits << 6) | value) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      octets[length] = (bits >> held) & 0xff;
      length += 1;
    }
  }
  return (bits & ((1 << held) - 1)) === 0 ? octets : undefined;
}

/** Returns the value of each character by its code; -1: none. */
function valuesOf(alphabet: string): Int8Array {
  const values = new Int8Array(128).fill(-1);
  for (let at = 0; at < alphabet.length; at += 1) values[alphabet.charCodeAt(at)] = at;
  return values;
}

const crcTable = new Uint32Array(256).map((_, octet) => {
  let crc = octet;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** The CRC-32 of ISO 3309, which detects accidents and no forger. */
export function crc32(octets: Uint8Array): number {
  let crc = 0xffffffff;
  for (const octet of octets) crc = (crc >>> 8) ^ (crcTable[(crc ^ octet) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

/** The used part of a stream reader, which every runtime provides. */
export type BodyReader = {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
};

/** @throws Error if there is more */
export async function readBounded(reader: BodyReader, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (value === undefined) continue;
    length += value.length;
    if (length > bytesMax) {
      await reader.cancel();
      throw new Error(`the response has more than ${bytesMax} bytes`);
    }
    chunks.push(value);
  }
  const content = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    content.set(chunk, at);
    at += chunk.length;
  }
  return content;
}
