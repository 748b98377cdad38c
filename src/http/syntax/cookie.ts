/**
 * Reads one cookie of a `Cookie` field (RFC 6265 §4.2), as leniently as browsers write it. Values are not decoded. The `cookie` package is
 * not used: of two cookies with one name it returns the first, and a sibling domain may have planted either.
 */

/** The value; undefined if there is none of this name; null if there are several. Names are case-sensitive. */
export function readCookie(field: string, name: string): string | null | undefined {
  let found: string | undefined;
  let start = 0;
  while (start < field.length) {
    const semicolon = field.indexOf(';', start);
    const end = semicolon === -1 ? field.length : semicolon;
    while (start < end && isWhitespaceCode(field.charCodeAt(start))) start += 1;
    const equals = start + name.length;
    if (equals < end && field.charCodeAt(equals) === 0x3d && field.startsWith(name, start)) {
      if (found !== undefined) return null;
      found = trimmed(field, equals + 1, end);
    }
    start = end + 1;
  }
  return found;
}

function trimmed(field: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isWhitespaceCode(field.charCodeAt(start))) start += 1;
  while (end > start && isWhitespaceCode(field.charCodeAt(end - 1))) end -= 1;
  return field.slice(start, end);
}

function isWhitespaceCode(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
