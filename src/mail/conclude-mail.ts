/**
 * The state machine of kept mails, described above `conclude`: computes the next state of a mail from an attempt to send it. Pure, and the
 * same for both stores and any number of processes. settle-mail.ts commits the result.
 */
import type { KeptMail } from '../model/kept-mail.ts';
import { nextAttemptMs } from '../work/schedule.ts';

/** What the server said to one recipient, or to all. */
export type Refusal = {
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

export type MailPolicy = {
  /** Seconds from each failed attempt to the next; the last one repeats. */
  readonly schedule: readonly number[];
  readonly attemptsMax: number;
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
};

/** The recipients that the next attempt is for. */
export function recipientsLeft({ to, cc, bcc, accepted, refused }: KeptMail): readonly string[] {
  return [...to, ...cc, ...bcc].filter(
    (address) => !accepted.includes(address) && !refused.includes(address),
  );
}

/**
 * A mail is `pending`, `sent` or `failed`. `dueAt` is the time of the next attempt; only pending mails have one. An attempt is for the
 * recipients that neither accepted the mail nor were refused for good, so after a partial refusal no recipient gets the mail twice.
 *
 *   kept                           pending   dueAt = the time of its unit
 *   every recipient accepted       sent      dueAt = null, sentAt = the end of the attempt; the content is removed
 *   all accepted or refused        failed    dueAt = null; the content is kept, to send the mail again
 *   recipients left, or no server  pending   scheduledAttempts + 1; dueAt = by the schedule
 *   the same, none left            failed    dueAt = null
 *   impossible                     failed    dueAt = null
 *   aborted                        unchanged the program stopped: nothing is counted; due again at the next start
 *   sent again (mails.ts)          pending   dueAt = now, scheduledAttempts = 0, refused = [], unless it was sent
 *
 * @param mail the current row, which may have changed since the attempt began
 * @param attemptedTo the recipients of the attempt
 * @param at its end, in milliseconds since the epoch
 */
export function conclude(
  mail: KeptMail,
  attempted: Attempted,
  attemptedTo: readonly string[],
  at: number,
  policy: MailPolicy,
): KeptMail {
  const { accepted, refused, told } = recipientsAfter(mail, attempted, attemptedTo);
  const counted: KeptMail = {
    ...mail,
    accepted,
    refused,
    attempts: mail.attempts + 1,
    scheduledAttempts: mail.scheduledAttempts + 1,
    sentAt: accepted.length > mail.accepted.length ? timeOf(at) : mail.sentAt,
    lastError: told,
    updatedAt: timeOf(Math.max(at, Date.parse(mail.updatedAt))),
  };
  const left = recipientsLeft(counted);
  if (left.length === 0 && refused.length === 0)
    return { ...counted, status: 'sent', dueAt: null, lastError: null };
  if (left.length === 0) return { ...counted, status: 'failed', dueAt: null };
  const next = nextDue(counted, at, policy);
  if (next === null) return { ...counted, status: 'failed', dueAt: null };
  return { ...counted, status: 'pending', dueAt: timeOf(next) };
}

function recipientsAfter(
  { accepted, refused, lastError }: KeptMail,
  attempted: Attempted,
  attemptedTo: readonly string[],
): Pick<KeptMail, 'accepted' | 'refused'> & { readonly told: string | null } {
  if (attempted.kind === 'unreachable') return { accepted, refused, told: attempted.told };
  if (attempted.kind === 'impossible')
    return { accepted, refused: union(refused, attemptedTo), told: attempted.told };
  const { refusals } = attempted;
  const refusedNow = new Set(refusals.map(({ recipient }) => recipient));
  const final = refusals.filter(({ isFinal }) => isFinal);
  return {
    accepted: union(
      accepted,
      attemptedTo.filter((address) => !refusedNow.has(address)),
    ),
    refused: union(
      refused,
      final.map(({ recipient }) => recipient),
    ),
    // A refusal for good is why a mail fails in the end.
    told: (final[0] ?? refusals[0])?.error ?? (refused.length > 0 ? lastError : null),
  };
}

function union(known: readonly string[], more: readonly string[]): readonly string[] {
  return [...new Set([...known, ...more])];
}

function nextDue(mail: KeptMail, failedAt: number, policy: MailPolicy): number | null {
  const { schedule, attemptsMax, random } = policy;
  const { scheduledAttempts } = mail;
  if (scheduledAttempts >= attemptsMax) return null;
  const scheduledAttemptCount = Math.min(scheduledAttempts, schedule.length);
  const failed = { scheduledAttemptCount, madeAt: Date.parse(mail.createdAt), failedAt, notBefore: null };
  return nextAttemptMs({ delaysSeconds: schedule, windowMs: null }, failed, random);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
