/**
 * The contract between the receiving engine and what it hands messages to (`HandOn`: handlers, forwarding). A `HandOn`
 * does not commit: it returns its writes, and the engine commits them with the new state of the message.
 */
import type { DeclaredSender } from '../../config/senders.ts';
import type { HandedOn } from '../../logic/threads/handed-on.ts';
import type { HandlerThreads } from '../../logic/threads/handler-threads.ts';
import type { Task } from '../../logic/threads/task.ts';
import type { Received } from '../../model/received.ts';
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

/** Rejects only with StoreUnavailable. */
export type HandOn = (claimed: Claimed, signal: AbortSignal) => Promise<HandedOn>;

/** Hands messages to the handlers of their senders, which run on threads. */
export function handlersOn(threads: Pick<HandlerThreads, 'run'>): HandOn {
  return (claimed, signal) => threads.run(taskOf(claimed), signal);
}

function taskOf({ received, content, attempt }: Claimed): Task {
  const { id, sender, dedupeKey, type, receivedAt } = received;
  const { contentType, contentEncoding, headers, body } = content;
  const message = {
    id,
    sender,
    dedupeKey,
    type,
    receivedAt,
    attempt,
    contentType,
    contentEncoding,
    headers,
    body,
  };
  return { id, source: sender, given: { kind: 'message', message } };
}
