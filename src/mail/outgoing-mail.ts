/**
 * Checks what an application gives to `mail.send` (model/logic/logic.ts), all at once, and makes it complete: templates are filled in here,
 * so that a mistake refuses the unit instead of failing later. No part of a mail can add a header field or a recipient.
 */
import { ResourceRefused } from '../config/handler.ts';
import { isRecord, kindOf } from '../config/inspection.ts';
import type { MailTemplate } from '../config/mail-templates.ts';
import { suggestion } from '../config/nearest.ts';
import { problems } from '../http/problem-registry.ts';
import { normalizeEmail } from './email.ts';
import type { Letter } from './mail-port.ts';
import { type MailValues, type RenderedMail, renderTemplate, valueFaults } from './render-template.ts';

export type MailLimits = { readonly mailRecipientsMax: number; readonly mailBytesMax: number };

/** Receives a member as a JSON Pointer, and what is wrong with it. */
type Refuse = (pointer: string, predicate: string) => void;

const subjectCharactersMax = 998;
const headersMax = 50;
const headerCharactersMax = 4000;
/** Printable ASCII without the colon (RFC 5322 §3.6.8). */
const headerName = /^[\x21-\x39\x3b-\x7e]{1,76}$/;
const lineBreak = /[\r\n\0]/;
const shownCharactersMax = 100;
const messageCharactersMax = 1000;

const members: ReadonlySet<string> = new Set([
  ...['to', 'subject', 'text', 'html', 'replyTo', 'headers', 'template', 'values'],
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
export function letterOf(
  mail: unknown,
  templates: ReadonlyMap<string, MailTemplate>,
  limits: MailLimits,
): Letter {
  const faults: string[] = [];
  const refuse: Refuse = (pointer, predicate) => void faults.push(`${pointer} ${predicate}`);
  const given: unknown = typeof mail === 'string' ? JSON.parse(mail) : mail;
  if (!isRecord(given)) throw refusal([`must be an object, not ${kindOf(given)}`]);
  for (const name of Object.keys(given)) {
    if (!members.has(name)) refuse(`/${name}`, `is not a member of a mail${suggestion(name, members)}`);
  }
  const letter = {
    to: recipientsOf(given.to, limits, refuse),
    replyTo: replyToOf(given.replyTo, refuse),
    headers: headersOf(given.headers, refuse),
    ...contentOf(given, templates, refuse),
  };
  const octets = octetsOf(letter);
  if (octets > limits.mailBytesMax)
    refuse(
      '/text',
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

function recipientsOf(to: unknown, { mailRecipientsMax }: MailLimits, refuse: Refuse): readonly string[] {
  const list: readonly unknown[] = Array.isArray(to) ? to : [to];
  if (to === undefined || list.length === 0) {
    refuse('/to', 'must name a recipient, such as ada@example.com');
    return [];
  }
  if (list.length > mailRecipientsMax) {
    refuse(
      '/to',
      `has ${list.length} recipients; the limit is ${mailRecipientsMax} (COMITY_MAIL_RECIPIENTS_MAX)`,
    );
    return [];
  }
  const addresses = list.map((each, at) => addressOf(each, Array.isArray(to) ? `/to/${at}` : '/to', refuse));
  return [...new Set(addresses.filter((address) => address !== undefined))];
}

function addressOf(text: unknown, pointer: string, refuse: Refuse): string | undefined {
  const address = typeof text === 'string' ? normalizeEmail(text) : undefined;
  if (address === undefined)
    refuse(pointer, `must be an e-mail address without a name, such as ada@example.com, not ${shown(text)}`);
  return address;
}

function replyToOf(replyTo: unknown, refuse: Refuse): string | null {
  return replyTo === undefined || replyTo === null ? null : (addressOf(replyTo, '/replyTo', refuse) ?? null);
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
  if (template === undefined) {
    refuse('/template', `names no template: ${shown(name)}${suggestion(String(name), templates.keys())}`);
    return undefined;
  }
  if (!isRecord(values)) {
    refuse('/values', `must be an object, not ${kindOf(values)}`);
    return undefined;
  }
  const wrong = Object.entries(values).filter(([, value]) => !isValue(value));
  for (const [value] of wrong) refuse(`/values/${shownName(value)}`, 'must be a text or a number');
  const faults = valueFaults(template, values as MailValues);
  for (const fault of faults) refuse('/values', fault);
  if (wrong.length > 0 || faults.length > 0) return undefined;
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

/** What JSON in PostgreSQL, and UTF-8, can hold. */
function isFitting(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

function octetsOf({ subject, text, html, headers }: Letter): number {
  const parts = [subject, text ?? '', html ?? '', ...Object.entries(headers).flat()];
  return parts.reduce((sum, part) => sum + Buffer.byteLength(String(part)), 0);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, shownCharactersMax);
}

/** A name in a message must not be able to look like another one. */
function shownName(name: string): string {
  return JSON.stringify(name.slice(0, shownCharactersMax)).slice(1, -1);
}
