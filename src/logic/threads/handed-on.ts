/**
 * The outcome of one attempt of a handler. The maker of attempts does not commit: it returns the writes, and the engine
 * commits them with the new state of the message.
 */
import type { Unit } from '../../store/store.ts';

export type HandedOn =
  /**
   * `unit`: the handler's writes, committed with the state of the message. `statusCode`: of the response to forwarding.
   */
  | { readonly outcome: 'processed'; readonly unit: Unit; readonly statusCode: number | null }
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
