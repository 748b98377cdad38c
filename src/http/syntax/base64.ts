/**
 * Strict base64 decoding: RFC 4648 §4. Padding is required, no other alphabet or line break is taken, and the
 * unused bits must be zero, so that one byte sequence has one spelling.
 */

/** The bytes, or undefined when the text is not canonical base64. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  let digitCount = text.length;
  while (digitCount > text.length - 2 && text.charCodeAt(digitCount - 1) === 0x3d) digitCount -= 1;
  const bytes = new Uint8Array((digitCount * 3) >> 2);
  let held = 0;
  let heldBits = 0;
  let size = 0;
  for (let at = 0; at < digitCount; at += 1) {
    const digit = digitOf(text.charCodeAt(at));
    if (digit === -1) return undefined;
    held = ((held << 6) | digit) & 0xfff;
    heldBits += 6;
    if (heldBits >= 8) {
      heldBits -= 8;
      bytes[size] = held >> heldBits;
      size += 1;
    }
  }
  return (held & ((1 << heldBits) - 1)) === 0 ? bytes : undefined;
}

function digitOf(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code - 0x41;
  if (code >= 0x61 && code <= 0x7a) return code - 0x61 + 26;
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 52;
  if (code === 0x2b) return 62;
  return code === 0x2f ? 63 : -1;
}
