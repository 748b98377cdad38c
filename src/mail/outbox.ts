/**
 * Mails on their way, in memory: a few are sent at the same time, and one that fails is tried again later, further apart each time.
 * Nothing here is durable: what a mail holds is a code that its reader can ask for again.
 *
 * Three modes: `open` (mails are taken), `closing` (none are taken, those that wait get one attempt, nothing is tried again) and `closed`
 * (the time for that is over, attempts are cut off). Each mail taken ends in exactly one of `mail-sent` and `mail-given-up`.
 */
import type { Mail, MailPort } from '../auth/mail-port.ts';
import type { Observe } from '../observe/observation.ts';

export type OutboxOptions = {
  /** One attempt; rejects where the mail was not taken. `signal`: the time of the attempt is over. */
  readonly deliver: (mail: Mail, signal: AbortSignal) => Promise<void>;
  /** Whether a failure says that no further attempt will do. */
  readonly isFinal: (error: unknown) => boolean;
  readonly observe: Observe;
  /** Of one attempt, and of `close`. */
  readonly mailTimeoutMs: number;
  readonly mailAttemptsMax: number;
  /** Mails on their way, those between two attempts included. */
  readonly mailsWaitingMax: number;
  /** Between the first two attempts; each further pause is `pauseGrowth` times as long. */
  readonly firstPauseMs: number;
};

type Letter = { readonly mail: Mail; attempts: number; lastError: unknown };

/** Mails that are sent at the same time: so many connections to the mail server. */
const sendingMax = 4;
/** With the defaults: attempts after 5 s, 30 s and 3 min. */
const pauseGrowth = 6;

export class Outbox implements MailPort {
  readonly #options: OutboxOptions;
  readonly #waiting: Letter[] = [];
  readonly #paused = new Map<Letter, NodeJS.Timeout>();
  readonly #attempts = new Map<Promise<void>, AbortController>();
  #mode: 'open' | 'closing' | 'closed' = 'open';

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Mails on their way. */
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
    // A mail that waits for its next attempt is no reason to stay.
    timer.unref();
    this.#paused.set(letter, timer);
  }

  #giveUp({ attempts, lastError }: Letter, reason: 'refused' | 'attempts' | 'full' | 'closed'): void {
    this.#options.observe({ kind: 'mail-given-up', reason, attempts, error: lastError });
  }
}
