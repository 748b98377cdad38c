/** The tables of mail: the mails with their state, which administrators see, and their contents, which no list shows. */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../config/collections.ts';
import type { Settings } from '../config/settings.ts';
import type { Collection } from '../model/collection.ts';
import { mailStatuses } from '../model/kept-mail.ts';
import type { RetentionRule } from '../store/retention.ts';

export type Attachment = {
  readonly name: string;
  /** Null: by the extension of the name. */
  readonly type: string | null;
  readonly base64: string;
};

/**
 * Contents of mails, by the mail's id, as sealed rows: they may hold codes. A row never changes. The unit that records that the mail was
 * sent removes it; that of a failed mail is kept, to send it again, until retention removes it.
 */
export const mailContentsTable = 'mail_contents';
export type KeptContent = {
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  readonly replyTo: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Names of recipients by address. */
  readonly names: Readonly<Record<string, string>>;
  readonly attachments: readonly Attachment[];
};

const time = Type.String({ format: 'date-time' });
const textOrNull = Type.Union([Type.String(), Type.Null()]);

export const mailsCollection: Collection = resolveBuiltIn('mails', {
  description: 'Mails of functions and of accounts, kept until the mail server takes them.',
  schema: Type.Object({
    to: Type.Array(Type.String()),
    cc: Type.Array(Type.String()),
    bcc: Type.Array(Type.String()),
    subject: Type.String(),
    template: textOrNull,
    status: Type.Union(mailStatuses.map((name) => Type.Literal(name))),
    attempts: Type.Integer(),
    scheduledAttempts: Type.Integer(),
    accepted: Type.Array(Type.String()),
    refused: Type.Array(Type.String()),
    dueAt: Type.Union([time, Type.Null()]),
    sentAt: Type.Union([time, Type.Null()]),
    lastError: textOrNull,
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  // The queue, and the mails of one status.
  indexes: [['status', 'dueAt']],
  search: [],
});

/** Mails from their last change, contents from their creation, because those never change. */
export function mailRetention({
  mailRetentionSeconds: seconds,
}: Pick<Settings, 'mailRetentionSeconds'>): readonly RetentionRule[] {
  return [mailsCollection.name, mailContentsTable].map((table) => ({ table, seconds }));
}
