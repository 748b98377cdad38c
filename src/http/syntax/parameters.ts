/**
 * The parameter list that follows a media type, a media range or a transfer coding: RFC 9110 §5.6.6.
 *
 * No whitespace is allowed around `=`. A name given twice is refused: RFC 9110 gives the second one no meaning,
 * and two readers that choose differently are how a filter is bypassed.
 */
import { formatWord, readWord } from './quoted-string.ts';
import { skipWhitespace, tokenEnd } from './token.ts';

/**
 * Reads `*( OWS ";" OWS [ parameter ] )` from `from` into `into`, names in lower case. Returns the index after
 * the last parameter (whitespace that belongs to none is left unread), or -1 when a parameter is malformed.
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
