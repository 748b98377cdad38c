/**
 * The `Origin` field: RFC 6454 §6.2 and §7, one serialised origin or `null`. Lists of origins, which that RFC allows and no browser sends,
 * are refused.
 */
import { splitHost } from './host.ts';
import { isDigitCode } from './uri-characters.ts';

/** Whether the value is `scheme "://" host [ ":" port ]` or `null`. */
export function isOrigin(value: string): boolean {
  if (value === 'null') return true;
  const colon = value.indexOf('://');
  if (colon <= 0 || !isScheme(value.slice(0, colon))) return false;
  const authority = splitHost(value.slice(colon + 3));
  return authority !== undefined && authority.port !== '';
}

/** RFC 3986 §3.1: `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`. */
function isScheme(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const letter = code | 0x20;
    if (letter >= 0x61 && letter <= 0x7a) continue;
    const later = isDigitCode(code) || code === 0x2b || code === 0x2d || code === 0x2e;
    if (at === 0 || !later) return false;
  }
  return true;
}
