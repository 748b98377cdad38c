/**
 * Codes by mail: minted for an account, and sent once the unit that keeps them is committed. Where no mail server is configured
 * there is nothing to mint.
 *
 * Whoever asks for a mail learns nothing by how long it takes: `request` only takes the wish down, and everything that depends on whether
 * there is such an account happens behind it, one wish after the other. An account gets a few mails an hour.
 */
import type { Observe } from '../../observe/observation.ts';
import type { Store } from '../../store/store.ts';
import { StoreUnavailable } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { MailTexts } from '../mail/texts.ts';
import type { MailPort } from '../mail-port.ts';
import type { User } from '../tables.ts';
import type { FindUser, FoundUser } from './find-user.ts';
import { type MailCodePurpose, type MintedCode, mintCode } from './mail-code.ts';

export type AccountMail = {
  /** Whether there is a way to send mail. */
  readonly isConfigured: boolean;
  /** A code and the row that must be committed before it is sent; undefined without a mail server. */
  mint(user: Pick<User, 'id' | 'email'>, purpose: MailCodePurpose): MintedCode | undefined;
  /** Sends a code that was minted and committed. The mail counts like one that was requested. */
  sendCode(purpose: MailCodePurpose, user: Pick<User, 'id' | 'email'>, code: string): void;
  /** Takes down that somebody wants a mail for the account, if there is one. Returns at once and tells nothing. */
  request(wish: Wish): void;
  /** Resolves when no wish is left to deal with. */
  settled(): Promise<void>;
  /** Takes down no further wishes, and resolves when those before have been dealt with. */
  close(): Promise<void>;
};

export type Wish = {
  readonly purpose: MailCodePurpose;
  /** As `normalizeEmail` wrote it, or the id of an account. */
  readonly for: { readonly email: string } | { readonly id: string };
  /** As limits count it; for the audit trail. */
  readonly address: string;
};

export type AccountMailOptions = {
  readonly store: Pick<Store, 'commit' | 'tally'>;
  readonly findUser: FindUser;
  /** Undefined: no mail server is configured. */
  readonly port: MailPort | undefined;
  readonly texts: MailTexts;
  readonly audit: Pick<Audit, 'entry'>;
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly observe: Observe;
  readonly verificationCodeSeconds: number;
  readonly resetCodeSeconds: number;
  /** Wishes that may wait; further ones are given up. */
  readonly mailsWaitingMax: number;
};

/** Mails of one purpose to one account in an hour, wherever the hour begins; a mail counts a minute longer at most. */
const mailsPerHourMax = 5;
const minuteMs = 60_000;
/** Minutes that an hour can touch: one more than fit in it. */
const minutesCounted = 61;

export function createAccountMail(options: AccountMailOptions): AccountMail {
  const { port, texts, clock, random, observe } = options;
  const waiting: Wish[] = [];
  let working: Promise<void> | undefined;
  let isClosed = false;

  const mint: AccountMail['mint'] = (user, purpose) => {
    const seconds = purpose === 'verification' ? options.verificationCodeSeconds : options.resetCodeSeconds;
    return port === undefined ? undefined : mintCode(user, purpose, { at: clock(), seconds, random });
  };
  const sendCode: AccountMail['sendCode'] = (purpose, { id, email }, code) => {
    // Where it cannot be counted, the account may get one mail more.
    countMail(options, purpose, id, 1).catch(failed);
    port?.send(texts(purpose, email, code));
  };

  /** The store itself reports that it is away. */
  function failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) observe({ kind: 'store-failed', what: 'mail codes', error });
  }

  async function work(): Promise<void> {
    for (let wish = waiting.shift(); wish !== undefined; wish = waiting.shift()) {
      try {
        await fulfil(options, mint, wish);
      } catch (error) {
        // The person who waits for the mail asks again.
        failed(error);
      }
    }
    working = undefined;
  }

  return {
    isConfigured: port !== undefined,
    mint,
    sendCode,
    request(wish) {
      if (port === undefined || isClosed) return;
      if (waiting.length >= options.mailsWaitingMax) {
        observe({ kind: 'mail-given-up', reason: 'full', attempts: 0, error: undefined });
        return;
      }
      waiting.push(wish);
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

/** Finds the account, and has a code kept and sent, if there is one that it concerns. */
async function fulfil(
  options: AccountMailOptions,
  mint: AccountMail['mint'],
  { purpose, address, for: whom }: Wish,
): Promise<void> {
  const { store, findUser, audit, port, texts } = options;
  const found = 'id' in whom ? await findUser.byId(whom.id) : await findUser.byEmail(whom.email);
  if (found === undefined || !concerns(purpose, found)) return;
  const { user } = found;
  if (!(await mayHaveMail(options, purpose, user.id))) return;
  const code = mint(user, purpose);
  if (code === undefined) return;
  const fact = { type: 'password.reset_requested', actor: null, subject: user.id, address } as const;
  const changes = purpose === 'reset' ? [code.change, audit.entry(fact)] : [code.change];
  const commit = await store.commit({ changes, events: [] });
  if (commit.outcome === 'committed') port?.send(texts(purpose, user.email, code.code));
}

/** Counts the mail where it may be sent. A mail that is counted and then not sent, because the commit failed, counts all the same. */
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

/** Adds to the mails of this minute. Several processes count together. @returns those of the last hour */
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

/** A disabled account gets no mail; one whose address is verified needs no verification. */
function concerns(purpose: MailCodePurpose, { user }: FoundUser): boolean {
  return !user.disabled && (purpose === 'reset' || !user.emailVerified);
}
