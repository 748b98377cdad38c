/**
 * Keeps mails: creates the two rows of each, its state and its sealed content, which the cause of the mail commits with its own unit. So a
 * mail exists exactly if that unit does, and no mail server is waited for.
 */
import { ResourceRefused } from '../config/handler.ts';
import type { MailOptions } from '../config/mail-templates.ts';
import { problems } from '../http/problem-registry.ts';
import type { KeptMail } from '../model/kept-mail.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, keptRow } from '../store/store.ts';
import type { Letter, MailPort } from './mail-port.ts';
import { type KeptContent, mailContentsTable, mailsCollection } from './mail-tables.ts';
import { letterOf } from './outgoing-mail.ts';

export type MailKeeper = MailPort & {
  /** For `mail.send` of functions. @param mail a value or its JSON text @throws ResourceRefused */
  keepOutgoing(mail: unknown): Promise<readonly Change[]>;
};

/** @param outside something that takes mails in place of the mail server of the settings */
export function createMailKeeper(
  { store, clock, newId, settings }: Services,
  templates: MailOptions['templates'],
  outside: object | undefined,
): MailKeeper {
  // In development without a mail server, mails are shown in the log.
  const isSent = settings.smtpUrl !== undefined || settings.development || outside !== undefined;
  const keep = (letter: Letter): readonly Change[] => changesOf(letter, `mail_${newId()}`, clock());
  return {
    keep,
    async send(letter) {
      await store.commit({ changes: keep(letter), events: [] });
    },
    async keepOutgoing(mail) {
      const letter = letterOf(mail, templates, settings);
      if (isSent) return keep(letter);
      const message = 'this program has no mail server: set COMITY_SMTP_URL';
      throw new ResourceRefused('unavailable', message, problems.unavailable.status);
    },
  };
}

function changesOf(letter: Letter, id: string, at: number): readonly Change[] {
  const { to, cc = [], bcc = [], names = {}, attachments = [], replyTo, headers } = letter;
  const { subject, template, text, html } = letter;
  const now = new Date(at).toISOString();
  const mail: KeptMail = {
    ...{ id, to, cc, bcc, subject, template, status: 'pending', attempts: 0, scheduledAttempts: 0 },
    ...{ accepted: [], refused: [], dueAt: now, sentAt: null, lastError: null },
    ...{ createdAt: now, updatedAt: now },
  };
  const content: KeptContent = { subject, text, html, replyTo, headers, names, attachments };
  return [
    { table: mailsCollection.name, id, expect: { absent: true }, next: rowOf(mail, at) },
    { table: mailContentsTable, id, expect: { absent: true }, next: rowOf(content, at) },
  ];
}

function rowOf(doc: object, at: number): Change['next'] {
  return keptRow(JSON.stringify(doc), null, at, at);
}
