/**
 * The contract between the receiving engine and what it hands messages to (`HandOn`: handlers, forwarding). A `HandOn`
 * does not commit: it returns its writes, and the engine commits them with the new state of the message.
 */
import type { Source } from '../../config/sources.ts';
import { failure, type HandedOn } from '../../logic/threads/handed-on.ts';
import type { HandlerThreads } from '../../logic/threads/handler-threads.ts';
import type { Task } from '../../logic/threads/task.ts';
import type { Received } from '../../model/received.ts';
import type { Change } from '../../store/store.ts';
import type { ReceivedContent } from './received-tables.ts';

/** The octets of a body that is kept in parts; otherwise its base64, as a row has it. */
export type ClaimedContent = Omit<ReceivedContent, 'body' | 'parts'> & {
  readonly body: string | Uint8Array<ArrayBuffer>;
};

export type Claimed = {
  readonly sender: Source;
  readonly received: Received;
  /** Revision of its row. */
  readonly rev: number;
  readonly content: ClaimedContent;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Leaves the line in which the message is the first, with its conclusion; undefined: it is in none. */
  readonly leave?: Change | undefined;
  /** Counts what its function reads and writes; absent: nothing does. */
  readonly memory?: Task['memory'];
};

/** Rejects only with StoreUnavailable. */
export type HandOn = (claimed: Claimed, signal: AbortSignal) => Promise<HandedOn>;

/** Hands messages to the functions of their sources, which run on threads. */
export function handlersOn(threads: Pick<HandlerThreads, 'run'>, subscriberDepthMax: number): HandOn {
  return async (claimed, signal) => {
    const { depth = 0 } = claimed.content;
    if (depth <= subscriberDepthMax) return threads.run(taskOf(claimed), signal);
    const message = `subscribers caused the event, ${depth} one after the other: more than ${subscriberDepthMax} are taken for a loop`;
    return failure('loop', message, true);
  };
}

function taskOf({ sender: source, received, content, attempt, memory }: Claimed): Task {
  const { id, sender, dedupeKey, type, receivedAt } = received;
  const { contentType, contentEncoding, headers, body } = content;
  const { handOn } = source;
  if (handOn.kind === 'subscriber' || handOn.kind === 'job') {
    const { kind, of, timeoutMs } = handOn;
    // Messages of the program itself have no parts.
    const base64 = typeof body === 'string' ? body : Buffer.from(body).toString('base64');
    return { id, source: sender, given: { kind, of, attempt, body: base64 }, timeoutMs, memory };
  }
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
  return { id, source: sender, given: { kind: 'message', message }, memory };
}
