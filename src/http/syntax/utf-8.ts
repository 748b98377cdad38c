/**
 * Strict UTF-8 decoding: RFC 3629. Overlong forms, surrogates and values beyond U+10FFFF are refused; a byte order mark is kept as a
 * character. For short values only; the platform decodes bodies.
 */

export function decodeUtf8(bytes: Uint8Array): string | undefined {
  let text = '';
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at] ?? 0;
    const extra =
      lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
    if (extra === -1 || at + extra >= bytes.length) return undefined;
    let point = extra === 0 ? lead : lead & (0x3f >> extra);
    for (let next = at + 1; next <= at + extra; next += 1) {
      const byte = bytes[next] ?? 0;
      if ((byte & 0xc0) !== 0x80) return undefined;
      point = (point << 6) | (byte & 0x3f);
    }
    if (extra === 2 && (point < 0x800 || (point >= 0xd800 && point <= 0xdfff))) return undefined;
    if (extra === 3 && (point < 0x10000 || point > 0x10ffff)) return undefined;
    text += String.fromCodePoint(point);
    at += extra + 1;
  }
  return text;
}
