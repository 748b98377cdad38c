/**
 * The engine of mail: sends due mails, as a policy of the engine of due work (work/work-engine.ts). All mails are one queue, because there
 * is one mail server: the process that holds its lane sends, a few mails at once, and another takes over when it ends. While the server
 * cannot be reached, the breaker pauses the queue, so that mails do not use up their attempts on one outage.
 */
import type { KeptMail } from '../model/kept-mail.ts';
import { givenUpText } from '../model/starts-max.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, keptRow, type Row, type Store } from '../store/store.ts';
import { DueQueue, DueRows, dueIndexOf } from '../work/due-queue.ts';
import { Breaker, type BreakerSettings, nextAttemptMs } from '../work/retries.ts';
import { type Settlement, settleByRevision } from '../work/settlement.ts';
import { type BegunAttempt, type DueWork, WorkEngine, type WorkPolicy } from '../work/work-engine.ts';
import { type KeptContent, mailContentsTable, mailsCollection } from './mail-tables.ts';
import type { Attempted, SentMail, Transport } from './smtp.ts';

/** More than are read and under way at once. */
const rowsMax = 512;
/** Rows of one read in addition to taken ones. */
const wantedMin = 32;
const dueMails = dueIndexOf(mailsCollection, 'status', rowsMax);

/** A single mail server: its failures are few, and a probe is cheap. */
const breaker: BreakerSettings = {
  webhookBreakerFailuresMax: 5,
  webhookBreakerSeconds: 10,
  webhookBreakerSecondsMax: 300,
};

type DueMail = { readonly id: string };

type Concluded = { readonly mail: KeptMail; readonly attempted: Attempted };

/** Retention removed it: the mail waited longer than `mailRetentionSeconds`. */
const contentGone: Attempted = {
  kind: 'impossible',
  told: 'the content of the mail is no longer kept',
  error: undefined,
};

const givenUp: Attempted = {
  kind: 'impossible',
  told: givenUpText('sent the mail'),
  error: undefined,
};

type Found = { readonly claimed: Claimed; readonly sent: SentMail | undefined };

class MailQueue extends DueQueue<DueMail> {
  readonly lane = 'mails';

  get wanted(): number {
    return this.taken + wantedMin;
  }

  protected parse({ doc }: Row): { readonly due: DueMail; readonly dueAt: string | null } {
    const { id, dueAt } = JSON.parse(doc) as KeptMail;
    return { due: { id }, dueAt };
  }
}

export class MailSending implements WorkPolicy<DueMail, MailQueue> {
  readonly readsAtOnce = 1;
  readonly attemptsPerTurn = 4;
  readonly faults = { kind: 'store-failed', reading: 'reading mails', attempt: 'sending a mail' } as const;
  readonly #services: Services;
  readonly #work: DueWork;
  readonly #transport: Transport;
  readonly #policy: MailPolicy;
  readonly #engine: WorkEngine<DueMail, MailQueue>;
  readonly #queue: MailQueue;

  constructor(services: Services, work: DueWork, transport: Transport, policy: MailPolicy) {
    this.#services = services;
    this.#work = work;
    this.#transport = transport;
    this.#policy = policy;
    this.#engine = new WorkEngine(services, work, this);
    const rows = new DueRows(services.store, dueMails, 'pending');
    this.#queue = new MailQueue(rows, new Breaker(breaker, work.uniform), { buffered: 0 });
  }

  get inFlight(): number {
    return this.#engine.underWay;
  }

  /** Sends due mails until `drain`. */
  start(): Promise<void> {
    return this.#engine.follow(mailsCollection.name, [this.#queue]);
  }

  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void> {
    return this.#engine.drain(ms);
  }

  /** Aborts attempts that a drain has not ended. */
  close(): Promise<void> {
    return this.#engine.close();
  }

  partyOf(queue: MailQueue): string {
    return queue.id;
  }

  hasRoom(): boolean {
    return this.#engine.underWay < this.#services.settings.mailsInFlightMax;
  }

  isFull(): boolean {
    return !this.hasRoom();
  }

  admits(): boolean {
    return true;
  }

  attempt(begun: BegunAttempt<DueMail, MailQueue>): void {
    const { queue, due, probe } = begun;
    void this.#engine
      .conclude(
        begun,
        () => this.#send(due.id),
        (concluded) => this.#report(concluded, probe),
      )
      .then(() => this.#engine.ended(queue, due.id));
  }

  wake(): void {
    this.#engine.wake(this.#queue);
  }

  /** A mail that is sent again by hand, unless a probe followed. */
  isAsked({ pausedAt }: MailQueue, row: Row): boolean {
    const { attempts, scheduledAttempts, dueAt } = JSON.parse(row.doc) as KeptMail;
    return attempts !== scheduledAttempts && Date.parse(dueAt ?? '') > pausedAt;
  }

  /** @returns undefined if there was nothing left to do, or the program stops */
  async #send(id: string): Promise<Concluded | undefined> {
    if (this.#engine.working.aborted) return undefined;
    const found = await this.#claim(id);
    if (found === undefined) return undefined;
    const { updatedAt } = found.claimed.mail;
    const work = { table: mailsCollection.name, id, updatedAt };
    return this.#work.starts.run(work, (isGivenUp) => this.#sendClaimed(found, isGivenUp));
  }

  async #sendClaimed({ claimed, sent }: Found, isGivenUp: boolean): Promise<Concluded | undefined> {
    const { clock, store } = this.#services;
    const { working } = this.#engine;
    const unsent = isGivenUp ? givenUp : sent === undefined ? contentGone : undefined;
    const attempted = unsent ?? (await this.#transport(sent as SentMail, working));
    // An attempt that a stop ended is not counted: the next start makes it.
    if (working.aborted && attempted.kind === 'unreachable') return undefined;
    const run = { attempted, endedAt: clock() };
    const mail = await this.#engine.settle(this.#queue, () => settleMail(store, claimed, run, this.#policy));
    return mail === undefined ? undefined : { mail, attempted };
  }

  /** Reads the mail at the moment of sending: since it was found due, another process may have sent it. */
  async #claim(id: string): Promise<Found | undefined> {
    const { store, clock } = this.#services;
    const [row, contentRow] = await Promise.all([
      store.read(mailsCollection.name, id),
      store.read(mailContentsTable, id),
    ]);
    if (row === undefined || row.deletedAt !== null) return undefined;
    // One that was kept before mails had copies and files has none.
    const mail: KeptMail = { cc: [], bcc: [], ...JSON.parse(row.doc) };
    const { status, dueAt, to, cc, createdAt } = mail;
    if (status !== 'pending' || dueAt === null || Date.parse(dueAt) > clock()) return undefined;
    const recipients = recipientsLeft(mail);
    const claimed = { mail, rev: row.rev, contentRev: contentRow?.rev, recipients };
    if (contentRow === undefined) return { claimed, sent: undefined };
    const content: KeptContent = { names: {}, attachments: [], ...JSON.parse(contentRow.doc) };
    return { claimed, sent: { ...content, id, to, cc, createdAt, recipients } };
  }

  #report({ mail, attempted }: Concluded, probe: boolean): void {
    const { clock, observe } = this.#services;
    const { id, status, attempts, dueAt } = mail;
    const { error } = attempted;
    const queue = this.#queue;
    if (dueAt !== null) queue.dueAt(Date.parse(dueAt));
    if (status === 'sent') observe({ kind: 'mail-sent', mail: id, attempts });
    else if (status === 'pending') observe({ kind: 'mail-delayed', mail: id, attempts, error });
    else observe({ kind: 'mail-given-up', mail: id, reason: reasonOf(attempted), attempts, error });
    // A refusal of one mail says nothing about the mails behind it.
    queue.heed({ health: healthOf[attempted.kind], notBefore: null }, probe, clock());
  }
}

const healthOf = { answered: 'succeeded', impossible: 'ignored', unreachable: 'failed' } as const;

function reasonOf(attempted: Attempted): 'refused' | 'attempts' {
  if (attempted.kind !== 'answered') return attempted.kind === 'impossible' ? 'refused' : 'attempts';
  return attempted.refusals.some(({ isFinal }) => isFinal) ? 'refused' : 'attempts';
}

type Claimed = {
  readonly mail: KeptMail;
  readonly rev: number;
  readonly contentRev: number | undefined;
  readonly recipients: readonly string[];
};

type MailRun = {
  readonly attempted: Attempted;
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
};

/** @returns the mail after the attempt; undefined: it was removed meanwhile @throws StoreUnavailable */
async function settleMail(
  store: Pick<Store, 'commit' | 'lines'>,
  { mail: begun, rev, contentRev, recipients }: Claimed,
  { attempted, endedAt }: MailRun,
  policy: MailPolicy,
): Promise<KeptMail | undefined> {
  let removed = contentRev;
  // Computed once for each state of the row: the jitter of a schedule would make each computation differ.
  let last: { readonly of: KeptMail; readonly mail: KeptMail } | undefined;
  const settlement: Settlement<KeptMail, KeptMail> = {
    table: mailsCollection.name,
    id: begun.id,
    conclude(current) {
      if (last?.of !== current) {
        last = { of: current, mail: conclude(current, attempted, recipients, endedAt, policy) };
      }
      return last.mail;
    },
    unitOf: (mail, current) => ({
      own: [mailChange(mail, current.rev)],
      others: mail.status === 'sent' && removed !== undefined ? [contentRemoval(mail.id, removed)] : [],
    }),
    withNextNumber: (mail) => mail,
    // After a lost response of the store, the row is what this attempt wrote.
    isLogged: async (current, mail) => JSON.stringify(current) === JSON.stringify(mail),
    refused() {
      // Retention removed the content meanwhile.
      removed = undefined;
      return true;
    },
  };
  const settled = await settleByRevision(store, settlement, { work: begun, rev, owner: null });
  if (settled.kind === 'written') return settled.conclusion;
  return settled.kind === 'logged' ? settled.work : undefined;
}

/** @param rev of the row that it replaces */
export function mailChange(mail: KeptMail, rev: number): Change {
  return {
    ...{ table: mailsCollection.name, id: mail.id, expect: { rev } },
    next: keptRow(JSON.stringify(mail), null, Date.parse(mail.createdAt), Date.parse(mail.updatedAt)),
  };
}

function contentRemoval(id: string, rev: number): Change {
  return { table: mailContentsTable, id, expect: { rev }, next: null };
}

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
