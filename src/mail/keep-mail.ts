/**
 * Keeps mails: creates the two rows of each, its state and its sealed content, which the cause of the mail commits with its own unit. So a
 * mail exists exactly if that unit does, and no mail server is waited for.
 *
 * What an application gives to `mail.send` (model/logic/logic.ts) is checked first, all at once, and made complete: templates are filled in here,
 * so that a mistake refuses the unit instead of failing later. No part of a mail can add a header field or a recipient.
 */

import { isRecord, kindOf, suggestion } from '../config/inspection.ts';
import type { DeclaredMail, MailTemplate, Piece } from '../config/mail-templates.ts';
import { ResourceRefused } from '../config/senders.ts';
import { problems } from '../http/problem-registry.ts';
import type { KeptMail } from '../model/kept-mail.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, keptRow } from '../store/store.ts';
import { normalizeEmail } from './email.ts';
import { type Attachment, type KeptContent, mailContentsTable, mailsCollection } from './mail-tables.ts';

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

type MailKeeper = {
  /** For the mails of accounts; undefined without a mail server. */
  readonly mailPort: MailPort | undefined;
  /** For `mail.send` of functions. @param mail a value or its JSON text @throws ResourceRefused */
  keepOutgoing(mail: unknown): Promise<readonly Change[]>;
};

/** @param outside something that takes mails in place of the mail server of the settings */
export function createMailKeeper(
  { store, clock, newId, settings }: Services,
  templates: DeclaredMail['templates'],
  outside: object | undefined,
): MailKeeper {
  const hasServer = settings.smtpUrl !== undefined || outside !== undefined;
  const keep = (letter: Letter): readonly Change[] => changesOf(letter, `mail_${newId()}`, clock());
  const mailPort: MailPort = {
    keep,
    async send(letter) {
      await store.commit({ changes: keep(letter), events: [] });
    },
  };
  return {
    mailPort: hasServer ? mailPort : undefined,
    async keepOutgoing(mail) {
      const letter = letterOf(mail, templates, settings);
      // In development without a mail server, mails are shown in the log.
      if (hasServer || settings.development) return keep(letter);
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

type MailLimits = { readonly mailRecipientsMax: number; readonly mailBytesMax: number };

/** Receives a member as a JSON Pointer, and what is wrong with it. */
type Refuse = (pointer: string, predicate: string) => void;

const subjectCharactersMax = 998;
const headersMax = 50;
const headerCharactersMax = 4000;
/** Printable ASCII without the colon (RFC 5322 §3.6.8). */
const headerName = /^[\x21-\x39\x3b-\x7e]{1,76}$/;
const lineBreak = /[\r\n\0]/;
const attachmentsMax = 50;
/** Characters of the name of a person or a file. */
const nameCharactersMax = 200;
const controls = /\p{Cc}/u;
/** RFC 6838 §4.2, without parameters. */
const mediaType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;
const shownCharactersMax = 100;
const messageCharactersMax = 1000;

const members: ReadonlySet<string> = new Set([
  ...['to', 'cc', 'bcc', 'subject', 'text', 'html', 'replyTo', 'headers', 'template', 'values'],
  'attachments',
]);
/** Set by Comity, or by servers on the way; in lower case. Those that begin with `content-` and `resent-` too. */
const ownHeaders: ReadonlySet<string> = new Set([
  ...['from', 'sender', 'to', 'cc', 'bcc', 'reply-to', 'subject', 'date', 'message-id', 'mime-version'],
  ...['return-path', 'received', 'dkim-signature', 'auto-submitted', 'delivered-to'],
]);
const ownPrefix = /^(?:content-|resent-)/;

/**
 * @param mail a value, or its JSON text as threads send it
 * @throws ResourceRefused with every mistake
 */
function letterOf(mail: unknown, templates: ReadonlyMap<string, MailTemplate>, limits: MailLimits): Letter {
  const faults: string[] = [];
  const refuse: Refuse = (pointer, predicate) => void faults.push(`${pointer} ${predicate}`);
  const given: unknown = typeof mail === 'string' ? JSON.parse(mail) : mail;
  if (!isRecord(given)) throw refusal([`must be an object, not ${kindOf(given)}`]);
  for (const name of Object.keys(given)) {
    if (!members.has(name)) refuse(`/${name}`, `is not a member of a mail${suggestion(name, members)}`);
  }
  const names: Names = new Map();
  const letter = {
    ...recipientsOf(given, names, limits, refuse),
    replyTo: replyToOf(given.replyTo, names, refuse),
    names: Object.fromEntries(names),
    headers: headersOf(given.headers, refuse),
    attachments: attachmentsOf(given.attachments, refuse),
    ...contentOf(given, templates, refuse),
  };
  const octets = octetsOf(letter);
  if (octets > limits.mailBytesMax)
    refuse(
      letter.attachments.length === 0 ? '/text' : '/attachments',
      `and the other parts have ${octets} octets; the limit is ${limits.mailBytesMax} (COMITY_MAIL_BYTES_MAX)`,
    );
  if (faults.length > 0) throw refusal(faults);
  return letter;
}

function refusal(faults: readonly string[]): ResourceRefused {
  const message = `the mail is malformed: ${faults.join('; ')}`;
  return new ResourceRefused(
    'validation_failed',
    message.slice(0, messageCharactersMax),
    problems.validation_failed.status,
  );
}

/**
 * A mistake of the function, whatever its caller sent: the response is a 500, and the log has the reason. What is wrong with a mail that a
 * caller's data makes is a refusal.
 */
function fault(predicate: string): ResourceRefused {
  return new ResourceRefused(
    'internal',
    `the mail ${predicate}`.slice(0, messageCharactersMax),
    problems.internal.status,
  );
}

/** Names of recipients, by address. */
type Names = Map<string, string>;

const copies = ['cc', 'bcc'] as const;

/** An address that stands in several lists is a recipient by the first of them. */
function recipientsOf(
  given: Readonly<Record<string, unknown>>,
  names: Names,
  { mailRecipientsMax }: MailLimits,
  refuse: Refuse,
): Pick<Letter, 'to' | 'cc' | 'bcc'> {
  const [to, cc, bcc] = [given.to, given.cc ?? [], given.bcc ?? []];
  const count = [to, cc, bcc].flat().length;
  if (to === undefined || [to].flat().length === 0) {
    refuse('/to', 'must name a recipient, such as ada@example.com');
    return { to: [] };
  }
  if (count > mailRecipientsMax) {
    const where = copies.every((copy) => given[copy] === undefined) ? '/to has' : '/to, /cc and /bcc have';
    refuse(where, `${count} recipients; the limit is ${mailRecipientsMax} (COMITY_MAIL_RECIPIENTS_MAX)`);
    return { to: [] };
  }
  const first = addressesOf(to, '/to', names, refuse);
  const second = addressesOf(cc, '/cc', names, refuse);
  const third = addressesOf(bcc, '/bcc', names, refuse);
  return { to: first, cc: without(second, first), bcc: without(third, [...first, ...second]) };
}

function addressesOf(list: unknown, pointer: string, names: Names, refuse: Refuse): readonly string[] {
  const addresses = [list]
    .flat()
    .map((each, at) => addressOf(each, Array.isArray(list) ? `${pointer}/${at}` : pointer, names, refuse));
  return [...new Set(addresses.filter((address) => address !== undefined))];
}

function without(addresses: readonly string[], others: readonly string[]): readonly string[] {
  return [...new Set(addresses).difference(new Set(others))];
}

function addressOf(given: unknown, pointer: string, names: Names, refuse: Refuse): string | undefined {
  const isNamed = isRecord(given) && 'name' in given && 'address' in given;
  const text = isNamed ? given.address : given;
  const address = typeof text === 'string' ? normalizeEmail(text) : undefined;
  if (address === undefined) {
    const expected = 'must be an e-mail address such as ada@example.com, or { name, address }';
    refuse(isNamed ? `${pointer}/address` : pointer, `${expected}, not ${shown(text)}`);
    return undefined;
  }
  if (!isNamed) return address;
  const { name } = given;
  if (typeof name !== 'string' || name.length > nameCharactersMax || controls.test(name) || !isFitting(name))
    refuse(`${pointer}/name`, `must be one line of at most ${nameCharactersMax} characters`);
  else if (!names.has(address)) names.set(address, name);
  return address;
}

function replyToOf(replyTo: unknown, names: Names, refuse: Refuse): string | null {
  if (replyTo === undefined || replyTo === null) return null;
  return addressOf(replyTo, '/replyTo', names, refuse) ?? null;
}

function attachmentsOf(given: unknown, refuse: Refuse): readonly Attachment[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given) || given.length > attachmentsMax) {
    refuse('/attachments', `must be a list of at most ${attachmentsMax} files`);
    return [];
  }
  return given.map((each: unknown, at) => attachmentOf(each, `/attachments/${at}`, refuse));
}

function attachmentOf(given: unknown, pointer: string, refuse: Refuse): Attachment {
  const { name, type = null, content, ...others } = isRecord(given) ? given : {};
  for (const member of Object.keys(others))
    refuse(`${pointer}/${shownName(member)}`, 'is no member of a file');
  if (typeof name !== 'string' || name === '' || name.length > nameCharactersMax || controls.test(name))
    refuse(`${pointer}/name`, `must be one line of 1 to ${nameCharactersMax} characters`);
  if (type !== null && (typeof type !== 'string' || !mediaType.test(type)))
    refuse(`${pointer}/type`, 'must be a media type such as application/pdf');
  // Octets come as base64 (logic/transaction/calls.ts).
  const octets = isRecord(content) ? content.base64 : undefined;
  if (typeof content !== 'string' && typeof octets !== 'string')
    refuse(`${pointer}/content`, 'must be a text or a Uint8Array');
  const base64 = typeof content === 'string' ? Buffer.from(content).toString('base64') : String(octets);
  return { name: String(name), type: type === null ? null : String(type), base64 };
}

function headersOf(headers: unknown, refuse: Refuse): Readonly<Record<string, string>> {
  if (headers === undefined || headers === null) return {};
  if (!isRecord(headers)) {
    refuse('/headers', `must be an object of names and values, not ${kindOf(headers)}`);
    return {};
  }
  const entries = Object.entries(headers);
  if (entries.length > headersMax)
    refuse('/headers', `has ${entries.length} fields; the limit is ${headersMax}`);
  const seen = new Set<string>();
  for (const [name, value] of entries.slice(0, headersMax)) {
    const lower = name.toLowerCase();
    const pointer = `/headers/${shownName(name)}`;
    if (!headerName.test(name)) refuse(pointer, 'is not the name of a header field');
    else if (ownHeaders.has(lower) || ownPrefix.test(lower)) refuse(pointer, 'is set by Comity');
    else if (seen.has(lower)) refuse(pointer, 'is there twice');
    seen.add(lower);
    if (typeof value !== 'string' || value.length > headerCharactersMax || lineBreak.test(value))
      refuse(pointer, `must be one line of at most ${headerCharactersMax} characters`);
  }
  return headers as Readonly<Record<string, string>>;
}

type Content = Pick<Letter, 'subject' | 'text' | 'html' | 'template'>;

const noContent: Content = { subject: '', text: null, html: null, template: null };

function contentOf(
  given: Readonly<Record<string, unknown>>,
  templates: ReadonlyMap<string, MailTemplate>,
  refuse: Refuse,
): Content {
  const { template, values, subject } = given;
  if (template === undefined) {
    if (values !== undefined) refuse('/values', 'needs a template');
    checkSubject(subject, '/subject', refuse);
    const [text, html] = [partOf(given.text, '/text', refuse), partOf(given.html, '/html', refuse)];
    if (text === null && html === null) refuse('/text', 'or /html is required');
    return { subject: String(subject), text, html, template: null };
  }
  for (const name of ['subject', 'text', 'html']) {
    if (given[name] !== undefined) refuse(`/${name}`, 'must not stand beside a template');
  }
  const rendered = rendering(template, values, templates, refuse);
  return rendered === undefined ? noContent : { ...rendered, template: String(template) };
}

function rendering(
  name: unknown,
  values: unknown,
  templates: ReadonlyMap<string, MailTemplate>,
  refuse: Refuse,
): RenderedMail | undefined {
  const template = typeof name === 'string' ? templates.get(name) : undefined;
  if (template === undefined)
    throw fault(`names no template: ${shown(name)}${suggestion(String(name), templates.keys())}`);
  if (!isRecord(values)) {
    refuse('/values', `must be an object, not ${kindOf(values)}`);
    return undefined;
  }
  const faults = valueFaults(template, values as MailValues);
  if (faults.length > 0) throw fault(`has other values than its template: it ${faults.join('; it ')}`);
  const wrong = Object.entries(values).filter(([, value]) => !isValue(value));
  for (const [value] of wrong) refuse(`/values/${shownName(value)}`, 'must be a text or a number');
  if (wrong.length > 0) return undefined;
  const rendered = renderTemplate(template, values as MailValues);
  checkSubject(rendered.subject, `/values makes the subject of ${template.name}, which`, refuse);
  return rendered;
}

function isValue(value: unknown): value is string | number {
  return (
    (typeof value === 'string' && isFitting(value)) || (typeof value === 'number' && Number.isFinite(value))
  );
}

function checkSubject(subject: unknown, pointer: string, refuse: Refuse): void {
  if (
    typeof subject !== 'string' ||
    subject.trim() === '' ||
    subject.length > subjectCharactersMax ||
    lineBreak.test(subject) ||
    !isFitting(subject)
  )
    refuse(pointer, `must be one line of 1 to ${subjectCharactersMax} characters`);
}

function partOf(part: unknown, pointer: string, refuse: Refuse): string | null {
  if (part === undefined || part === null) return null;
  if (typeof part !== 'string' || part.trim() === '' || !isFitting(part)) {
    refuse(
      pointer,
      `must be a text that is not empty, not ${typeof part === 'string' ? shown(part) : kindOf(part)}`,
    );
    return null;
  }
  return part;
}

/** Text that JSON in PostgreSQL, and UTF-8, can hold. */
function isFitting(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

function octetsOf({ subject, text, html, headers, names = {}, attachments = [] }: Letter): number {
  const files = attachments.map(({ name }) => name);
  const fields = [...Object.entries(headers).flat(), ...Object.values(names), ...files];
  const texts = [subject, text ?? '', html ?? '', ...fields].map((part) => Buffer.byteLength(String(part)));
  const octets = attachments.map(({ base64 }) => Buffer.byteLength(base64, 'base64'));
  return [...texts, ...octets].reduce((sum, length) => sum + length, 0);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, shownCharactersMax);
}

/** A name in a message must not be able to look like another one. */
function shownName(name: string): string {
  return JSON.stringify(name.slice(0, shownCharactersMax)).slice(1, -1);
}

export type MailValues = Readonly<Record<string, string | number>>;

type RenderedMail = { readonly subject: string; readonly text: string; readonly html: string | null };

/** @param values must hold every value of the template; others are ignored */
export function renderTemplate(template: MailTemplate, values: MailValues): RenderedMail {
  const { subject, text, html } = template;
  const plain = (value: string): string => value;
  return {
    subject: fill(subject, values, plain),
    text: fill(text, values, plain),
    html: html === undefined ? null : fill(html, values, escapeHtml),
  };
}

/** The differences between the values of a template and those that are given, as predicates; empty: none. */
function valueFaults({ name, values: needed }: MailTemplate, given: MailValues): readonly string[] {
  const missing = [...needed].filter((value) => !Object.hasOwn(given, value));
  const unknown = Object.keys(given).filter((value) => !needed.has(value));
  return [
    ...missing.map((value) => `lacks ${value}, which the template ${name} needs`),
    ...unknown.map(
      (value) => `has ${value}, which the template ${name} does not use${suggestion(value, needed)}`,
    ),
  ];
}

function fill(pieces: readonly Piece[], values: MailValues, write: (value: string) => string): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : write(String(values[piece.value] ?? ''))))
    .join('');
}

const special = /[&<>"']/g;

/** For text and for quoted attributes. */
function escapeHtml(text: string): string {
  return text.replace(special, (character) => `&#${character.charCodeAt(0)};`);
}
