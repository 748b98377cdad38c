/**
 * Mail by SMTP (RFC 5321), through nodemailer: one connection for each mail, TLS whose certificate is verified, and plain text without
 * anything that a stranger wrote. With `smtp:` the connection must be upgraded by STARTTLS (RFC 3207) before anything else is said,
 * except to this very machine; `?tls=none` goes without, for a mail server on a network of its own.
 */
import type { SMTPTransportOptions } from 'nodemailer';
import type { Mail, MailPort } from '../auth/mail-port.ts';
import type { Observe } from '../observe/observation.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { Outbox } from './outbox.ts';

export type SmtpMailOptions = {
  /** `smtps://user:password@host:465` or `smtp://host:587`, as the settings table has checked it. */
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly mailTimeoutMs: number;
  readonly mailAttemptsMax: number;
  readonly mailsWaitingMax: number;
  readonly observe: Observe;
  /** Between the first two attempts. */
  readonly firstPauseMs?: number;
  /** Certificates trusted besides those that Node trusts, as PEM. */
  readonly ca?: string;
};

/** `size`: mails on their way. */
export type SmtpMail = MailPort & { readonly size: number };

const firstPauseMsDefault = 5000;

export function createSmtpMail(options: SmtpMailOptions): SmtpMail {
  const { mailFrom, firstPauseMs = firstPauseMsDefault } = options;
  const transport = openTransport(options);
  // Each mail meets the failure itself.
  transport.catch(() => undefined);
  const deliver = async (mail: Mail, signal: AbortSignal): Promise<void> => {
    await (await transport).sendMail({
      from: mailFrom,
      // As an object it is one address, whatever stands in it; as text it could be a list.
      to: { name: '', address: mail.to },
      subject: oneLine(mail.subject),
      text: mail.text,
      // RFC 3834 §5: nobody's absence is told to us in return.
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal,
    });
  };
  return new Outbox({ ...options, firstPauseMs, deliver, isFinal });
}

/** Loading the package takes longer than all of the mail's own code, and most programs start without a mail server. */
async function openTransport(options: SmtpMailOptions) {
  const { createTransport } = await import('nodemailer');
  return ownEmitter(
    createTransport({
      ...connectionOf(new URL(options.smtpUrl), options),
      disableFileAccess: true,
      disableUrlAccess: true,
      logger: false,
    }),
    ignoreError,
  );
}

function connectionOf(url: URL, { mailTimeoutMs, ca }: SmtpMailOptions): SMTPTransportOptions {
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

/** A subject is one line: what would begin another is a space. */
function oneLine(text: string): string {
  return [...text].map((character) => (character < ' ' || character === '\u007f' ? ' ' : character)).join('');
}

/** 5yz to the recipient or the message (RFC 5321 §4.2.1). A refused login may be mended while the mail waits. */
function isFinal(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, responseCode } = error as { readonly code?: unknown; readonly responseCode?: unknown };
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return false;
  // Without an answer it was nodemailer that found the envelope impossible.
  return typeof responseCode === 'number' ? responseCode >= 500 : code === 'EENVELOPE';
}
