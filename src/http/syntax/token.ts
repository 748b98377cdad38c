/**
 * Tokens and optional whitespace: RFC 9110 §5.6.2 and §5.6.3. Every list grammar in this folder uses these scanners. Each takes a position
 * and returns the position after what it read, so that a field value is walked once, without copies and without backtracking.
 */

const TOKEN_PUNCTUATION = "!#$%&'*+-.^_`|~";

const TOKEN_CODES: Uint8Array = tokenTable();

export function isTokenCode(code: number): boolean {
  return code < 128 && TOKEN_CODES[code] === 1;
}

export function isToken(text: string): boolean {
  return text.length > 0 && tokenEnd(text, 0) === text.length;
}

/** The index after the longest token that starts at `from`; `from` itself without one. */
export function tokenEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && isTokenCode(text.charCodeAt(at))) at += 1;
  return at;
}

/** The index of the first character at or after `from` that is neither space nor horizontal tab. */
export function skipWhitespace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isWhitespaceCode(text.charCodeAt(at))) at += 1;
  return at;
}

export function trimWhitespace(text: string): string {
  const start = skipWhitespace(text, 0);
  let end = text.length;
  while (end > start && isWhitespaceCode(text.charCodeAt(end - 1))) end -= 1;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isWhitespaceCode(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function tokenTable(): Uint8Array {
  const table = new Uint8Array(128);
  for (let code = 0x30; code <= 0x39; code += 1) table[code] = 1;
  for (let code = 0x41; code <= 0x5a; code += 1) table[code] = table[code + 0x20] = 1;
  for (let at = 0; at < TOKEN_PUNCTUATION.length; at += 1) table[TOKEN_PUNCTUATION.charCodeAt(at)] = 1;
  return table;
}
