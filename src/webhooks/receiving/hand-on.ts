/**
 * What the engine and those who take messages from it say to each other. A message is handed to one of them (`HandOn`), which never writes
 * down anything itself: what it wants written is part of what it returns, and the engine commits it with the message's new state.
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
  /** From 1: which attempt this is. */
  readonly attempt: number;
};

export type HandedOn =
  /** `unit`: what a handler wrote, to be committed with the mark that the message is processed. `statusCode`: of who it was forwarded to. */
  | { readonly outcome: 'processed'; readonly unit: Unit; readonly statusCode: number | null }
  | {
      readonly outcome: 'failed';
      /** As in `ReceivedAttempt`. */
      readonly error: string;
      /** For people; cut by who writes it down. */
      readonly message: string | null;
      readonly statusCode: number | null;
      /** No further attempt would help. */
      readonly permanent: boolean;
      /** Not before this time (ms since the epoch): Retry-After. */
      readonly notBefore: number | null;
    }
  /** The program stops: nothing is counted, and it is tried again at the next start. */
  | { readonly outcome: 'aborted' };

/** Never rejects but with StoreUnavailable. */
export type HandOn = (claimed: Claimed, signal: AbortSignal) => Promise<HandedOn>;

/** What a handler asks for while it runs; see config/handler.ts. */
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

/** The writes of one attempt of a handler, kept until it is done (resources/webhooks/handling makes them). */
export type Transaction = {
  /** @throws ResourceRefused, StoreUnavailable @returns JSON; undefined for nothing */
  call(call: ResourceCall): Promise<unknown>;
  /** All that was written so far. */
  unit(): Unit;
};

export type OpenTransaction = () => Transaction;
