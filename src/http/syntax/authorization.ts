/**
 * Credentials and challenges: RFC 9110 §11.3 and §11.4; the Basic user-pass: RFC 7617 §2. `src/accounts` decides which schemes exist and whether
 * a credential is valid.
 */
import { decodeBase64 } from './base64.ts';
import { formatQuotedString, readWord, skipWhitespace, tokenEnd } from './field-value.ts';

/** The value of `Authorization` or `Proxy-Authorization`: a scheme alone, with a token68, or with parameters. */
type Credentials = {
  readonly scheme: string;
  readonly token68?: string;
  readonly parameters?: ReadonlyMap<string, string>;
};

export type Challenge = { readonly scheme: string; readonly parameters?: Readonly<Record<string, string>> };

/**
 * Reads `auth-scheme [ 1*SP ( token68 / #auth-param ) ]`, scheme and parameter names in lower case; undefined if malformed or if a parameter
 * is repeated.
 */
export function parseCredentials(value: string): Credentials | undefined {
  const schemeStart = skipWhitespace(value, 0);
  const schemeEnd = tokenEnd(value, schemeStart);
  if (schemeEnd === schemeStart) return undefined;
  const scheme = value.slice(schemeStart, schemeEnd).toLowerCase();
  const start = skipWhitespace(value, schemeEnd);
  if (start === value.length) return { scheme };
  if (value.charCodeAt(schemeEnd) !== 0x20) return undefined;
  const end = token68End(value, start);
  if (end > start && skipWhitespace(value, end) === value.length) {
    return { scheme, token68: value.slice(start, end) };
  }
  const parameters = readAuthParameters(value, start);
  return parameters === undefined ? undefined : { scheme, parameters };
}

/** Writes a challenge. Parameter values are quoted, as `realm` must be; names must be tokens. */
export function formatChallenge({ scheme, parameters = {} }: Challenge): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${formatQuotedString(value)}`);
  return pairs.length === 0 ? scheme : `${scheme} ${pairs.join(', ')}`;
}

/**
 * User and password of Basic credentials in UTF-8. Undefined unless it is canonical base64 of UTF-8 with a colon and without control
 * characters (RFC 7617 §2). The password may contain colons, the user cannot.
 */
export function decodeBasic(token68: string): { user: string; password: string } | undefined {
  const bytes = decodeBase64(token68);
  const text = bytes === undefined ? undefined : decodeUtf8(bytes);
  if (text === undefined) return undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return undefined;
  }
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

function readAuthParameters(value: string, from: number): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>();
  let at = from;
  while (at < value.length) {
    if (value.charCodeAt(at) !== 0x2c) {
      const nameEnd = tokenEnd(value, at);
      const equals = skipWhitespace(value, nameEnd);
      if (nameEnd === at || value.charCodeAt(equals) !== 0x3d) return undefined;
      const word = readWord(value, skipWhitespace(value, equals + 1));
      const name = value.slice(at, nameEnd).toLowerCase();
      if (word === undefined || parameters.has(name)) return undefined;
      parameters.set(name, word.value);
      at = skipWhitespace(value, word.end);
      if (at < value.length && value.charCodeAt(at) !== 0x2c) return undefined;
    }
    at = skipWhitespace(value, at + 1);
  }
  return parameters;
}

/** The index after `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`; `from` without one. */
function token68End(value: string, from: number): number {
  let at = from;
  while (at < value.length && isToken68Code(value.charCodeAt(at))) at += 1;
  if (at === from) return from;
  while (value.charCodeAt(at) === 0x3d) at += 1;
  return at;
}

function isToken68Code(code: number): boolean {
  const letter = code | 0x20;
  if (letter >= 0x61 && letter <= 0x7a) return true;
  // "-", ".", "/" and the digits are neighbours in ASCII.
  return (code >= 0x2d && code <= 0x39) || code === 0x2b || code === 0x5f || code === 0x7e;
}

// Strict UTF-8 decoding: RFC 3629. Overlong forms, surrogates and values beyond U+10FFFF are refused; a byte order mark is kept as a
// character. For short values only; the platform decodes bodies.
//

function decodeUtf8(bytes: Uint8Array): string | undefined {
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
