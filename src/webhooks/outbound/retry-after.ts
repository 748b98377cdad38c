/**
 * Retry-After (RFC 9110 §10.2.3) of a receiver: delay-seconds or an HTTP-date. What is neither, or is over already, asks for nothing.
 * Only read with 429, 502, 503 and 504; which statuses those are is said in settle/verdict.ts.
 */
import { parseHttpDate } from '../../http/syntax/http-date.ts';

/**
 * The time before which nothing is wanted, in milliseconds since the epoch; null: now is as good.
 * @param fields names in lower case; of several fields the first that says something counts
 * @param atMs when the answer came
 * @param secondsMax a longer wait is cut to this
 */
export function retryAfter(
  fields: readonly (readonly [name: string, value: string])[],
  atMs: number,
  secondsMax: number,
): number | null {
  for (const [name, value] of fields) {
    if (name !== 'retry-after') continue;
    const time = timeOf(value.trim(), atMs);
    if (time !== undefined && time > atMs) return Math.min(time, atMs + secondsMax * 1000);
  }
  return null;
}

function timeOf(value: string, atMs: number): number | undefined {
  // A number too great to be one is Infinity, which the bound cuts like any other.
  return isDigits(value) ? atMs + Number(value) * 1000 : parseHttpDate(value, atMs);
}

function isDigits(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return value.length > 0;
}
