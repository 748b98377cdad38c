/**
 * `Max-Forwards`: RFC 9110 §7.6.2.
 */
import { trimWhitespace } from './token.ts';
import { isDigitCode } from './uri-characters.ts';

export const maxForwardsMax = 2 ** 31 - 1;

/** The count, larger ones cut to `maxForwardsMax`; undefined if it is not `1*DIGIT`. */
export function parseMaxForwards(value: string): number | undefined {
  const text = trimWhitespace(value);
  if (text === '') return undefined;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (!isDigitCode(code)) return undefined;
    count = Math.min(count * 10 + code - 0x30, maxForwardsMax);
  }
  return count;
}
