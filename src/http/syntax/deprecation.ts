/**
 * The `Deprecation` field: RFC 9745 §2.1, a Date item of RFC 9651. `Sunset` (RFC 8594) is an HTTP-date and has
 * its writer in http-date.ts.
 */

/** Writes `@` and Unix seconds, rounded down. */
export function formatDeprecation(ms: number): string {
  return `@${Math.floor(ms / 1000)}`;
}
