/**
 * The contract between the receiving engine and what it hands messages to (`HandOn`: handlers, forwarding). A `HandOn`
 * does not commit: it returns its writes, and the engine commits them with the new state of the message.
 */
import type { DeclaredSender } from '../../config/senders.ts';
import type { Received } from '../../model/received.ts';
import type { Unit } from '../../store/store.ts';
import type { ReceivedContent } from './received-tables.ts';

export type Claimed = {
  readonly sender: DeclaredSender;
  readonly received: Received;
  /** Revision of its row. */
  readonly rev: number;
  readonly content: ReceivedContent;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
};

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

/** Rejects only with StoreUnavailable. */
export type HandOn = (claimed: Claimed, signal: AbortSignal) => Promise<HandedOn>;

/** A call of a handler while it runs; see config/handler.ts. */
export type ResourceCall =
  | { readonly do: 'read'; readonly collection: string; readonly id: string }
  | { readonly do: 'list'; readonly collection: string; readonly query: unknown }
  | {
      readonly do: 'create';
      readonly collection: string;
      readonly fields: unknown;
      readonly id: string | undefined;
      readonly owner: string | undefined;
    }
  | { readonly do: 'replace'; readonly collection: string; readonly id: string; readonly fields: unknown }
  | { readonly do: 'patch'; readonly collection: string; readonly id: string; readonly patch: unknown }
  | { readonly do: 'delete'; readonly collection: string; readonly id: string }
  | {
      readonly do: 'emit';
      readonly type: string;
      readonly object: unknown;
      readonly tenant: string | undefined;
    };

/** The writes of one attempt of a handler, kept until it ends (handler-transaction/transaction.ts). */
export type Transaction = {
  /** @throws ResourceRefused, StoreUnavailable @returns JSON; undefined for nothing */
  call(call: ResourceCall): Promise<unknown>;
  unit(): Unit;
};

export type OpenTransaction = () => Transaction;
