/**
 * What the program and a thread of handlers say to each other. A run is one attempt of one message, by a number that is never used again. What
 * handlers write and read goes as JSON text, so that the program need not parse what it only passes on.
 */
import type { ResourceCall } from '../hand-on.ts';

export type ThreadData = {
  /** URL of the module whose default export is the configuration. */
  readonly module: string;
  /** One number: the run whose handler was last entered. Read from outside when the thread no longer answers. */
  readonly current: Int32Array;
};

/** States of a run, in its own shared number: a thread that does not answer cannot begin what was taken back from it. */
export const runWaits = 0;
export const runBegun = 1;
export const runWithdrawn = 2;

export type RunMessage = {
  readonly kind: 'run';
  readonly run: number;
  readonly state: Int32Array;
  readonly message: {
    readonly id: string;
    readonly sender: string;
    readonly dedupeKey: string;
    readonly type: string | null;
    readonly receivedAt: string;
    readonly attempt: number;
    readonly contentType: string | null;
    readonly contentEncoding: string | null;
    readonly headers: Readonly<Record<string, string>>;
    /** Base64. */
    readonly body: string;
  };
};

export type Refusal = { readonly code: string; readonly message: string };

export type ToThread =
  | RunMessage
  /** JSON text; undefined for nothing. */
  | { readonly kind: 'result'; readonly run: number; readonly seq: number; readonly text: string | undefined }
  | { readonly kind: 'refused'; readonly run: number; readonly seq: number; readonly refusal: Refusal }
  /** Its time is over, or the program stops. */
  | { readonly kind: 'abort'; readonly run: number }
  | { readonly kind: 'ping' };

/** Why a handler failed; kinds as in `ReceivedAttempt`. */
export type Failure = {
  readonly error: 'thrown' | 'unprocessable' | 'refused';
  readonly message: string;
  readonly permanent: boolean;
};

export type FromThread =
  /** The configuration is there. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'unusable'; readonly message: string }
  | { readonly kind: 'begun'; readonly run: number }
  | { readonly kind: 'call'; readonly run: number; readonly seq: number; readonly call: ResourceCall }
  | { readonly kind: 'done'; readonly run: number }
  | { readonly kind: 'failed'; readonly run: number; readonly failure: Failure }
  | { readonly kind: 'pong' }
  /** Something was thrown where nobody could catch it, so nothing new should be begun in this thread. */
  | { readonly kind: 'spoiled' }
  /** The thread ends by this run's doing; undefined: nobody knows whose. */
  | {
      readonly kind: 'ending';
      readonly run: number | undefined;
      readonly reason: 'exit' | 'uncaught';
      readonly message: string;
    };
