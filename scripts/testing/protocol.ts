/** Messages between the runner and a process that runs test files, over the channel between the two. */

/** From the process to the runner. */
export type Report = Ready | Ended | Remark | Uncaught | FileEnded;

/** It is ready for its next file. */
export type Ready = { readonly kind: 'ready' };

/** A test or a suite has ended. */
export type Ended = {
  readonly kind: 'ended';
  readonly title: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly isSuite: boolean;
  readonly durationMs: number;
  /** Where it is declared: `file:line:column`. */
  readonly at: string;
  readonly failure: Failure | undefined;
};

export type Failure = {
  /** The error with its stack and its cause. */
  readonly text: string;
  /** Node's word: `testCodeFailure`, `hookFailed`, `testTimeoutFailure`, `subtestsFailed` and others. */
  readonly type: string;
};

/** What a test wants to be read. */
export type Remark = { readonly kind: 'remark'; readonly text: string };

/** Nothing caught an error. */
export type Uncaught = {
  readonly kind: 'uncaught';
  /** The error with its stack, and the test that ran, if one did. */
  readonly text: string;
};

/** The file is over. */
export type FileEnded = {
  readonly kind: 'file-ended';
  /** Processor time of the process since the file began, and of its children that have ended, in ms. */
  readonly processorMs: number;
  /** What the file has begun and not ended, by Node's names of resources. */
  readonly leftOpen: readonly string[];
};

/** From the runner to the process: the next file, as an absolute path; null: there is none left. */
export type Assignment = { readonly file: string | null };
