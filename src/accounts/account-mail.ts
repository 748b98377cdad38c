/**
 * Mails codes to accounts (§5.4). A code has 256 random bits, is stored as a digest, and is valid for one purpose, account, address, use and
 * period. The unit that a code enables removes it and all others of its purpose; a reset removes those of every purpose.
 *
 * The mail is kept by the unit that stores the code, so none is lost. Without a mail server no code is created. The duration of a request
 * says nothing about an account: `request` only queues, and the look-up happens later, one request after the other. Each account gets a
 * few mails an hour.
 */
import { ConfigurationError } from '../config/inspection.ts';
import { type MailTemplate, parseTemplate } from '../config/mail-templates.ts';
import type { Settings } from '../config/settings.ts';
import type { Done } from '../kernel/action.ts';
import { type Letter, type MailPort, type MailValues, renderTemplate } from '../mail/keep-mail.ts';
import { ownerField } from '../model/field.ts';
import { byId } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, keptRow, type Row, type Store, StoreUnavailable } from '../store/store.ts';
import { digestOf, mailCodesTable, type User } from './account-tables.ts';
import { type Audit, type From, originOf } from './audit.ts';
import { createFindUser, type FindUser, type FoundUser } from './users/user-row.ts';

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

type MailRequest = From & {
  readonly purpose: MailCodePurpose;
  /** In the form of `normalizeEmail`, or the id of an account. */
  readonly for: { readonly email: string } | { readonly id: string };
};

/** The services and the parts of accounts that mails need. */
type Mailing = Services & {
  readonly findUser: FindUser;
  readonly audit: Pick<Audit, 'entry'>;
  readonly mint: AccountMail['mint'];
};

/** Mails of one purpose to one account in a sliding hour; a mail counts up to a minute longer. */
const mailsPerHourMax = 5;
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

  const mint: AccountMail['mint'] = (user, purpose) => {
    if (port === undefined) return [];
    const { verificationCodeSeconds, resetCodeSeconds } = settings;
    const seconds = purpose === 'verification' ? verificationCodeSeconds : resetCodeSeconds;
    const { code, change } = mintCode(user, purpose, { at: clock(), seconds, random });
    return [change, ...port.keep(texts(purpose, user.email, code))];
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

async function sendRequested(mailing: Mailing, { purpose, for: whom, ...from }: MailRequest): Promise<void> {
  const { store, findUser, audit, mint } = mailing;
  const found = 'id' in whom ? await findUser.byId(whom.id) : await findUser.byEmail(whom.email);
  if (found === undefined || !isEligible(purpose, found)) return;
  const { user } = found;
  if (!(await mayHaveMail(mailing, purpose, user.id))) return;
  const mail = mint(user, purpose);
  const fact = { type: 'password.reset_requested', actor: null, subject: user.id } as const;
  const changes = purpose === 'reset' ? [...mail, audit.entry({ ...fact, ...originOf(from) })] : mail;
  await store.commit({ changes, events: [] });
}

/** Counts the mail. True if it may be sent. It stays counted even if the following commit fails. */
async function mayHaveMail(services: Services, purpose: MailCodePurpose, id: string): Promise<boolean> {
  const counted = await countMail(services, purpose, id, 1);
  if (counted <= mailsPerHourMax) return true;
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

/** A disabled account gets no mail; a verified address needs no verification. */
function isEligible(purpose: MailCodePurpose, { user }: FoundUser): boolean {
  return !user.disabled && (purpose === 'reset' || !user.emailVerified);
}

/** `id` repeats the row's id, which pages of documents do not hold. */
type MailCodeRow = {
  readonly id: string;
  readonly purpose: MailCodePurpose;
  /** The address of the mail; the code proves nothing about a later address of the account. */
  readonly email: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
};

export type FoundCode = { readonly userId: string; readonly email: string; readonly removal: Change };

const codeOctets = 32;
/** 32 octets in base64url. */
const codeCharacters = 43;
/** Codes read for one account; the limit on mails keeps them far below. */
const codesMax = 1000;

type MintedCode = { readonly code: string; readonly change: Change };

/** @param how.at milliseconds since the epoch */
function mintCode(
  user: Pick<User, 'id' | 'email'>,
  purpose: MailCodePurpose,
  how: { readonly at: number; readonly seconds: number; readonly random: (count: number) => Buffer },
): MintedCode {
  const code = how.random(codeOctets).toString('base64url');
  const id = digestOf(code);
  const doc: MailCodeRow = { id, purpose, email: user.email, expiresAt: how.at + how.seconds * 1000 };
  const next = keptRow(JSON.stringify(doc), user.id, how.at, how.at);
  return { code, change: { table: mailCodesTable, id, expect: { absent: true }, next } };
}

/** Returns undefined for a code that is unknown, used, expired or of another purpose. @param now milliseconds since the epoch */
export async function findCode(
  store: Pick<Store, 'read'>,
  code: string,
  purpose: MailCodePurpose,
  now: number,
): Promise<FoundCode | undefined> {
  if (code.length !== codeCharacters) return undefined;
  const row = await store.read(mailCodesTable, digestOf(code));
  if (row === undefined || row.owner === null) return undefined;
  const found = JSON.parse(row.doc) as MailCodeRow;
  if (found.purpose !== purpose || found.expiresAt <= now) return undefined;
  return { userId: row.owner, email: found.email, removal: removeRow(row) };
}

/** Returns changes that remove the account's codes of a purpose, or of all, except one that the caller removes. */
export async function removeCodes(
  store: Pick<Store, 'plan' | 'read'>,
  userId: string,
  purpose: MailCodePurpose | 'all',
  except: string | null,
): Promise<readonly Change[]> {
  const { docs } = await store.plan(queryCodes(userId)).page({ from: 'start' });
  const codes = docs.map((doc) => JSON.parse(doc) as MailCodeRow);
  const others = codes.filter(
    (code) => (purpose === 'all' || code.purpose === purpose) && code.id !== except,
  );
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

// Mails to owners of accounts, about the account, its second factor or a webhook endpoint: the built-in templates, which a project's
// templates of the same names replace, and their values. No value contains text from another client, so that Comity cannot be used to send
// an attacker's words.

type MailCodePurpose = 'verification' | 'reset';

/** The members of the application that mails show. */
type Application = {
  readonly title: string;
  /** Those of the project. */
  readonly templates: ReadonlyMap<string, MailTemplate>;
};

/** Settings of these names. The pages of the application have a `{code}` placeholder; without a page the mail holds the code itself. */
type CodeSettings = Pick<
  Settings,
  'mailVerificationUrl' | 'mailResetUrl' | 'verificationCodeSeconds' | 'resetCodeSeconds'
>;

type MailTexts = (purpose: MailCodePurpose, to: string, code: string) => Letter;

const instructionByLink = 'open this page:\n\n{{link}}';
const instructionByCode = 'use this code:\n\n{{code}}';

const verifyEmail = (instruction: string): string => `Subject: {{title}}: confirm your e-mail address

Someone, probably you, used this address for an account at {{title}}.

To confirm it, ${instruction}

It works once, within {{validFor}}. If this was not you, ignore this mail.
`;

const resetPassword = (instruction: string): string => `Subject: {{title}}: set a new password

Someone, probably you, requested a new password for the account with this address at {{title}}.

To set one, ${instruction}

It works once, within {{validFor}}. If this was not you, ignore this mail: your password does not change.
`;

/** @throws ConfigurationError if a template needs a page that no setting gives */
export function createMailTexts(application: Application, settings: CodeSettings): MailTexts {
  const { templates } = application;
  const title = titleOf(application);
  const { mailVerificationUrl, mailResetUrl } = settings;
  const byPurpose = {
    verification: {
      template: templateOf(templates, 'verify-email', verifyEmail(instructionFor(mailVerificationUrl))),
      url: mailVerificationUrl,
      setting: 'COMITY_MAIL_VERIFICATION_URL',
      validFor: formatDuration(settings.verificationCodeSeconds),
    },
    reset: {
      template: templateOf(templates, 'reset-password', resetPassword(instructionFor(mailResetUrl))),
      url: mailResetUrl,
      setting: 'COMITY_MAIL_RESET_URL',
      validFor: formatDuration(settings.resetCodeSeconds),
    },
  };
  for (const { template, url, setting } of Object.values(byPurpose)) {
    if (url === undefined && template.values.has('link'))
      throw new ConfigurationError([
        `the mail template ${template.name} uses {{link}}: set ${setting} to the page of your application`,
      ]);
  }
  return (purpose, to, code) => {
    const { template, url, validFor } = byPurpose[purpose];
    const link = url?.replaceAll('{code}', () => code) ?? '';
    return letterOf(template, to, { title, email: to, code, link, validFor });
  };
}

function instructionFor(url: string | undefined): string {
  return url === undefined ? instructionByCode : instructionByLink;
}

/** Facts about a webhook endpoint for a mail; no URL, because its path may hold a secret. */
type EndpointMailFacts = {
  readonly kind: 'failing' | 'disabled';
  readonly reason: 'gone' | 'failing';
  readonly endpointId: string;
  readonly origin: string;
  /** ISO 8601: the first failure, or the time of the 410. */
  readonly since: string;
};

export type EndpointMailTexts = (to: string, facts: EndpointMailFacts) => Letter;

const endpointFailing = `Subject: {{title}}: a webhook endpoint is failing

The webhook endpoint {{endpoint}} at {{origin}} has accepted no delivery since {{since}}.

Delivery attempts continue. If it accepts none for {{disabledAfter}} in total, it will be disabled.

The log of its deliveries shows the errors.
`;

const consequence =
  'It was disabled. Undelivered events are kept for a time and are sent when you enable the endpoint again; events that happen until then can be recovered.';

const endpointDisabled = `Subject: {{title}}: a webhook endpoint was disabled

The webhook endpoint {{endpoint}} at {{origin}} has accepted no delivery since {{since}}.

${consequence}
`;

const endpointGone = `Subject: {{title}}: a webhook endpoint was disabled

The webhook endpoint {{endpoint}} at {{origin}} answered 410 (Gone) at {{since}}, which means that it wants no more events.

${consequence}
`;

export function createEndpointMailTexts(
  application: Application,
  { endpointDisableSeconds }: Pick<Settings, 'endpointDisableSeconds'>,
): EndpointMailTexts {
  const { templates } = application;
  const title = titleOf(application);
  const disabledAfter = formatDuration(endpointDisableSeconds);
  const failing = templateOf(templates, 'endpoint-failing', endpointFailing);
  const disabled = templateOf(templates, 'endpoint-disabled', endpointDisabled);
  const gone = templateOf(templates, 'endpoint-gone', endpointGone);
  return (to, { kind, reason, endpointId: endpoint, origin, since }) => {
    const values = { title, endpoint, origin, since, disabledAfter };
    if (kind === 'failing') return letterOf(failing, to, values);
    return letterOf(reason === 'gone' ? gone : disabled, to, values);
  };
}

/** The name of the application, as people see it. */
export function titleOf({ title }: Pick<Application, 'title'>): string {
  return title === '' ? 'Comity' : title;
}

function templateOf(
  templates: ReadonlyMap<string, MailTemplate>,
  name: string,
  builtIn: string,
): MailTemplate {
  const mistakes: string[] = [];
  const template = templates.get(name) ?? parseTemplate(name, builtIn, undefined, mistakes);
  if (template === undefined) throw new Error(mistakes.join('\n'));
  return template;
}

function letterOf(template: MailTemplate, to: string, values: MailValues): Letter {
  return {
    ...{ to: [to], ...renderTemplate(template, values) },
    ...{ replyTo: null, headers: {}, template: template.name },
  };
}

/** Formats a duration in the largest unit that divides it. */
export function formatDuration(seconds: number): string {
  const [name, length] = units.find((unit) => seconds % unit[1] === 0) ?? ['second', 1];
  const count = seconds / length;
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** The mail about a change of the second factor, so that its owner notices a change by someone else. */
export type FactorMail = (user: Pick<User, 'email'>, news: FactorNews, at: number) => readonly Change[];

export type FactorNews = keyof typeof sentences;

const sentences = {
  'totp-added': 'An authenticator application was added to your account.',
  'totp-removed': 'The authenticator application was removed from your account.',
  'passkey-added': 'A passkey was added to your account.',
  'passkey-removed': 'A passkey was removed from your account.',
  'codes-created': 'New recovery codes were created for your account. The earlier ones no longer work.',
  'code-used': 'A recovery code of your account was used.',
  reset: 'An administrator removed the second factor of your account and ended its sessions.',
} as const;

const factorChanged = `Subject: {{title}}: the second factor of your account

{{change}}

Time: {{at}}

If this was not you, change your password, and ask an administrator of {{title}} for help.
`;

/**
 * @param port undefined without a mail server
 * @returns the changes that keep the mail, for the unit that it reports
 */
export function createFactorMail(
  application: Application,
  port: Pick<MailPort, 'keep'> | undefined,
): FactorMail {
  const title = titleOf(application);
  const template = templateOf(application.templates, 'second-factor-changed', factorChanged);
  return (user, news, at) => {
    if (port === undefined) return [];
    const values = { title, change: sentences[news], at: new Date(at).toISOString() };
    return port.keep(letterOf(template, user.email, values));
  };
}
