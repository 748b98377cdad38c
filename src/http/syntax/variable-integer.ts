/**
 * Variable-length integers: RFC 9000 §16. The first two bits of the first octet say whether one, two, four or eight octets are it; any
 * length is good for any value that fits. Beyond 2^53 a value is read to the nearest number, which suits types and lengths: there it is
 * told apart from what is known and from what fits, and from nothing else.
 */

/** Octets of the longest one. */
export const variableIntegerBytesMax = 8;

const twoTo32 = 2 ** 32;

/** Octets of the integer that begins with this one: 1, 2, 4 or 8. */
export function variableIntegerBytes(firstOctet: number): number {
  return 1 << (firstOctet >> 6);
}

/** The integer at `from`; undefined when the bytes end before it does. */
export function readVariableInteger(bytes: Uint8Array, from: number): number | undefined {
  const first = bytes[from];
  if (first === undefined) return undefined;
  const length = variableIntegerBytes(first);
  if (from + length > bytes.length) return undefined;
  let value = first & 0x3f;
  // Multiplied, not shifted: a shift keeps 32 bits.
  for (let at = from + 1; at < from + length; at += 1) value = value * 256 + (bytes[at] ?? 0);
  return value;
}

/** Octets of the shortest form of a value. */
export function encodedVariableIntegerBytes(value: number): number {
  if (value < 0x40) return 1;
  if (value < 0x4000) return 2;
  return value < 0x4000_0000 ? 4 : 8;
}

/**
 * Writes the shortest form and answers the index after it.
 *
 * @param value an integer of 0 to 2^53 - 1
 */
export function writeVariableInteger(bytes: Uint8Array, at: number, value: number): number {
  const length = encodedVariableIntegerBytes(value);
  let rest = value;
  for (let index = at + length - 1; index >= at; index -= 1) {
    bytes[index] = rest & 0xff;
    rest = rest < twoTo32 ? rest >>> 8 : Math.floor(rest / 256);
  }
  bytes[at] = (bytes[at] ?? 0) | (Math.log2(length) << 6);
  return at + length;
}
