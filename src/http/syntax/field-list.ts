/**
 * `#token` (RFC 9110 §5.6.1): the grammar of `Connection`, `Vary`, `Access-Control-Request-Headers` and others with case-insensitive names.
 */
import { skipWhitespace, tokenEnd } from './token.ts';

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
