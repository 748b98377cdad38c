/**
 * The common rules of field values (RFC 9110 §5.6): tokens, whitespace, lists, quoted strings, parameters and weights. Every list grammar in
 * this folder uses these scanners. Each takes a position and returns the position after what it read, so that a field value is walked once,
 * without copies and without backtracking.
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

// Quoted strings: RFC 9110 §5.6.4. Obsolete text (%x80-FF) passes as the Latin-1 characters of the HTTP parser; no character set is guessed.
//

/** A value read from a field, and the index of the first character after it. */
type ReadValue = { readonly value: string; readonly end: number };

/** Reads the quoted string that opens at `from`; undefined if it is not closed or holds a forbidden character. */
function readQuotedString(text: string, from: number): ReadValue | undefined {
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

// The parameter list after a media type, a media range or a transfer coding: RFC 9110 §5.6.6. Whitespace around `=` is refused. So is a
// repeated name: RFC 9110 gives the second one no meaning, and two readers that choose differently let filters be bypassed.
//

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

// `#token` (RFC 9110 §5.6.1): the grammar of `Connection`, `Vary`, `Access-Control-Request-Headers` and others with case-insensitive names.

/** The tokens in order, in lower case; undefined if malformed. Empty elements are skipped, as a recipient must (RFC 9110 §5.6.1.2). */
export function parseFieldList(value: string): readonly string[] | undefined {
  const tokens: string[] = [];
  let at = skipWhitespace(value, 0);
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const end = tokenEnd(value, at);
      if (end === at) return undefined;
      tokens.push(value.slice(at, end).toLowerCase());
      at = skipWhitespace(value, end);
      if (at < value.length && value.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(value, at + 1);
  }
  return tokens;
}

/** The comma-separated tokens of all lines of a field, in lower case. @param rawFields name, value, ... @param name in lower case */
export function tokensOf(rawFields: readonly string[], name: string): readonly string[] {
  return valuesOf(rawFields, name).flatMap((value) =>
    value.split(',').map((token) => trimWhitespace(token).toLowerCase()),
  );
}

/** The values of all lines of a field, one each. */
export function valuesOf(rawFields: readonly string[], name: string): readonly string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    if (rawFields[index]?.toLowerCase() === name) values.push(trimWhitespace(rawFields[index + 1] ?? ''));
  }
  return values;
}
