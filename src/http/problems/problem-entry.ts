/** An entry of the error registry. */

export type Retry =
  /** The same request gets the same answer. */
  | 'no'
  /** The same request may succeed after Retry-After, or later. */
  | 'later'
  /** The client should read the resource again, then decide. */
  | 'after-reading'
  /** With other or new credentials. */
  | 'with-credentials';

export type ProblemEntry = {
  readonly status: number;
  /** The `error` member unless a refusal has a more exact sentence. Those that §7 names are verbatim. */
  readonly message: string;
  readonly retry: Retry;
  readonly meaning: string;
};
