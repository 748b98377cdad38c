/** Hexadecimal text: written in lower case, read in either. */

const digits = '0123456789abcdef';

export function encodeHex(octets: Uint8Array): string {
  let text = '';
  for (const octet of octets) text += digits.charAt(octet >> 4) + digits.charAt(octet & 15);
  return text;
}

/** The octets; undefined unless the text is exactly that many in hexadecimal. */
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

function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
