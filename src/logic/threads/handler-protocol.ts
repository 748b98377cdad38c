/**
 * The protocol between the program and a thread of handlers: the tasks, their messages and their outcomes. A run is one
 * attempt of one message; its number is not reused. Resources and queries travel as JSON text, so that the program need
 * not parse what it only passes on.
 */

import type { ReceivedMessage } from '../../config/senders.ts';
import type { FileValue } from '../../model/file.ts';
import type { Unit } from '../../store/store.ts';
import type { Opening, ResourceCall } from '../transaction/resource-call.ts';

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
  /** JSON text, or octets of a file; undefined for nothing. */
  | {
      readonly kind: 'result';
      readonly run: number;
      readonly seq: number;
      readonly result: string | Uint8Array<ArrayBuffer> | undefined;
    }
  | { readonly kind: 'refused'; readonly run: number; readonly seq: number; readonly refusal: Refusal }
  /** Its time is over, or the program stops. */
  | { readonly kind: 'abort'; readonly run: number }
  | { readonly kind: 'ping' };

/** Asks for the next piece of a file, of which only the first request opens it. At most one piece of each reading is on its way. */
export type FileRead = {
  readonly do: 'read';
  /** Number of the reading within its run. */
  readonly reading: number;
  readonly file: FileValue;
};

export type ThreadCall = ResourceCall | FileRead;

/** The failure of a handler; kinds as in `ReceivedAttempt`. */
export type ThreadFailure = {
  readonly error: 'thrown' | 'unprocessable' | 'refused';
  readonly message: string;
  readonly permanent: boolean;
  readonly frames: string | undefined;
};

export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'unusable'; readonly message: string }
  | { readonly kind: 'begun'; readonly run: number }
  | { readonly kind: 'call'; readonly run: number; readonly seq: number; readonly call: ThreadCall }
  /** The function reads no more of the file. */
  | { readonly kind: 'close'; readonly run: number; readonly reading: number }
  | { readonly kind: 'done'; readonly run: number }
  | { readonly kind: 'failed'; readonly run: number; readonly failure: ThreadFailure }
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

// Work for a thread of handlers: which function of the configuration, and what it gets.

/** A received message, with its content coding; a short body in base64, as it is stored. */
export type GivenMessage = Omit<ReceivedMessage, 'body' | 'json' | 'text' | 'form'> & {
  readonly contentEncoding: string | null;
  readonly body: string | Uint8Array<ArrayBuffer>;
  /** The field of a form that holds the JSON, by the rule of the sender. */
  readonly jsonInForm: string | undefined;
};

/** An event for a subscriber, or the run of a job: its name in the configuration, and the content in base64. */
type GivenContent = {
  readonly of: string;
  readonly attempt: number;
  readonly body: string;
};

/** A message that is not judged yet, for the `verify` of its sender. */
export type GivenUnjudged = {
  /** Name of the sender. */
  readonly of: string;
  readonly body: Uint8Array;
  /** Alternating names and values, as they came. */
  readonly fields: readonly string[];
  readonly url: string;
  readonly secrets: readonly string[];
};

export type Given =
  | { readonly kind: 'message'; readonly message: GivenMessage }
  | ({ readonly kind: 'verify' } & GivenUnjudged)
  | ({ readonly kind: 'subscriber' | 'job' } & GivenContent);

export type Task = {
  /** The id of the message: one that ended a thread is a suspect by it. */
  readonly id: string;
  /** What declares the function. Its tasks wait while it probably keeps a thread busy. */
  readonly source: string;
  readonly given: Given;
  /** Undefined: the setting applies. */
  readonly timeoutMs?: number | undefined;
  /** Counts what the function reads and writes; absent: nothing does. */
  readonly memory?: Opening['memory'];
};

// The outcome of one attempt of a handler. The maker of attempts does not commit: it returns the writes, and the engine commits them with
// the new state of the message.

export type HandedOn =
  /**
   * `unit`: the handler's writes, committed with the state of the message. `statusCode`: of the response to forwarding.
   */
  | {
      readonly outcome: 'processed';
      readonly unit: Unit;
      readonly statusCode: number | null;
      /** The span of the run, if it was traced. */
      readonly traceparent?: string;
    }
  | {
      readonly outcome: 'failed';
      /** As in `ReceivedAttempt`. */
      readonly error: string;
      /** For people; truncated when it is logged. */
      readonly message: string | null;
      /** The frames of the error's stack, for the log of the program alone. */
      readonly frames?: string | undefined;
      readonly statusCode: number | null;
      /** A further attempt would not help. */
      readonly permanent: boolean;
      /** The next attempt is not before this time (ms since the epoch): Retry-After. */
      readonly notBefore: number | null;
    }
  /** The program stops: nothing is counted, and the next start tries again. */
  | { readonly outcome: 'aborted' };

export type Failure = Extract<HandedOn, { readonly outcome: 'failed' }>;

/** Returns a failure without a response. */
export function failure(error: string, message: string, permanent = false): Failure {
  return { outcome: 'failed', error, message, statusCode: null, permanent, notBefore: null };
}
