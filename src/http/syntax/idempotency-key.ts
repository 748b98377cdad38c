/**
 * The idempotency key: draft-ietf-httpapi-idempotency-key-header-07 §2.1, a String of RFC 9651. Most clients send the bare value without
 * quotes, which is accepted as the same key.
 */
import { parseStringItem } from './structured-field.ts';
import { trimWhitespace } from './token.ts';

/** Longest key; it is stored and indexed. */
export const idempotencyKeyCharsMax = 255;

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
