/**
 * Quoted strings: RFC 9110 §5.6.4. Obsolete text (%x80-FF) passes as the Latin-1 characters of the HTTP parser; no character set is guessed.
 */
import { isToken, tokenEnd } from './token.ts';

/** A value read from a field, and the index of the first character after it. */
export type ReadValue = { readonly value: string; readonly end: number };

/** Reads the quoted string that opens at `from`; undefined if it is not closed or holds a forbidden character. */
export function readQuotedString(text: string, from: number): ReadValue | undefined {
  if (text.charCodeAt(from) !== 0x22) return undefined;
  let value = '';
  let start = from + 1;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return { value: value + text.slice(start, at), end: at + 1 };
    if (code === 0x5c) {
      value += text.slice(start, at);
      at += 1;
      start = at;
      if (at >= text.length || !isQuotable(text.charCodeAt(at))) return undefined;
    } else if (!isQuotable(code)) {
      return undefined;
    }
  }
  return undefined;
}

/** Reads `token / quoted-string` at `from`; undefined if there is neither. */
export function readWord(text: string, from: number): ReadValue | undefined {
  if (text.charCodeAt(from) === 0x22) return readQuotedString(text, from);
  const end = tokenEnd(text, from);
  return end === from ? undefined : { value: text.slice(from, end), end };
}

/**
 * Writes a quoted string. A character outside of the grammar (a control, or one beyond Latin-1) becomes `?`, so that no value can end its
 * field line.
 */
export function formatQuotedString(value: string): string {
  let text = '"';
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (!isQuotable(code)) text += '?';
    else if (code === 0x22 || code === 0x5c) text += `\\${value.charAt(at)}`;
    else text += value.charAt(at);
  }
  return `${text}"`;
}

/** Writes a value as a token if it is one, else as a quoted string. */
export function formatWord(value: string): string {
  return isToken(value) ? value : formatQuotedString(value);
}

/** The characters allowed in a quoted pair: HTAB, SP, VCHAR and obs-text. */
function isQuotable(code: number): boolean {
  return code === 0x09 || (code >= 0x20 && code !== 0x7f && code <= 0xff);
}
