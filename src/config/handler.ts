/**
 * The interface of handlers of received messages (§4.14.5). A handler runs on a thread of its own, outside of the request. Its writes are
 * collected until it returns, and committed in one transaction with the mark that the message is processed: all or nothing, and exactly once.
 */

import type { Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';

export type Handler<R = Resources> = (handling: Handling<R>) => void | Promise<void>;

/** What a handler gets: the message, and what every function of an application gets. It acts as an administrator. */
export type Handling<R = Resources> = Logic<R> & {
  readonly message: ReceivedMessage;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

export type ReceivedMessage = {
  /** `rec_...` */
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  readonly receivedAt: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  readonly contentType: string | null;
  /** Header fields that `keep` of the sender lists, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as received. */
  readonly body: Uint8Array;
  /** The body as JSON. @throws UnprocessableMessage for anything else, because a retry would not help */
  json(): unknown;
  /** The body as UTF-8. @throws UnprocessableMessage for anything else */
  text(): string;
  /** The body as application/x-www-form-urlencoded. @throws UnprocessableMessage for anything but UTF-8 */
  form(): URLSearchParams;
};

/** The message can never be processed: it fails at once, without further attempts. */
export class UnprocessableMessage extends Error {
  override readonly name = 'UnprocessableMessage';
}

/** A call that would have been refused with an error response (§7). */
export class ResourceRefused extends Error {
  override readonly name = 'ResourceRefused';
  /** A code of the error registry: `not_found`, `validation_failed`, `unique_taken`... */
  readonly code: string;
  /** The status of that response. */
  readonly status: number;
  /** The member that `refuse` of a hook named, as a JSON Pointer. */
  readonly pointer: string | undefined;

  constructor(code: string, message: string, status: number, pointer?: string) {
    super(message);
    this.code = code;
    this.status = status;
    this.pointer = pointer;
  }
}
