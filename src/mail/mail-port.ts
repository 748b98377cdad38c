/** The part of mail that other features use: rows that keep a mail, to be committed with the unit that causes it (keep-mail.ts). */
import type { Change } from '../store/store.ts';

export type Attachment = {
  readonly name: string;
  /** Null: by the extension of the name. */
  readonly type: string | null;
  readonly base64: string;
};

/** A mail that is complete and was checked. */
export type Letter = {
  /** In the form of `normalizeEmail`; each address stands once. */
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  /** Names by address. */
  readonly names?: Readonly<Record<string, string>>;
  readonly attachments?: readonly Attachment[];
  readonly subject: string;
  readonly text: string | null;
  readonly html: string | null;
  readonly replyTo: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The name of its template; null: none. */
  readonly template: string | null;
};

export type MailPort = {
  /** Creates the rows of a mail. It is sent once they are committed, and again until the mail server takes it. */
  keep(letter: Letter): readonly Change[];
  /** Keeps a mail that belongs to no other unit. @throws StoreUnavailable */
  send(letter: Letter): Promise<void>;
};
