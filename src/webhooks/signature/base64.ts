/**
 * Base64 (RFC 4648 §4), with its padding and nothing else around it, and base64url without padding (§5), as in a JWK. Strict, so that
 * each sequence of octets has one text: no white space, no other alphabet, no bits that are set beyond the end.
 */

const standardAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const urlAlphabet = `${standardAlphabet.slice(0, 62)}-_`;
const standardValues = valuesOf(standardAlphabet);
const urlValues = valuesOf(urlAlphabet);

export function encodeBase64(octets: Uint8Array): string {
  const text = encode(octets, standardAlphabet);
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

/** The octets; undefined for what is no base64. */
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

/** The octets; undefined for what is no base64url without padding. */
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

/** What each character stands for, by its code; -1: for nothing. */
function valuesOf(alphabet: string): Int8Array {
  const values = new Int8Array(128).fill(-1);
  for (let at = 0; at < alphabet.length; at += 1) values[alphabet.charCodeAt(at)] = at;
  return values;
}
