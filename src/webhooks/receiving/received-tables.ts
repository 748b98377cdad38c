/** What receiving keeps: tables that no request reads and what their rows hold, the inbox, and for how long. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Settings } from '../../config/settings.ts';
import type { Collection } from '../../model/collection.ts';
import { receivedStatuses } from '../../model/received.ts';
import type { RetentionRule } from '../../store/retention.ts';

/**
 * Bodies of messages, by `{sender}/{dedupeKey}`: the insert of this row is what finds repetitions (§4.14.4), so it is the first change of its
 * unit and expects no row. Rows are never changed; they are removed by age.
 */
export const receivedContentsTable = 'received_contents';
export type ReceivedContent = {
  /** Of the message: `rec_...` */
  readonly id: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** What the rule keeps, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The octets as they came, in base64. */
  readonly body: string;
};

/** Id of the row of a message. A name of a sender holds no slash. */
export function contentId(sender: string, dedupeKey: string): string {
  return `${sender}/${dedupeKey}`;
}

/** Attempts to hand messages on, by `{message id}/{number from 1, six digits}`: those of one message are neighbours by id. */
export const receivedAttemptsTable = 'received_attempts';

/** As served by `GET {base}/received/{id}/attempts`. */
export type ReceivedAttempt = {
  readonly number: number;
  readonly outcome: 'processed' | 'failed';
  /** Kind of the failure: `thrown`, `timeout`, `unprocessable`, `thread-ended`, `refused`, `status`, or one of the egress dialer. */
  readonly error: string | null;
  readonly message: string | null;
  /** Of the answer, where the message was forwarded. */
  readonly statusCode: number | null;
  readonly trigger: 'automatic' | 'manual';
  readonly at: string;
  readonly durationMs: number;
};

/** Secrets of senders whose variable is not set, by the name of the sender, or `{name}/forward` for what it is forwarded with. */
export const senderSecretsTable = 'sender_secrets';
export type SenderSecretsRow = {
  /** The current one first; `until` of the others in milliseconds since the epoch. */
  readonly secrets: readonly { readonly secret: string; readonly until: number | null }[];
};

/** The inbox (§4.14): every message that was accepted, and what became of it. Administrators alone see it. */

const time = Type.String({ format: 'date-time' });
const textOrNull = Type.Union([Type.String(), Type.Null()]);

export const receivedCollection: Collection = resolveBuiltIn('received', {
  description: 'Webhooks that senders posted here: verified, stored once, and handed on.',
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
  // The first is the queue of each sender, the second finds what failed.
  indexes: [['sender', 'dueAt'], 'status'],
  search: [],
});

/*
 * How long the receiver keeps what it wrote down (§4.14): messages and their attempts from their last change, contents from when they came,
 * because rows of contents never change. A message whose content is gone can be read and marked, and not be handed on any more.
 */

export function receivingRetention({
  receivedRetentionSeconds,
}: Pick<Settings, 'receivedRetentionSeconds'>): readonly RetentionRule[] {
  return [receivedCollection.name, receivedAttemptsTable, receivedContentsTable].map((table) => ({
    table,
    seconds: receivedRetentionSeconds,
  }));
}
