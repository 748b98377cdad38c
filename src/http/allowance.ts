/** What a rate limit says about one request (§7, RFC 6585 §4). */

export type Allowance = {
  readonly exceeded: boolean;
  /** The values of RateLimit-Policy, RateLimit and X-RateLimit-Remaining. */
  readonly policy: string;
  readonly rate: string;
  readonly remaining: string;
  /** Until one more request would be admitted; at least 1 where `exceeded`. */
  readonly retryAfterSeconds: number;
};
