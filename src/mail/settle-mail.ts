/**
 * Settles an attempt to send a mail (work/settlement.ts): its row by its revision, and the removal of its content once it was sent.
 * conclude-mail.ts has the state machine.
 */
import type { KeptMail } from '../model/kept-mail.ts';
import { type Change, keptRow, type Store } from '../store/store.ts';
import { type Settlement, settleByRevision } from '../work/settlement.ts';
import { type Attempted, conclude, type MailPolicy } from './conclude-mail.ts';
import { mailContentsTable, mailsCollection } from './mail-tables.ts';

export type Claimed = {
  readonly mail: KeptMail;
  readonly rev: number;
  readonly contentRev: number | undefined;
  readonly recipients: readonly string[];
};

export type MailRun = {
  readonly attempted: Attempted;
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
};

/** @returns the mail after the attempt; undefined: it was removed meanwhile @throws StoreUnavailable */
export async function settleMail(
  store: Pick<Store, 'commit' | 'lines'>,
  { mail: begun, rev, contentRev, recipients }: Claimed,
  { attempted, endedAt }: MailRun,
  policy: MailPolicy,
): Promise<KeptMail | undefined> {
  let removed = contentRev;
  // Computed once for each state of the row: the jitter of a schedule would make each computation differ.
  let last: { readonly of: KeptMail; readonly mail: KeptMail } | undefined;
  const settlement: Settlement<KeptMail, KeptMail> = {
    table: mailsCollection.name,
    id: begun.id,
    conclude(current) {
      if (last?.of !== current) {
        last = { of: current, mail: conclude(current, attempted, recipients, endedAt, policy) };
      }
      return last.mail;
    },
    unitOf: (mail, current) => ({
      own: [mailChange(mail, current.rev)],
      others: mail.status === 'sent' && removed !== undefined ? [contentRemoval(mail.id, removed)] : [],
    }),
    withNextNumber: (mail) => mail,
    // After a lost response of the store, the row is what this attempt wrote.
    isLogged: async (current, mail) => JSON.stringify(current) === JSON.stringify(mail),
    refused() {
      // Retention removed the content meanwhile.
      removed = undefined;
      return true;
    },
  };
  const settled = await settleByRevision(store, settlement, { work: begun, rev, owner: null });
  if (settled.kind === 'written') return settled.conclusion;
  return settled.kind === 'logged' ? settled.work : undefined;
}

/** @param rev of the row that it replaces */
export function mailChange(mail: KeptMail, rev: number): Change {
  return {
    ...{ table: mailsCollection.name, id: mail.id, expect: { rev } },
    next: keptRow(JSON.stringify(mail), null, Date.parse(mail.createdAt), Date.parse(mail.updatedAt)),
  };
}

function contentRemoval(id: string, rev: number): Change {
  return { table: mailContentsTable, id, expect: { rev }, next: null };
}
