/**
 * The parameter list after a media type, a media range or a transfer coding: RFC 9110 §5.6.6. Whitespace around `=` is refused. So is a
 * repeated name: RFC 9110 gives the second one no meaning, and two readers that choose differently let filters be bypassed.
 */
import { formatWord, readWord } from './quoted-string.ts';
import { skipWhitespace, tokenEnd } from './token.ts';

/**
 * Reads `*( OWS ";" OWS [ parameter ] )` from `from` into `into`, names in lower case. Returns the index after the last parameter (before
 * whitespace that belongs to none), or -1 if a parameter is malformed.
 */
export function readParameters(text: string, from: number, into: Map<string, string>): number {
  let end = from;
  for (;;) {
    const semicolon = skipWhitespace(text, end);
    if (text.charCodeAt(semicolon) !== 0x3b) return end;
    const nameStart = skipWhitespace(text, semicolon + 1);
    const nameEnd = tokenEnd(text, nameStart);
    if (nameEnd === nameStart) {
      end = semicolon + 1;
      continue;
    }
    if (text.charCodeAt(nameEnd) !== 0x3d) return -1;
    const word = readWord(text, nameEnd + 1);
    if (word === undefined) return -1;
    const name = text.slice(nameStart, nameEnd).toLowerCase();
    if (into.has(name)) return -1;
    into.set(name, word.value);
    end = word.end;
  }
}

/** Writes each parameter with a semicolon before it, and no whitespace. */
export function formatParameters(parameters: ReadonlyMap<string, string>): string {
  let text = '';
  for (const [name, value] of parameters) text += `;${name}=${formatWord(value)}`;
  return text;
}

/** The largest quality value (RFC 9110 §12.4.2), and the default one. A weight is a number of thousandths, so that comparison is exact. */
export const WEIGHT_MAX = 1000;

/** Reads `0`, `1`, `0.123`, `1.000`: at most three decimals, in thousandths (0 to 1000); undefined otherwise. */
export function parseWeight(text: string): number | undefined {
  if (text.length === 0 || text.length > 5) return undefined;
  const whole = text.charCodeAt(0) - 0x30;
  if (whole !== 0 && whole !== 1) return undefined;
  if (text.length > 1 && text.charCodeAt(1) !== 0x2e) return undefined;
  let thousandths = whole * WEIGHT_MAX;
  let unit = 100;
  for (let at = 2; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    thousandths += digit * unit;
    unit /= 10;
  }
  return thousandths > WEIGHT_MAX ? undefined : thousandths;
}
