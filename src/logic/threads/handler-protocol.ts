/**
 * The protocol between the program and a thread of handlers. A run is one attempt of one message; its number is not
 * reused. Resources and queries travel as JSON text, so that the program need not parse what it only passes on.
 */
import type { ResourceCall } from '../transaction/resource-call.ts';
import type { Given } from './task.ts';

export type ThreadData = {
  /** URL of the module whose default export is the configuration. */
  readonly module: string;
  /** One number: the run whose handler was last entered. The program reads it when the thread does not respond. */
  readonly current: Int32Array;
};

/** States of a run, in a shared number of its own: a thread that does not respond cannot begin a withdrawn run. */
export const runWaits = 0;
export const runBegun = 1;
export const runWithdrawn = 2;

export type RunMessage = {
  readonly kind: 'run';
  readonly run: number;
  readonly state: Int32Array;
  readonly given: Given;
  /** The time of the program at the start of the attempt, in milliseconds since the epoch. */
  readonly now: number;
};

export type Refusal = {
  readonly code: string;
  readonly message: string;
  readonly status: number;
  readonly pointer?: string | undefined;
  /** The call fails by a mistake of a function, and not by a rule of the collections. */
  readonly isMistake?: boolean;
};

export type ToThread =
  | RunMessage
  /** JSON text; undefined for nothing. */
  | { readonly kind: 'result'; readonly run: number; readonly seq: number; readonly text: string | undefined }
  | { readonly kind: 'refused'; readonly run: number; readonly seq: number; readonly refusal: Refusal }
  /** Its time is over, or the program stops. */
  | { readonly kind: 'abort'; readonly run: number }
  | { readonly kind: 'ping' };

/** The failure of a handler; kinds as in `ReceivedAttempt`. */
export type Failure = {
  readonly error: 'thrown' | 'unprocessable' | 'refused';
  readonly message: string;
  readonly permanent: boolean;
  readonly frames: string | undefined;
};

export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'unusable'; readonly message: string }
  | { readonly kind: 'begun'; readonly run: number }
  | { readonly kind: 'call'; readonly run: number; readonly seq: number; readonly call: ResourceCall }
  | { readonly kind: 'done'; readonly run: number }
  | { readonly kind: 'failed'; readonly run: number; readonly failure: Failure }
  | { readonly kind: 'pong' }
  /** An error was thrown that nothing caught, so this thread should begin nothing new. */
  | { readonly kind: 'spoiled' }
  /** This run ends the thread; undefined: the cause is unknown. */
  | {
      readonly kind: 'ending';
      readonly run: number | undefined;
      readonly reason: 'exit' | 'uncaught';
      readonly message: string;
    };
