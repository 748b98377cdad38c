/**
 * One attempt to send a mail by SMTP (RFC 5321) through nodemailer: one connection per attempt, TLS with a verified certificate. With `smtp:`
 * the connection must be upgraded by STARTTLS (RFC 3207) first, except to the same machine; `?tls=none` goes without TLS, for a mail server
 * on a private network. A server that took the mail may still be interrupted before it says so; the retry has the same `Message-ID`, by
 * which receivers can drop the copy.
 */
import type { NodemailerError, SMTPTransportOptions } from 'nodemailer';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { fittingText } from '../work/settlement.ts';
import { normalizeEmail } from './email.ts';
import type { KeptContent } from './mail-tables.ts';

/** The mail server, and how it is used. */
export type MailServer = {
  /** `smtps://user:password@host:465` or `smtp://host:587`, validated by the settings table. */
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly mailTimeoutMs: number;
  /** Certificates trusted in addition to Node's, as PEM. */
  readonly ca?: string;
};

export type SentMail = KeptContent & {
  readonly id: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** Those that the header names. */
  readonly to: readonly string[];
  readonly cc: readonly string[];
  /** Those of this attempt. */
  readonly recipients: readonly string[];
};

/** The reply of the server for one recipient, or for all. */
type Refusal = {
  readonly recipient: string;
  /** Code and text of the server. */
  readonly error: string;
  /** 5yz (RFC 5321 §4.2.1): a further attempt would not help. */
  readonly isFinal: boolean;
};

export type Attempted =
  /** The server was reached: recipients that are not refused were accepted. */
  | { readonly kind: 'answered'; readonly refusals: readonly Refusal[]; readonly error?: unknown }
  /** The server was not reached, or could not be used: it says nothing about the mail. */
  | { readonly kind: 'unreachable'; readonly told: string; readonly error: unknown }
  /** The mail cannot be sent at all. */
  | { readonly kind: 'impossible'; readonly told: string; readonly error: unknown };

/** Never rejects. @param signal ends the attempt */
export type Transport = (mail: SentMail, signal: AbortSignal) => Promise<Attempted>;

const toldCharactersMax = 500;
const endOfAddress = />\s*$/;

export function createSmtp(server: MailServer): Transport {
  const { mailFrom, mailTimeoutMs } = server;
  const host = hostOf(mailFrom);
  let transport: ReturnType<typeof openTransport> | undefined;
  return async (mail, signal) => {
    try {
      transport ??= openTransport(server);
      const ending = AbortSignal.any([signal, AbortSignal.timeout(mailTimeoutMs)]);
      const { rejectedErrors = [] } = await (await transport).sendMail({
        ...messageOf(mail, host),
        from: mailFrom,
        envelope: { from: mailFrom, to: mail.recipients.map(oneAddress) },
        signal: ending,
      });
      return {
        kind: 'answered',
        refusals: refusalsOf(rejectedErrors, mail.recipients),
        error: rejectedErrors[0],
      };
    } catch (error) {
      return failureOf(error, mail.recipients);
    }
  };
}

function messageOf(mail: SentMail, host: string) {
  const { id, to, cc, names, subject, text, html, replyTo, headers, attachments, createdAt } = mail;
  const named = (address: string) => ({ name: names[address] ?? '', address });
  return {
    to: to.map(named),
    ...(cc.length === 0 ? {} : { cc: cc.map(named) }),
    subject: oneLine(subject),
    ...(text === null ? {} : { text }),
    ...(html === null ? {} : { html }),
    ...(replyTo === null ? {} : { replyTo: named(replyTo) }),
    attachments: attachments.map(({ name, type, base64 }) => ({
      filename: name,
      content: Buffer.from(base64, 'base64'),
      ...(type === null ? {} : { contentType: type }),
    })),
    date: new Date(createdAt),
    messageId: `<${id}@${host}>`,
    // Prevents automatic replies (RFC 3834 §5).
    headers: { ...headers, 'Auto-Submitted': 'auto-generated' },
  };
}

/** An object is one address, whatever it contains; a string could be a list. */
function oneAddress(address: string): { readonly name: string; readonly address: string } {
  return { name: '', address };
}

function hostOf(from: string): string {
  return from.slice(from.lastIndexOf('@') + 1).replace(endOfAddress, '');
}

/** Loads nodemailer on demand: it loads slower than the rest of the mail code, and most deployments send no mail. */
async function openTransport(server: MailServer) {
  const { createTransport } = await import('nodemailer');
  return ownEmitter(
    createTransport({
      ...connectionOf(new URL(server.smtpUrl), server),
      disableFileAccess: true,
      disableUrlAccess: true,
      logger: false,
    }),
    ignoreError,
  );
}

function connectionOf(url: URL, { mailTimeoutMs, ca }: MailServer): SMTPTransportOptions {
  const secure = url.protocol === 'smtps:';
  const plain = url.searchParams.get('tls') === 'none';
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return {
    host,
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    requireTLS: !secure && !plain && !isThisMachine(host),
    ignoreTLS: plain,
    ...(url.username === '' ? {} : { auth: credentialsOf(url) }),
    connectionTimeout: mailTimeoutMs,
    greetingTimeout: mailTimeoutMs,
    socketTimeout: mailTimeoutMs,
    dnsTimeout: mailTimeoutMs,
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
  };
}

function credentialsOf({ username, password }: URL): { readonly user: string; readonly pass: string } {
  return { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

/** Replaces control characters, so that a subject cannot start another header line. */
function oneLine(text: string): string {
  return [...text].map((character) => (character < ' ' || character === '\u007f' ? ' ' : character)).join('');
}

/** What nodemailer adds to an error. */
type Answer = Partial<Pick<NodemailerError, 'code' | 'responseCode' | 'response' | 'rejectedErrors'>>;

function answerOf(error: unknown): Answer {
  return typeof error === 'object' && error !== null ? error : {};
}

/** A refused login or greeting says nothing about the mail: the operator may mend it. */
function failureOf(error: unknown, recipients: readonly string[]): Attempted {
  const { code, responseCode, rejectedErrors = [] } = answerOf(error);
  const told = toldOf(error);
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return { kind: 'unreachable', told, error };
  // Without a response, nodemailer itself found the envelope invalid.
  if (responseCode === undefined && code === 'EENVELOPE') return { kind: 'impossible', told, error };
  const own = refusalsOf(rejectedErrors, recipients);
  const others = recipients.filter((recipient) => own.every((refusal) => refusal.recipient !== recipient));
  const isFinal = responseCode !== undefined && responseCode >= 500;
  const refusals = [...own, ...others.map((recipient) => ({ recipient, error: told, isFinal }))];
  return { kind: 'answered', refusals, error };
}

/** Each recipient's refusal. One that cannot be attributed counts for all, because an accepted mail must not be lost. */
function refusalsOf(errors: readonly NodemailerError[], recipients: readonly string[]): readonly Refusal[] {
  return errors.flatMap((error) => {
    const named = normalizeEmail(String(error.recipient));
    const isFinal = (error.responseCode ?? 0) >= 500;
    const of = named !== undefined && recipients.includes(named) ? [named] : recipients;
    return of.map((recipient) => ({ recipient, error: toldOf(error), isFinal }));
  });
}

/** Code and text of the server, or of the system. */
function toldOf(error: unknown): string {
  if (!(error instanceof Error)) return 'failed';
  const { response } = answerOf(error);
  return fittingText(response ?? error.message, toldCharactersMax);
}
