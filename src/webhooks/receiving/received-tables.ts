/** The tables of receiving: internal ones with the documents of their rows, the inbox, and retention. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Settings } from '../../config/settings.ts';
import type { Collection } from '../../model/collection.ts';
import { type Received, receivedDocument, receivedStatuses } from '../../model/received.ts';
import type { RetentionRule } from '../../store/retention.ts';
import { heldBackError, type LinedWork } from '../../work/work-lines.ts';

/**
 * Bodies of messages, by `{sender}/{dedupeKey}`: the insert of this row detects repetitions (§4.14.4), so it is the
 * first change of its unit and expects no row. Rows never change; retention removes them. Parts of long bodies (message-rows.ts) are here too.
 */
export const receivedContentsTable = 'received_contents';
export type ReceivedContent = {
  /** The id of the message: `rec_...` */
  readonly id: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** Fields that the rule keeps, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * In base64. Absent if it is in parts, so that a process of an earlier version beside this one, which looks only here, fails its attempt: it
   * would hand on an empty body.
   */
  readonly body?: string;
  /** Number of rows that have the body, for one that is long (message-rows.ts). */
  readonly parts?: number;
  /** For an event: the number of units of subscribers that led to it, one after the other. */
  readonly depth?: number;
  /** The line in which the message waits (work/work-lines.ts). */
  readonly line?: string;
};

/** Rows of lines by `{line}/{message id}`; a line is named `{source}/{digest of the key}`. */
export const linedMessages: LinedWork = {
  linesTable: 'message_lines',
  table: 'received',
  nameOf: ({ id }) => id,
  dueAt(doc) {
    const { status, dueAt } = JSON.parse(doc) as Received;
    return status === 'pending' ? Date.parse(dueAt ?? '') : undefined;
  },
  isHeldBack: (doc) => (JSON.parse(doc) as Received).lastError === heldBackError,
  dueDocument: (doc, dueAt, updatedAt) =>
    receivedDocument({ ...(JSON.parse(doc) as Received), dueAt, lastError: heldBackError, updatedAt }),
};

/** Returns the id of a message's row. A source's name contains no slash. */
export function contentId(sender: string, dedupeKey: string): string {
  return `${sender}/${dedupeKey}`;
}

/**
 * Attempts to hand messages on, by `{message id}/{number from 1, six digits}`: those of one message are adjacent by id.
 */
export const receivedAttemptsTable = 'received_attempts';

/** As served by `GET {base}/received/{id}/attempts`. */
export type ReceivedAttempt = {
  readonly number: number;
  readonly outcome: 'processed' | 'failed';
  /**
   * Kind of the failure: `thrown`, `timeout`, `unprocessable`, `thread-ended`, `refused`, `superseded`, `content-gone`,
   * `given-up`, `loop`, `status`, or one of the egress dialer.
   */
  readonly error: string | null;
  readonly message: string | null;
  /** The status of the response, if the message was forwarded. */
  readonly statusCode: number | null;
  readonly trigger: 'automatic' | 'manual';
  readonly at: string;
  readonly durationMs: number;
};

/**
 * Secrets of senders whose variable is not set, by the name of the sender, or `{name}/forward` for the secrets that
 * sign forwarded messages.
 */
export const senderSecretsTable = 'sender_secrets';
export type SenderSecretsRow = {
  /** The current one first; `until` of the others in milliseconds since the epoch. */
  readonly secrets: readonly { readonly secret: string; readonly until: number | null }[];
};

/* The inbox (§4.14): every accepted message and its state. Administrators only. */

const time = Type.String({ format: 'date-time' });
const textOrNull = Type.Union([Type.String(), Type.Null()]);

export const receivedCollection: Collection = resolveBuiltIn('received', {
  description: 'The inbox: webhooks that senders posted, verified, stored once and handed on.',
  schema: Type.Object({
    sender: Type.String(),
    dedupeKey: Type.String(),
    type: textOrNull,
    receivedAt: time,
    status: Type.Union(receivedStatuses.map((name) => Type.Literal(name))),
    attempts: Type.Integer(),
    scheduledAttempts: Type.Integer(),
    dueAt: Type.Union([time, Type.Null()]),
    lastError: textOrNull,
    contentType: textOrNull,
    contentLength: Type.Integer(),
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  // The first is the queue of each sender, the second finds failed messages.
  indexes: [['sender', 'dueAt'], 'status'],
  search: [],
});

/**
 * Retention of the receiver (§4.14): messages and their attempts from their last change, contents from their receipt,
 * because rows of contents never change. A message whose content is gone can be read and marked, but not handed on.
 */
export function receivingRetention({
  receivedRetentionSeconds,
}: Pick<Settings, 'receivedRetentionSeconds'>): readonly RetentionRule[] {
  return [receivedCollection.name, receivedAttemptsTable, receivedContentsTable].map((table) => ({
    table,
    seconds: receivedRetentionSeconds,
  }));
}
