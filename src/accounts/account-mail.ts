/**
 * Mails codes to accounts. The mail is kept by the unit that stores the code, so none is lost. Without a mail server no code is created.
 * The duration of a request tells nothing about an account: `request` only queues, and the look-up happens later, one request after the
 * other. Each account gets a few mails an hour.
 */

import type { MailPort } from '../mail/mail-port.ts';
import type { Services } from '../store/capabilities.ts';
import type { Change, Store } from '../store/store.ts';
import { StoreUnavailable } from '../store/store.ts';
import type { User } from './account-tables.ts';
import { type Audit, type From, originOf } from './audit-fact.ts';
import { type MailCodePurpose, mintCode } from './mail-code.ts';
import type { MailTexts } from './mail-texts.ts';
import type { FindUser, FoundUser } from './users/find-user.ts';

export type AccountMail = {
  readonly isConfigured: boolean;
  /** Creates a code and the rows of it and its mail, to be committed together; none without a mail server. */
  mint(user: Pick<User, 'id' | 'email'>, purpose: MailCodePurpose): readonly Change[];
  /** Counts a committed mail toward the hourly limit. */
  count(purpose: MailCodePurpose, user: string): void;
  /** Queues a mail to the account, if it exists. Returns at once. */
  request(request: MailRequest): void;
  settled(): Promise<void>;
  /** Refuses further requests; resolves when the queue is empty. */
  close(): Promise<void>;
};

export type MailRequest = From & {
  readonly purpose: MailCodePurpose;
  /** In the form of `normalizeEmail`, or the id of an account. */
  readonly for: { readonly email: string } | { readonly id: string };
};

export type AccountMailOptions = Pick<Services, 'clock' | 'random' | 'observe'> & {
  readonly store: Pick<Store, 'commit' | 'tally'>;
  readonly findUser: FindUser;
  readonly port: Pick<MailPort, 'keep'> | undefined;
  readonly texts: MailTexts;
  readonly audit: Pick<Audit, 'entry'>;
  readonly verificationCodeSeconds: number;
  readonly resetCodeSeconds: number;
  readonly mailsWaitingMax: number;
};

/** Mails of one purpose to one account in a sliding hour; a mail counts up to a minute longer. */
const mailsPerHourMax = 5;
const minuteMs = 60_000;
/** Minutes that an hour can touch: one more than fit in it. */
const minutesCounted = 61;

export function createAccountMail(options: AccountMailOptions): AccountMail {
  const { port, texts, clock, random, observe } = options;
  const waiting: MailRequest[] = [];
  let working: Promise<void> | undefined;
  let isClosed = false;

  const mint: AccountMail['mint'] = (user, purpose) => {
    if (port === undefined) return [];
    const seconds = purpose === 'verification' ? options.verificationCodeSeconds : options.resetCodeSeconds;
    const { code, change } = mintCode(user, purpose, { at: clock(), seconds, random });
    return [change, ...port.keep(texts(purpose, user.email, code))];
  };

  /** The store itself reports that it is unavailable. */
  function failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) observe({ kind: 'store-failed', what: 'mail codes', error });
  }

  async function work(): Promise<void> {
    for (let request = waiting.shift(); request !== undefined; request = waiting.shift()) {
      try {
        await sendRequested(options, mint, request);
      } catch (error) {
        // The user can request the mail again.
        failed(error);
      }
    }
    working = undefined;
  }

  return {
    isConfigured: port !== undefined,
    mint,
    count(purpose, user) {
      // If counting fails, the account may get one mail more.
      if (port !== undefined) countMail(options, purpose, user, 1).catch(failed);
    },
    request(request) {
      if (port === undefined || isClosed) return;
      if (waiting.length >= options.mailsWaitingMax) {
        observe({ kind: 'mail-given-up', mail: undefined, reason: 'full', attempts: 0, error: undefined });
        return;
      }
      waiting.push(request);
      working ??= work();
    },
    async settled() {
      await working;
    },
    async close() {
      isClosed = true;
      await working;
    },
  };
}

async function sendRequested(
  options: AccountMailOptions,
  mint: AccountMail['mint'],
  { purpose, for: whom, ...from }: MailRequest,
): Promise<void> {
  const { store, findUser, audit } = options;
  const found = 'id' in whom ? await findUser.byId(whom.id) : await findUser.byEmail(whom.email);
  if (found === undefined || !isEligible(purpose, found)) return;
  const { user } = found;
  if (!(await mayHaveMail(options, purpose, user.id))) return;
  const mail = mint(user, purpose);
  const fact = { type: 'password.reset_requested', actor: null, subject: user.id } as const;
  const changes = purpose === 'reset' ? [...mail, audit.entry({ ...fact, ...originOf(from) })] : mail;
  await store.commit({ changes, events: [] });
}

/** Counts the mail and tells whether it may be sent. It stays counted even if the following commit fails. */
async function mayHaveMail(
  options: AccountMailOptions,
  purpose: MailCodePurpose,
  id: string,
): Promise<boolean> {
  const counted = await countMail(options, purpose, id, 1);
  if (counted <= mailsPerHourMax) return true;
  await countMail(options, purpose, id, -1);
  return false;
}

/** Adds to the mails of this minute, shared by all processes. @returns the mails of the last hour */
async function countMail(
  { store, clock }: AccountMailOptions,
  purpose: MailCodePurpose,
  id: string,
  add: number,
): Promise<number> {
  const minute = Math.floor(clock() / minuteMs);
  const tallies = Array.from({ length: minutesCounted }, (_, age) => ({
    key: `mail ${purpose} ${minute - age} ${id}`,
    add: age === 0 ? add : 0,
    expiresAt: (minute - age + minutesCounted) * minuteMs,
  }));
  const totals = await store.tally(tallies);
  return totals.reduce((sum, total) => sum + Math.max(0, total), 0);
}

/** A disabled account gets no mail; a verified address needs no verification. */
function isEligible(purpose: MailCodePurpose, { user }: FoundUser): boolean {
  return !user.disabled && (purpose === 'reset' || !user.emailVerified);
}
