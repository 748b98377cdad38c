/** What the error registry says of one code. */

export type Retry =
  /** Sending the same again gives the same answer. */
  | 'no'
  /** The same request may succeed after Retry-After, or later. */
  | 'later'
  /** Read the resource again, then decide. */
  | 'after-reading'
  /** With other or new credentials. */
  | 'with-credentials';

export type ProblemEntry = {
  readonly status: number;
  /** The `error` member unless the refusal has a more exact sentence. Those that §7 names are verbatim. */
  readonly message: string;
  readonly retry: Retry;
  readonly meaning: string;
};
