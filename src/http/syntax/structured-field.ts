/** Structured fields (RFC 9651 §4.2) by the `structured-headers` package, whose exceptions become undefined here, and Idempotency-Key, which is one. */
import { type BareItem, type List, parseItem, parseList, Token } from 'structured-headers';
import { trimWhitespace } from './field-value.ts';

/** The value of an Item that is a String, without its parameters; undefined otherwise. */
function parseStringItem(value: string): string | undefined {
  try {
    const [bare] = parseItem(value);
    return typeof bare === 'string' ? bare : undefined;
  } catch {
    // The package throws for every malformed value.
    return undefined;
  }
}

export function parseStructuredList(value: string): List | undefined {
  try {
    return parseList(value);
  } catch {
    // As above: malformed.
    return undefined;
  }
}

/** The text of a Token or String, which some fields treat alike; undefined for any other type. */
export function textOf(bare: BareItem): string | undefined {
  if (typeof bare === 'string') return bare;
  return bare instanceof Token ? bare.toString() : undefined;
}

/** Writes a String (RFC 9651 §4.1.6); characters beyond printable ASCII become `?`. */
export function formatString(value: string): string {
  let text = '"';
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) text += '?';
    else if (code === 0x22 || code === 0x5c) text += `\\${value.charAt(at)}`;
    else text += value.charAt(at);
  }
  return `${text}"`;
}

/**
 * Writes the `Deprecation` field (RFC 9745 §2.1): `@` and Unix seconds, rounded down. `Sunset` (RFC 8594) is an HTTP-date, see http-date.ts.
 */
export function formatDeprecation(ms: number): string {
  return `@${Math.floor(ms / 1000)}`;
}

// The idempotency key: draft-ietf-httpapi-idempotency-key-header-07 §2.1, a String of RFC 9651. Most clients send the bare value without
// quotes, which is accepted as the same key.
//

/** Longest key; it is stored and indexed. */
const idempotencyKeyCharsMax = 255;

/** The key; undefined if it is empty, too long or malformed. */
export function parseIdempotencyKey(value: string): string | undefined {
  const text = trimWhitespace(value);
  // Escapes double the size at most, and parameters are allowed after the String: longer text is not a key.
  if (text.length === 0 || text.length > 4 * idempotencyKeyCharsMax) return undefined;
  const key = text.charCodeAt(0) === 0x22 ? parseStringItem(text) : bareKey(text);
  return key === undefined || key.length === 0 || key.length > idempotencyKeyCharsMax ? undefined : key;
}

/** Visible ASCII without the double quote, the comma and the semicolon, which would belong to the String form. */
function bareKey(text: string): string | undefined {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x21 || code > 0x7e || code === 0x22 || code === 0x2c || code === 0x3b) return undefined;
  }
  return text;
}
