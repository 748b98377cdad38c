/**
 * Octets to sign and to compare. Text is encoded as UTF-8 and never the other way round: a body that is no UTF-8 is signed as it is.
 */

/** A body as it travels. A text stands for its UTF-8 octets. */
export type Body = string | Uint8Array | ArrayBuffer;

declare const TextEncoder: { new (): { encode(text: string): Uint8Array } };
const encoder = new TextEncoder();

/**
 * The octets of a body.
 * @throws TypeError for anything else, such as a body that was parsed: what it was made of cannot be had back from that
 */
export function octetsOf(body: Body): Uint8Array {
  if (typeof body === 'string') return encoder.encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new TypeError('the body must be the text or the bytes as they travel, not what they were parsed to');
}

/** What is signed where something stands before the body: the prefix in UTF-8 and the body after it. */
export function withPrefix(prefix: string, body: Body): Uint8Array {
  return joinOctets([octetsOf(prefix), octetsOf(body)]);
}

/** One after the other. A single part is given back as it is. */
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

/** Whether both are the same, in a time that depends on the length alone (§4.14.2: lengths first). */
export function sameOctets(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= (one[at] ?? 0) ^ (other[at] ?? 0);
  return difference === 0;
}
