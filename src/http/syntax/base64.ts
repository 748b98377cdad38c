/**
 * Strict base64 decoding (RFC 4648 §4): padding is required, line breaks and other alphabets are refused, and unused bits must be zero, so
 * that each byte sequence has one spelling.
 */

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
