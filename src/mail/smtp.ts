/**
 * Mail by SMTP (RFC 5321) through nodemailer: one connection per mail, TLS with a verified certificate, plain text
 * without text from strangers. With `smtp:` the connection must be upgraded by STARTTLS (RFC 3207) first, except to the
 * same machine; `?tls=none` goes without TLS, for a mail server on a private network.
 */
import type { SMTPTransportOptions } from 'nodemailer';
import type { Observe } from '../observe/observation.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Mail, MailPort } from './mail-port.ts';

export type SmtpMailOptions = {
  /** `smtps://user:password@host:465` or `smtp://host:587`, validated by the settings table. */
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly mailTimeoutMs: number;
  readonly mailAttemptsMax: number;
  readonly mailsWaitingMax: number;
  readonly observe: Observe;
  readonly firstPauseMs?: number;
  /** Certificates trusted in addition to Node's, as PEM. */
  readonly ca?: string;
};

/** `size`: mails waiting or being sent. */
export type SmtpMail = MailPort & { readonly size: number };

const firstPauseMsDefault = 5000;

export function createSmtpMail(options: SmtpMailOptions): SmtpMail {
  const { mailFrom, firstPauseMs = firstPauseMsDefault } = options;
  const transport = openTransport(options);
  // Each mail reports the failure.
  transport.catch(() => undefined);
  const deliver = async (mail: Mail, signal: AbortSignal): Promise<void> => {
    await (await transport).sendMail({
      from: mailFrom,
      // An object is one address, whatever it contains; a string could be a list.
      to: { name: '', address: mail.to },
      subject: oneLine(mail.subject),
      text: mail.text,
      // Prevents automatic replies (RFC 3834 §5).
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal,
    });
  };
  return new Outbox({ ...options, firstPauseMs, deliver, isFinal });
}

/** Loads nodemailer on demand: it loads slower than the rest of the mail code, and most deployments send no mail. */
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

/** Replaces control characters, so that a subject cannot start another header line. */
function oneLine(text: string): string {
  return [...text].map((character) => (character < ' ' || character === '\u007f' ? ' ' : character)).join('');
}

/** True for 5yz to the recipient or the message (RFC 5321 §4.2.1). A refused login is retried: it may be fixed. */
function isFinal(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, responseCode } = error as { readonly code?: unknown; readonly responseCode?: unknown };
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return false;
  // Without a response, nodemailer itself found the envelope invalid.
  return typeof responseCode === 'number' ? responseCode >= 500 : code === 'EENVELOPE';
}

type OutboxOptions = {
  /** Makes one attempt; rejects if the server does not accept the mail. `signal` aborts at the attempt's timeout. */
  readonly deliver: (mail: Mail, signal: AbortSignal) => Promise<void>;
  readonly isFinal: (error: unknown) => boolean;
  readonly observe: Observe;
  /** Timeout of one attempt, and of `close`. */
  readonly mailTimeoutMs: number;
  readonly mailAttemptsMax: number;
  /** Limit of mails waiting, paused and being sent. */
  readonly mailsWaitingMax: number;
  /** Pause between the first two attempts; each further pause is `pauseGrowth` times longer. */
  readonly firstPauseMs: number;
};

type Letter = { readonly mail: Mail; attempts: number; lastError: unknown };

/** Mails sent concurrently, each over a connection of its own. */
const sendingMax = 4;
/** With the defaults, retries after 5 s, 30 s and 3 min. */
const pauseGrowth = 6;

/**
 * The queue of mails, in memory: sends a few concurrently and retries failures with growing pauses. It need not be
 * durable, because a mail holds a code that its reader can request again.
 *
 * Modes: `open` (accepts mails), `closing` (accepts none, makes one attempt for each waiting mail, retries none) and
 * `closed` (aborts attempts). Each mail ends in exactly one of `mail-sent` and `mail-given-up`.
 */
class Outbox implements MailPort {
  readonly #options: OutboxOptions;
  readonly #waiting: Letter[] = [];
  readonly #paused = new Map<Letter, NodeJS.Timeout>();
  readonly #attempts = new Map<Promise<void>, AbortController>();
  #mode: 'open' | 'closing' | 'closed' = 'open';

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length + this.#paused.size + this.#attempts.size;
  }

  send(mail: Mail): void {
    const letter: Letter = { mail, attempts: 0, lastError: undefined };
    if (this.#mode !== 'open') this.#giveUp(letter, 'closed');
    else if (this.size >= this.#options.mailsWaitingMax) this.#giveUp(letter, 'full');
    else this.#queue(letter);
  }

  async close(): Promise<void> {
    if (this.#mode !== 'open') return;
    this.#mode = 'closing';
    for (const [letter, timer] of this.#paused) {
      clearTimeout(timer);
      this.#giveUp(letter, 'closed');
    }
    this.#paused.clear();
    const deadline = setTimeout(() => this.#cutOff(), this.#options.mailTimeoutMs);
    while (this.#attempts.size > 0) await Promise.all(this.#attempts.keys());
    clearTimeout(deadline);
    this.#mode = 'closed';
  }

  #cutOff(): void {
    this.#mode = 'closed';
    for (const letter of this.#waiting.splice(0)) this.#giveUp(letter, 'closed');
    for (const controller of this.#attempts.values()) controller.abort();
  }

  #queue(letter: Letter): void {
    this.#waiting.push(letter);
    this.#dispatch();
  }

  #dispatch(): void {
    while (this.#attempts.size < sendingMax) {
      const letter = this.#waiting.shift();
      if (letter === undefined) return;
      const controller = new AbortController();
      const attempt = this.#attempt(letter, controller).then(() => {
        this.#attempts.delete(attempt);
        this.#dispatch();
      });
      this.#attempts.set(attempt, controller);
    }
  }

  async #attempt(letter: Letter, controller: AbortController): Promise<void> {
    const { deliver, observe, mailTimeoutMs } = this.#options;
    letter.attempts += 1;
    const timer = setTimeout(() => controller.abort(), mailTimeoutMs);
    try {
      await deliver(letter.mail, controller.signal);
      observe({ kind: 'mail-sent', attempts: letter.attempts });
    } catch (error) {
      letter.lastError = error;
      this.#failed(letter);
    } finally {
      clearTimeout(timer);
    }
  }

  #failed(letter: Letter): void {
    const { isFinal, observe, mailAttemptsMax, firstPauseMs } = this.#options;
    const { attempts, lastError: error } = letter;
    if (isFinal(error)) this.#giveUp(letter, 'refused');
    else if (attempts >= mailAttemptsMax) this.#giveUp(letter, 'attempts');
    else if (this.#mode !== 'open') this.#giveUp(letter, 'closed');
    else {
      observe({ kind: 'mail-delayed', attempts, error });
      this.#pause(letter, firstPauseMs * pauseGrowth ** (attempts - 1));
    }
  }

  #pause(letter: Letter, pauseMs: number): void {
    const timer = setTimeout(() => {
      this.#paused.delete(letter);
      this.#queue(letter);
    }, pauseMs);
    // A paused mail does not keep the process running.
    timer.unref();
    this.#paused.set(letter, timer);
  }

  #giveUp({ attempts, lastError }: Letter, reason: 'refused' | 'attempts' | 'full' | 'closed'): void {
    this.#options.observe({ kind: 'mail-given-up', reason, attempts, error: lastError });
  }
}
