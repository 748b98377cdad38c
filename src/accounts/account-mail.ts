/**
 * Mails codes to accounts (§5.4). A code is stored as a digest, and is valid for one purpose, account, address, use and period. It has 256
 * random bits; that of a login has 40, to be typed, and is good only with the challenge of the browser that asked for it. The unit that a
 * code enables removes it and all others of its purpose; a reset removes those of every purpose.
 *
 * The mail is kept by the unit that stores the code, so none is lost. Without a mail server no code is created. The duration of a request
 * says nothing about an account: `request` only queues, and the look-up happens later, one request after the other. Each account gets a
 * few mails an hour.
 */
import type { Done } from '../kernel/action.ts';
import type { MailPort } from '../mail/keep-mail.ts';
import { ownerField } from '../model/field.ts';
import { byId } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import { overtaken } from '../store/lines.ts';
import { type Change, keptRow, type Row, type Store, StoreUnavailable } from '../store/store.ts';
import { digestOf, mailCodesTable, unchanged } from './account-tables.ts';
import { type Audit, type From, originOf } from './audit.ts';
import { loginPurposes, type MailCodePurpose, type MailTexts, secondsOfCode } from './mail-texts.ts';
import type { EarlierCaller } from './owner-principal.ts';
import { drawTypedCode, normalizeTyped } from './second-factor/factor-codes.ts';
import { createFindUser, type FindUser, type FoundUser } from './users/user-row.ts';

/** `id`: of the account; null: the address has none yet. */
type Addressee = { readonly id: string | null; readonly email: string };

export type AccountMail = {
  readonly isConfigured: boolean;
  /**
   * Creates a code and the rows of it and its mail, to be committed together; none without a mail server.
   * @param bound what the code belongs to besides
   */
  mint(to: Addressee, purpose: MailCodePurpose, bound?: Bound): readonly Change[];
  /** Creates the code of an invitation that no mail has: its inviter sees it, so it proves no address. */
  mintShown(to: Addressee, by: EarlierCaller): ShownInvitation & { readonly change: Change };
  /** Counts a mail that is about to be sent. False: the account had as many in this hour as it may. @throws StoreUnavailable */
  mayHave(purpose: MailCodePurpose, user: string): Promise<boolean>;
  /** Counts a committed mail toward the hourly limit. */
  count(purpose: MailCodePurpose, user: string): void;
  /** Queues a mail to the account, if it exists. Returns at once. */
  request(request: MailRequest): void;
  settled(): Promise<void>;
  /** Refuses further requests; resolves when the queue is empty. */
  close(): Promise<void>;
};

/** An invitation as its inviter sees it, once. */
export type ShownInvitation = {
  readonly code: string;
  /** The page of the application with the code; null: `COMITY_MAIL_INVITATION_URL` names none. */
  readonly url: string | null;
  readonly expiresAt: string;
};

type MailRequest = From & {
  readonly purpose: MailCodePurpose;
  /** In the form of `normalizeEmail`, or the id of an account. */
  readonly for: { readonly email: string } | { readonly id: string };
  /** The new address, in the form of `normalizeEmail`, where the purpose is `address`. */
  readonly to?: string;
  /** The challenge of the browser that asked, for a login. */
  readonly challenge?: string;
};

/** `challenge`: of a login. `by`: the caller who invites. `isShown`: the code was shown to that caller. */
type Bound = {
  readonly challenge?: string | undefined;
  readonly by?: EarlierCaller;
  readonly isShown?: boolean;
};

/** The services and the parts of accounts that mails need. */
type Mailing = Services & {
  readonly findUser: FindUser;
  readonly audit: Pick<Audit, 'entry'>;
  readonly mint: AccountMail['mint'];
};

/** Mails of one purpose to one account in a sliding hour; a mail counts up to a minute longer. */
export const mailsPerHourMax = 5;
/** Mails in an hour to addresses without an account that one client asks for, so that it cannot send many strangers a mail. */
const newcomersPerHourMax = 30;
const minuteMs = 60_000;
/** Minutes that an hour can touch: one more than fit in it. */
const minutesCounted = 61;

/** @param port undefined without a mail server */
export function createAccountMail(
  services: Services,
  audit: Pick<Audit, 'entry'>,
  port: Pick<MailPort, 'keep'> | undefined,
  texts: MailTexts,
): AccountMail {
  const { store, clock, random, observe, settings } = services;
  const waiting: MailRequest[] = [];
  let working: Promise<void> | undefined;
  let isClosed = false;

  const mint: AccountMail['mint'] = (to, purpose, bound = {}) => {
    if (port === undefined) return [];
    const how = { at: clock(), seconds: secondsOfCode(settings, purpose), random };
    const { code, change } = mintCode(to, purpose, bound, how);
    return [change, ...port.keep(texts(purpose, to.email, code))];
  };

  const mailing = { ...services, audit, mint, findUser: createFindUser(store) };

  /** The store itself reports that it is unavailable. */
  function failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) observe({ kind: 'store-failed', what: 'mail codes', error });
  }

  async function work(): Promise<void> {
    for (let request = waiting.shift(); request !== undefined; request = waiting.shift()) {
      try {
        await sendRequested(mailing, request);
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
    mintShown: (to, by) => mintShown(services, to, by),
    mayHave: (purpose, user) => mayHaveMail(services, purpose, user, mailsPerHourMax),
    count(purpose, user) {
      // If counting fails, the account may get one mail more.
      if (port !== undefined) countMail(services, purpose, user, 1).catch(failed);
    },
    request(request) {
      if (port === undefined || isClosed) return;
      if (waiting.length >= settings.mailsWaitingMax) {
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

function mintShown(
  { clock, random, settings }: Services,
  to: Addressee,
  by: EarlierCaller,
): ShownInvitation & { readonly change: Change } {
  const how = { at: clock(), seconds: secondsOfCode(settings, 'invitation'), random };
  const { code, change } = mintCode(to, 'invitation', { by, isShown: true }, how);
  const url = settings.mailInvitationUrl?.replaceAll('{code}', () => code) ?? null;
  return { code, url, expiresAt: new Date(how.at + how.seconds * 1000).toISOString(), change };
}

async function sendRequested(mailing: Mailing, request: MailRequest): Promise<void> {
  const { store, settings } = mailing;
  const { purpose, for: whom } = request;
  const isLogin = loginPurposes.some((each) => each === purpose);
  // Codes and links of logins count together.
  const counted = isLogin ? 'code' : purpose;
  const first = await findAddressee(mailing, request);
  // Counted also where no mail follows, so that the work until here is the same for every address.
  const name = first?.user.id ?? ('id' in whom ? whom.id : digestOf(whom.email));
  if (!(await mayHaveMail(mailing, counted, name, mailsPerHourMax))) return;
  if (first !== undefined) {
    await store.lines.change(undefined, async () => {
      const unit = { changes: await mailTo(mailing, request), events: [] };
      const commit = await store.commit(unit);
      return commit.outcome === 'superseded' ? overtaken(unit, commit) : undefined;
    });
    return;
  }
  if (!isLogin || settings.registration === 'closed' || !('email' in whom)) return;
  // A disabled account gets no mail.
  if ((await mailing.findUser.byEmail(whom.email)) !== undefined) return;
  if (!(await mayHaveMail(mailing, counted, `from ${request.address}`, newcomersPerHourMax))) return;
  // The address may get an account meanwhile, which the login then enters.
  const changes = mailing.mint({ id: null, email: whom.email }, purpose, request);
  await store.commit({ changes, events: [] });
}

/** Finds the account, as long as it may have the mail. */
async function findAddressee(
  { findUser }: Mailing,
  { purpose, for: whom, to }: MailRequest,
): Promise<FoundUser | undefined> {
  const found = 'id' in whom ? await findUser.byId(whom.id) : await findUser.byEmail(whom.email);
  // A verified address needs no verification.
  if (found === undefined || found.user.disabled) return undefined;
  if (purpose === 'verification' && found.user.emailVerified) return undefined;
  return to !== undefined && (await findUser.byEmail(to)) !== undefined ? undefined : found;
}

/** The account stays as it is until the code is committed, so that none comes after a change that ends codes. */
async function mailTo(mailing: Mailing, request: MailRequest): Promise<readonly Change[]> {
  const found = await findAddressee(mailing, request);
  if (found === undefined) return [];
  const { audit, mint } = mailing;
  const { purpose, to = found.user.email, challenge } = request;
  const fact = { type: 'password.reset_requested', actor: null, subject: found.user.id } as const;
  return [
    unchanged(found.row),
    ...mint({ id: found.user.id, email: to }, purpose, { challenge }),
    ...(purpose === 'reset' ? [audit.entry({ ...fact, ...originOf(request) })] : []),
  ];
}

/** Counts the mail. True if it may be sent. It stays counted even if the following commit fails. */
async function mayHaveMail(
  services: Services,
  purpose: MailCodePurpose,
  id: string,
  most: number,
): Promise<boolean> {
  const counted = await countMail(services, purpose, id, 1);
  if (counted <= most) return true;
  await countMail(services, purpose, id, -1);
  return false;
}

/** Adds to the mails of this minute, shared by all processes. @returns the mails of the last hour */
async function countMail(
  { store, clock }: Services,
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

/** `id` repeats the row's id, which pages of documents do not hold. */
type MailCodeRow = {
  readonly id: string;
  readonly purpose: MailCodePurpose;
  /** The address of the mail; the code proves nothing about a later address of the account. */
  readonly email: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The caller who invited, for an invitation. */
  readonly by?: EarlierCaller;
  /** The caller who invited has seen the code. */
  readonly isShown?: true;
};

export type FoundCode = {
  readonly purpose: MailCodePurpose;
  /** Null: the address had no account when the code was mailed. */
  readonly userId: string | null;
  readonly email: string;
  /** Who invites. */
  readonly by: EarlierCaller | undefined;
  /** Somebody besides the owner of the address has it. */
  readonly isShown: boolean;
  readonly removal: Change;
};

const codeOctets = 32;
/** 32 octets in base64url. */
const codeCharacters = 43;
/** Codes read for one account; the limit on mails keeps them far below. */
const codesMax = 1000;

type MintedCode = { readonly code: string; readonly change: Change };

/** @param how.at milliseconds since the epoch */
function mintCode(
  to: Addressee,
  purpose: MailCodePurpose,
  { challenge, by, isShown }: Bound,
  how: { readonly at: number; readonly seconds: number; readonly random: (count: number) => Buffer },
): MintedCode {
  const code =
    challenge === undefined ? how.random(codeOctets).toString('base64url') : drawTypedCode(how.random);
  const id = idOfCode(code, challenge);
  const expiresAt = how.at + how.seconds * 1000;
  const doc: MailCodeRow = {
    id,
    purpose,
    email: to.email,
    expiresAt,
    ...(by === undefined ? {} : { by }),
    ...(isShown === true ? { isShown } : {}),
  };
  const next = keptRow(JSON.stringify(doc), to.id, how.at, how.at);
  return { code, change: { table: mailCodesTable, id, expect: { absent: true }, next } };
}

function idOfCode(code: string, challenge: string | undefined): string {
  return digestOf(challenge === undefined ? code : `${challenge} ${normalizeTyped(code)}`);
}

/**
 * Returns undefined for a code that is unknown, used, expired or of other purposes, or of another challenge.
 * @param now milliseconds since the epoch @param challenge of a login
 */
export async function findCode(
  store: Pick<Store, 'read'>,
  code: string,
  purposes: readonly MailCodePurpose[],
  now: number,
  challenge?: string,
): Promise<FoundCode | undefined> {
  if (challenge === undefined ? code.length !== codeCharacters : normalizeTyped(code) === undefined)
    return undefined;
  const row = await store.read(mailCodesTable, idOfCode(code, challenge));
  if (row === undefined) return undefined;
  const { purpose, email, expiresAt, by, isShown = false } = JSON.parse(row.doc) as MailCodeRow;
  if (!purposes.includes(purpose) || expiresAt <= now) return undefined;
  return { purpose, userId: row.owner, email, by, isShown, removal: removeRow(row) };
}

/** Codes that lead into an account, or to its address. */
export const codesOfAccess: readonly MailCodePurpose[] = ['reset', 'invitation', ...loginPurposes, 'address'];
/** All but those that take back a change of the address: who got hold of an account must not end these. */
export const codesOfOwner: readonly MailCodePurpose[] = [...codesOfAccess, 'verification'];

/** Returns changes that remove the account's codes of the purposes, except one that the caller removes. */
export async function removeCodes(
  store: Pick<Store, 'plan' | 'read'>,
  userId: string,
  purposes: readonly MailCodePurpose[],
  except: string | null,
): Promise<readonly Change[]> {
  const { docs } = await store.plan(queryCodes(userId)).page({ from: 'start' });
  const codes = docs.map((doc) => JSON.parse(doc) as MailCodeRow);
  const others = codes.filter(({ id, purpose }) => purposes.includes(purpose) && id !== except);
  const rows = await Promise.all(others.map(({ id }) => store.read(mailCodesTable, id)));
  return rows.flatMap((row) => (row === undefined ? [] : [removeRow(row)]));
}

function queryCodes(userId: string) {
  const filter = { op: 'eq', field: ownerField, value: userId } as const;
  return { table: mailCodesTable, filter, sort: byId, limit: codesMax };
}

function removeRow(row: Row): Change {
  return { table: mailCodesTable, id: row.id, expect: { rev: row.rev }, next: null };
}

/** The refusal where only a mail could help and the program can send none, the same for every account. */
export const mailMissing: Done = {
  refused: { code: 'unavailable', message: 'no mail server is configured' },
};
