/**
 * The engine of mail: sends due mails, as a policy of the engine of due work (work/work-engine.ts). All mails are one queue, because there
 * is one mail server: the process that holds its lane sends, a few mails at once, and another takes over when it ends. While the server
 * cannot be reached, the breaker pauses the queue, so that mails do not use up their attempts on one outage.
 */
import type { KeptMail } from '../model/kept-mail.ts';
import { givenUpText } from '../model/starts-max.ts';
import type { Services } from '../store/capabilities.ts';
import type { Row } from '../store/store.ts';
import type { BreakerSettings } from '../work/breaker.ts';
import { DueQueue } from '../work/due-queue.ts';
import { DueRows, dueIndexOf } from '../work/due-rows.ts';
import type { Lanes } from '../work/lanes.ts';
import type { Starts } from '../work/starts.ts';
import type { Timers } from '../work/timers.ts';
import { faultPauseMs, WorkEngine, type WorkPolicy } from '../work/work-engine.ts';
import { type Attempted, type MailPolicy, recipientsLeft } from './conclude-mail.ts';
import { type KeptContent, mailContentsTable, mailsCollection } from './mail-tables.ts';
import { type Claimed, settleMail } from './settle-mail.ts';
import type { SentMail, Transport } from './smtp.ts';

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

/** The parts of the engine of due work that mail uses. */
export type MailWork = {
  readonly lanes: Lanes;
  /** Absent: no start is counted. */
  readonly starts?: Starts | undefined;
  readonly timers?: Timers;
};

export type MailEngine = {
  /** Sends due mails until `drain`. */
  start(): Promise<void>;
  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void>;
  /** Aborts attempts that a drain has not ended. */
  close(): Promise<void>;
  readonly inFlight: number;
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
  /** Time of the last pause, in milliseconds since the epoch. */
  pausedAt = 0;

  get wanted(): number {
    return this.taken + wantedMin;
  }

  protected parse({ doc }: Row): { readonly due: DueMail; readonly dueAt: string | null } {
    const { id, dueAt } = JSON.parse(doc) as KeptMail;
    return { due: { id }, dueAt };
  }
}

export class MailSending implements MailEngine, WorkPolicy<DueMail, MailQueue> {
  readonly readsAtOnce = 1;
  readonly attemptsPerTurn = 4;
  readonly #services: Services;
  readonly #work: MailWork;
  readonly #transport: Transport;
  readonly #policy: MailPolicy;
  readonly #engine: WorkEngine<DueMail, MailQueue>;
  readonly #queue: MailQueue;
  #stops: (() => void)[] = [];
  #hasLanes = false;

  constructor(services: Services, work: MailWork, transport: Transport, policy: MailPolicy) {
    this.#services = services;
    this.#work = work;
    this.#transport = transport;
    this.#policy = policy;
    this.#engine = new WorkEngine({ ...services, ...work }, this);
    const rows = new DueRows(services.store, dueMails, 'pending');
    const { random } = policy;
    this.#queue = new MailQueue({ id: 'mails', rows, breaker, random, budget: { buffered: 0 } });
  }

  get inFlight(): number {
    return this.#engine.underWay;
  }

  async start(): Promise<void> {
    const { lanes } = this.#work;
    this.#engine.start();
    const onLanes = (): void => {
      this.#queue.drop();
      this.wake();
    };
    const { hint, stop } = this.#engine.gather(() => this.#look());
    this.#stops = [this.#services.store.onChange(mailsCollection.name, hint), lanes.onChange(onLanes), stop];
    await this.#needLanes();
    this.wake();
  }

  drain(ms: number): Promise<void> {
    this.#stop();
    return this.#engine.drain(ms);
  }

  close(): Promise<void> {
    this.#stop();
    return this.#engine.close();
  }

  #stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  partyOf(queue: MailQueue): string {
    return queue.id;
  }

  mayWork(queue: MailQueue): boolean {
    if (this.#work.lanes.owns(queue.lane)) return true;
    queue.drop();
    return false;
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

  attempt(queue: MailQueue, { id }: DueMail, probe: boolean): void {
    void this.#attempt(id, probe).then(() => this.#engine.ended(queue, id));
  }

  ended(): void {
    // `WorkEngine.ended` makes the only queue ready.
  }

  wake(): void {
    if (!this.#engine.isRunning || !this.#work.lanes.owns(this.#queue.lane)) return;
    this.#queue.mayHoldMore = true;
    if (this.#queue.breaker.mode === 'open') void this.#engine.heedAsked(this.#queue);
    this.#engine.ready(this.#queue);
  }

  /** A mail that is sent again by hand, unless a probe followed. */
  isAsked({ pausedAt }: MailQueue, row: Row): boolean {
    const { attempts, scheduledAttempts, dueAt } = JSON.parse(row.doc) as KeptMail;
    return attempts !== scheduledAttempts && Date.parse(dueAt ?? '') > pausedAt;
  }

  failed(doing: 'reading' | 'settling', error: unknown): void {
    const what = doing === 'reading' ? 'reading mails' : 'storing that a mail was sent';
    this.#services.observe({ kind: 'store-failed', what, error });
  }

  #look(): void {
    void this.#needLanes();
    this.wake();
  }

  /** Leases lanes with the first due mail: a program that sends none leases nothing. */
  async #needLanes(): Promise<void> {
    if (this.#hasLanes) return;
    try {
      if ((await this.#queue.rows.first(1)).length === 0) return;
      this.#hasLanes = true;
      this.#work.lanes.need();
    } catch (error) {
      this.failed('reading', error);
    }
  }

  /** Never rejects. */
  async #attempt(id: string, probe: boolean): Promise<void> {
    const queue = this.#queue;
    try {
      const concluded = await this.#send(id);
      if (concluded === undefined) queue.breaker.ignored(probe);
      else this.#report(concluded, probe);
    } catch (error) {
      this.failed('reading', error);
      this.#engine.pauseAfter(queue, error);
      queue.breaker.ignored(probe);
    }
  }

  /** @returns undefined if there was nothing left to do, or the program stops */
  async #send(id: string): Promise<Concluded | undefined> {
    if (this.#engine.working.aborted) return undefined;
    const found = await this.#claim(id);
    if (found === undefined) return undefined;
    const { updatedAt } = found.claimed.mail;
    const start = await this.#work.starts?.begin({ table: mailsCollection.name, id, updatedAt });
    try {
      return await this.#sendClaimed(found, start?.isUsedUp === true);
    } finally {
      await start?.end();
    }
  }

  async #sendClaimed({ claimed, sent }: Found, isGivenUp: boolean): Promise<Concluded | undefined> {
    const { clock, store } = this.#services;
    const { working, settling } = this.#engine;
    const unsent = isGivenUp ? givenUp : sent === undefined ? contentGone : undefined;
    const attempted = unsent ?? (await this.#transport(sent as SentMail, working));
    // An attempt that a stop ended is not counted: the next start makes it.
    if (working.aborted && attempted.kind === 'unreachable') return undefined;
    const run = { attempted, endedAt: clock() };
    const mail = await this.#engine.settleSurely(() => settleMail(store, claimed, run, this.#policy));
    if (mail !== undefined) return { mail, attempted };
    // Sent but not recorded: without a pause it would be repeated again and again.
    if (!settling.aborted) this.#queue.pause(clock() + faultPauseMs);
    return undefined;
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
    if (attempted.kind === 'answered') queue.breaker.succeeded();
    else if (attempted.kind === 'impossible') queue.breaker.ignored(probe);
    else if (queue.breaker.failed(clock(), probe) !== undefined) queue.pausedAt = clock();
  }
}

function reasonOf(attempted: Attempted): 'refused' | 'attempts' {
  if (attempted.kind !== 'answered') return attempted.kind === 'impossible' ? 'refused' : 'attempts';
  return attempted.refusals.some(({ isFinal }) => isFinal) ? 'refused' : 'attempts';
}
