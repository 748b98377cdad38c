/**
 * Escapes in a JSON string: RFC 8259 §7, and RFC 7493 §2.1, which allows no lone surrogate. Apart from json-scan.ts, since
 * it keeps no state and few strings come here. It decodes nothing.
 */
import { isHexCode } from './uri-characters.ts';

/** The length of the escape at `at` (12 for a surrogate pair); 0 when it is malformed, -1 for a lone surrogate. */
export function escapeLength(text: string, at: number): number {
  const kind = text.charCodeAt(at + 1);
  if (kind !== 0x75) return '"\\/bfnrt'.includes(text.charAt(at + 1) || ' ') ? 2 : 0;
  const unit = hexUnit(text, at + 2);
  if (unit === -1) return 0;
  if (unit < 0xd800 || unit > 0xdfff) return 6;
  if (unit > 0xdbff || text.charCodeAt(at + 6) !== 0x5c || text.charCodeAt(at + 7) !== 0x75) return -1;
  const low = hexUnit(text, at + 8);
  return low >= 0xdc00 && low <= 0xdfff ? 12 : -1;
}

/** The code unit that four hexadecimal digits name, or -1. */
function hexUnit(text: string, at: number): number {
  for (let index = at; index < at + 4; index += 1) if (!isHexCode(text.charCodeAt(index))) return -1;
  return Number.parseInt(text.slice(at, at + 4), 16);
}
