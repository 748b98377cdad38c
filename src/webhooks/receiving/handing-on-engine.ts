/**
 * The receiving engine (§4.14.5): hands due messages of this process's senders to their handlers, or forwards them. It
 * is the policy of receiving for the engine of due work (work/work-engine.ts).
 *
 * Messages of a sender begin in the order of their receipt, up to the sender's limit at once; with a limit of one, each
 * is settled before the next begins: no handler reads state that the previous one has not committed. A failed message waits for its time
 * while those behind it continue. The whole sender waits if a receiver asks for it (Retry-After) or if everything fails (the breaker). Events
 * of a subscriber and runs of a job never wait for one another in this way.
 */

import type { Source } from '../../config/senders.ts';
import type { Settings } from '../../config/settings.ts';
import { type Failure, failure, type HandedOn } from '../../logic/threads/handler-protocol.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import { handedOnOctets } from '../../memory/work-rules.ts';
import type { Received } from '../../model/received.ts';
import { givenUpText } from '../../model/starts-max.ts';
import type { Observation } from '../../observe/observation.ts';
import type { Services } from '../../store/capabilities.ts';
import { type MaybePromise, type Row, type Store, whenKnown } from '../../store/store.ts';
import { DueRows, dueIndexOf, type QueueVerdict } from '../../work/due-queue.ts';
import { Breaker, type BreakerSettings, neverOpens } from '../../work/retries.ts';
import { fittingText } from '../../work/settlement.ts';
import { type BegunAttempt, type DueWork, WorkEngine, type WorkPolicy } from '../../work/work-engine.ts';
import { heldBackError, WorkLines } from '../../work/work-lines.ts';
import type { Claimed, ClaimedContent, HandOn } from './hand-on.ts';
import { bodyOf } from './message-rows.ts';
import {
  contentId,
  linedMessages,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';
import { type DueMessage, SenderQueue, Shares } from './sender-queue.ts';
import {
  createSettle,
  type Ended,
  type Run,
  type Settled,
  type SettleHandedOn,
  supersededError,
  triggerOf,
} from './settle-received.ts';

/** As many as may be under way at once, and a buffer. */
const dueMessages = dueIndexOf(receivedCollection, 'sender', 4096);
/** In the log of the program, as in that of attempts. */
const reasonCharactersMax = 500;
/** Reruns of a handler because writers other than its sender's handlers changed what it had read. */
const foreignRerunsMax = 5;
/** Pause after a message was aborted although the program continues. */
const abortedPauseMs = 1000;

export type HandingOnSettings = BreakerSettings &
  Pick<Settings, 'handOnInFlightMax' | 'senderInFlightDefault'>;

/** `store` is that with fan-out: events of handlers are delivered. */
type HandingOnServices = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'plan' | 'read' | 'commit' | 'onChange' | 'lines'>;
  readonly memory: Pick<Services['memory'], 'budget'>;
  readonly settings: HandingOnSettings;
};

type HandingOnCounts = {
  readonly inFlight: number;
  /** Messages read into memory; all others wait in the store. */
  readonly waiting: number;
  readonly paused: number;
};

/** The line of the message, once no other message of it is under way. */
type LineOf = { name: string | undefined };

type Attempt = BegunAttempt<DueMessage, SenderQueue>;

type Concluded = {
  readonly claimed: Claimed;
  readonly run: Run;
  readonly settled: Extract<Settled, { readonly kind: 'settled' }>;
};

/**
 * Messages of a sender depend on what takes them, so a row of failures pauses the sender and saves the attempts of
 * those behind. Those of a subscriber or a job fail by their own content, and each has its schedule.
 */
function breakerOf({ handOn }: Source, settings: BreakerSettings): BreakerSettings {
  return handOn.kind === 'subscriber' || handOn.kind === 'job' ? neverOpens : settings;
}

export class HandingOn implements WorkPolicy<DueMessage, SenderQueue> {
  readonly readsAtOnce = 8;
  readonly attemptsPerTurn = 1;
  readonly faults = {
    kind: 'receiving-failed',
    reading: 'reading messages',
    attempt: 'handing on a message',
  } as const;
  readonly #services: HandingOnServices;
  readonly #work: DueWork;
  readonly #engine: WorkEngine<DueMessage, SenderQueue>;
  readonly #settle: SettleHandedOn;
  readonly #lines: WorkLines<DueMessage, SenderQueue>;
  readonly #budget = { buffered: 0 };
  readonly #queues = new Map<string, SenderQueue>();
  readonly #shares: Shares;
  /** Queues held back by the shares of others. */
  readonly #held = new Set<SenderQueue>();

  /**
   * @param handOnOf returns what takes messages of the source; undefined: messages wait to be marked. Called once for each source
   */
  constructor(
    services: HandingOnServices,
    work: DueWork,
    sources: Iterable<Source>,
    handOnOf: (source: Source) => HandOn | undefined,
  ) {
    const { store, settings } = services;
    this.#services = services;
    this.#work = work;
    this.#engine = new WorkEngine(services, work, this);
    this.#lines = new WorkLines(services, work.timers, linedMessages, this.#engine.ready);
    this.#settle = createSettle(store, work.uniform);
    const handed = [...sources].flatMap((sender) => {
      const handOn = handOnOf(sender);
      return handOn === undefined ? [] : [{ sender, handOn }];
    });
    this.#shares = new Shares(settings.handOnInFlightMax, handed.length);
    for (const { sender, handOn } of handed) {
      const inFlightMax = sender.inFlightMax ?? settings.senderInFlightDefault;
      const rows = new DueRows(store, dueMessages, sender.name);
      const breaker = new Breaker(breakerOf(sender, settings), work.uniform);
      const own = { sender, handOn, inFlightMax, share: this.#shares.add(inFlightMax) };
      this.#queues.set(sender.name, new SenderQueue(rows, breaker, this.#budget, own));
    }
  }

  /** Hands on due messages until `drain`. */
  async start(): Promise<void> {
    if (this.#queues.size > 0) await this.#engine.follow(receivedCollection.name, [...this.#queues.values()]);
  }

  /**
   * Wakes a sender: this process accepted or replayed a message of it. Changes by other processes are noticed through
   * the store.
   */
  wake(sender: string): void {
    const queue = this.#queues.get(sender);
    if (queue !== undefined) this.#engine.wake(queue);
  }

  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void> {
    return this.#engine.drain(ms);
  }

  /** Aborts attempts that a drain has not ended. */
  close(): Promise<void> {
    return this.#engine.close();
  }

  counts(): HandingOnCounts {
    const paused = [...this.#queues.values()].filter(({ breaker }) => breaker.mode === 'open').length;
    return { inFlight: this.#engine.underWay, waiting: this.#budget.buffered, paused };
  }

  partyOf(queue: SenderQueue): string {
    return queue.id;
  }

  hasRoom(): boolean {
    return this.#shares.hasRoom;
  }

  isFull({ share, inFlightMax, rerunning }: SenderQueue): boolean {
    return share.inFlight >= inFlightMax || rerunning > 0;
  }

  admits(queue: SenderQueue): boolean {
    if (this.#shares.admits(queue.share)) return true;
    this.#held.add(queue);
    return false;
  }

  attempt(begun: Attempt): void {
    const { queue, due } = begun;
    this.#shares.begin(queue.share);
    void this.#attempt(begun).then(() => {
      this.#shares.end(queue.share);
      this.#engine.ended(queue, due.id);
    });
  }

  ended(): void {
    const waiting = [...this.#held];
    this.#held.clear();
    for (const queue of waiting) this.#engine.ready(queue);
  }

  /** A request before the last failure has had its probe. */
  isAsked({ pausedAt }: SenderQueue, row: Row): boolean {
    const received = JSON.parse(row.doc) as Received;
    return triggerOf(received) === 'manual' && Date.parse(received.dueAt ?? '') > pausedAt;
  }

  /** Never rejects. */
  async #attempt(begun: Attempt): Promise<void> {
    const { queue, due, probe } = begun;
    const line: LineOf = { name: undefined };
    const calledFrom = queue.lines?.calledFrom(due.id);
    const concluded = await this.#engine.conclude(
      begun,
      () => this.#handOn(begun, line),
      (each) => this.#understand(queue, probe, each),
    );
    // A message that is not due any more, because it was marked, has not been in its line.
    if (line.name !== undefined) await this.#passOn(begun, line.name, concluded);
    else if (calledFrom !== undefined && queue.lines?.holds(due.id) !== true) queue.callNextOf(calledFrom);
  }

  /**
   * Concurrent handlers of one sender that write the same resource supersede each other. Superseded ones run again in
   * turn, while no other begins: so each can be superseded by those that were under way, and after that by no handler of
   * its sender.
   *
   * @returns undefined if there was nothing left to do, or the program stops
   */
  async #handOn(begun: Attempt, line: LineOf): Promise<Concluded | undefined> {
    const first = await this.#handOnOnce(begun, line, true);
    if (first !== 'rerun') return first;
    const { queue } = begun;
    const letGo = await queue.rerunTurn();
    try {
      const rerunsMax = queue.inFlightMax - 1 + foreignRerunsMax;
      for (let reruns = 1; !this.#engine.working.aborted; reruns += 1) {
        const concluded = await this.#handOnOnce(begun, line, reruns < rerunsMax);
        if (concluded !== 'rerun') return concluded;
      }
      return undefined;
    } finally {
      letGo();
    }
  }

  async #handOnOnce(
    { queue, due }: Attempt,
    line: LineOf,
    mayRerun: boolean,
  ): Promise<Concluded | 'rerun' | undefined> {
    const { working } = this.#engine;
    const name = `source ${queue.sender.name}`;
    const lease = this.#services.memory.budget.lease('background', { name, isReserved: false });
    try {
      // A short message costs nothing that is counted.
      const octets = handedOnOctets(due.contentLength);
      if (octets > 0) await lease.untilRoom(octets, working);
      if (working.aborted) return undefined;
      const found = await this.#claim(queue, due);
      if (found === undefined) return undefined;
      const claimed = await this.#inLine(queue, due, found);
      if (claimed === undefined) return undefined;
      line.name = claimed.content.line;
      const { id, updatedAt } = claimed.received;
      return await this.#work.starts.run({ table: receivedCollection.name, id, updatedAt }, (isGivenUp) => {
        const handing = async (): Promise<HandedOn> => {
          if (isGivenUp) return givenUp;
          if (!found.hasContent) return contentGone;
          return queue.handOn({ ...claimed, memory: memoryOf(lease) }, working);
        };
        return this.#runAndSettle(queue, claimed, handing, mayRerun);
      });
    } finally {
      lease.release();
    }
  }

  async #runAndSettle(
    queue: SenderQueue,
    claimed: Claimed,
    handing: () => Promise<HandedOn>,
    mayRerun: boolean,
  ): Promise<Concluded | 'rerun' | undefined> {
    const { clock } = this.#services;
    const startedAt = clock();
    const handedOn = await handing();
    if (handedOn.outcome === 'aborted') {
      // Aborted by its receiver although the program continues: it is still due.
      if (!this.#engine.working.aborted) queue.pause(clock() + abortedPauseMs);
      return undefined;
    }
    const run = { handedOn, startedAt, endedAt: clock() };
    const settled = await this.#engine.settle(queue, () => this.#settle(claimed, run, mayRerun));
    if (settled === undefined) return undefined;
    return settled.kind === 'settled' ? { claimed, run, settled } : 'rerun';
  }

  /** @returns the message, which then is the one of its line that is under way; undefined: it waits @throws StoreUnavailable */
  async #inLine(queue: SenderQueue, due: DueMessage, { claimed, row }: Found): Promise<Claimed | undefined> {
    const { line } = claimed.content;
    if (line === undefined) return claimed;
    const entered = await this.#lines.enter(queue, due, row, line);
    return entered && { ...claimed, ...entered };
  }

  async #passOn({ queue, due }: Attempt, line: string, concluded: Concluded | undefined): Promise<void> {
    const isOver = concluded !== undefined && concluded.settled.received?.status !== 'pending';
    try {
      await this.#lines.passOn(queue, due.id, line, isOver);
    } catch (error) {
      const what = 'calling the next message of a line';
      this.#services.observe({ kind: 'receiving-failed', what, error });
    }
  }

  /**
   * Reads the message at the moment of handing it on: since it was found due, it may have been marked, replayed, removed,
   * or handed on by another process.
   *
   * @returns undefined if there is nothing to do @throws StoreUnavailable
   */
  async #claim({ sender }: SenderQueue, { id, dedupeKey }: DueMessage): Promise<Found | undefined> {
    const { store, clock } = this.#services;
    const [row, contentRow] = await Promise.all([
      store.read(receivedCollection.name, id),
      store.read(receivedContentsTable, contentId(sender.name, dedupeKey)),
    ]);
    if (row === undefined || row.deletedAt !== null) return undefined;
    const received = JSON.parse(row.doc) as Received;
    const { status, dueAt } = received;
    if (status !== 'pending' || dueAt === null || Date.parse(dueAt) > clock()) return undefined;
    const content = await contentOf(store, contentRow, received);
    const claimed: Claimed = {
      ...{ sender, received, rev: row.rev, attempt: received.attempts + 1 },
      content: content ?? noContent(id),
    };
    return { claimed, row, hasContent: content !== undefined };
  }

  #understand(queue: SenderQueue, probe: boolean, { claimed, run, settled }: Concluded): void {
    const { clock, observe } = this.#services;
    const { handedOn, received } = settled;
    const now = clock();
    const { name } = queue.sender;
    observe({
      ...{
        kind: 'received-handed-on',
        sender: name,
        message: claimed.received.id,
        outcome: handedOn.outcome,
      },
      failure: handedOn.outcome === 'failed' ? handedOn.error : undefined,
      again: received !== undefined && received.dueAt !== null,
      lagMs: Math.max(0, run.endedAt - waitingSince(claimed)),
      durationMs: run.endedAt - run.startedAt,
    });
    if (received?.dueAt != null) queue.dueAt(Date.parse(received.dueAt));
    if (handedOn.outcome === 'failed' && queue.sender.handOn.kind !== 'forward') {
      observe(functionFailed(claimed, handedOn, received));
    }
    const until = queue.heed(verdictOf(handedOn), probe, now);
    if (until !== undefined) observe({ kind: 'sender-paused', sender: name, until });
  }
}

/** The content of a message is kept from its receipt for a fixed time (§4.14, retention). */
const contentGone = failure('content-gone', 'the body of the message is no longer kept', true);

/** Each process that began it died. */
const givenUp = failure('given-up', givenUpText('handled the message'), true);

type Found = { readonly claimed: Claimed; readonly row: Row; readonly hasContent: boolean };

/** Counts what the function of a message reads and writes. */
function memoryOf(lease: MemoryLease): Claimed['memory'] {
  return { hold: (octets) => lease.growAlone(octets) };
}

/** If the content was gone when a repetition came, the row now has the repetition's content. */
function contentOf(
  store: Pick<Store, 'read'>,
  row: Row | undefined,
  { id, contentLength }: Received,
): MaybePromise<ClaimedContent | undefined> {
  if (row === undefined) return undefined;
  const content = JSON.parse(row.doc) as ReceivedContent;
  if (content.id !== id) return undefined;
  const { body: kept } = content;
  if (kept !== undefined) return { ...content, body: kept };
  return whenKnown(bodyOf(store, content, contentLength), (body) => body && { ...content, body });
}

function noContent(id: string): ClaimedContent {
  return { id, contentType: null, contentEncoding: null, headers: {}, body: '' };
}

/** A permanent failure or superseded writes say nothing about the messages behind it. */
function verdictOf(handedOn: Ended): QueueVerdict {
  if (handedOn.outcome === 'processed') return { health: 'succeeded', notBefore: null };
  const { permanent, notBefore, error } = handedOn;
  return { health: permanent || error === supersededError ? 'ignored' : 'failed', notBefore };
}

function functionFailed(
  { sender, received: { id }, attempt }: Claimed,
  { error, message, frames }: Failure,
  after: Received | undefined,
): Observation {
  return {
    ...{ kind: 'function-failed', sender: sender.name, message: id, attempt, failure: error },
    reason: message === null ? null : fittingText(message, reasonCharactersMax),
    ...{ nextAt: after?.dueAt ?? null, frames },
  };
}

/** The time of receipt, or the due time if the message was replayed. Milliseconds since the epoch. */
function waitingSince({ received }: Claimed): number {
  const { attempts, scheduledAttempts, receivedAt, dueAt, lastError } = received;
  if (lastError === heldBackError) return Date.parse(receivedAt);
  const isReplayed = attempts !== scheduledAttempts || (attempts === 0 && dueAt !== receivedAt);
  return Date.parse(isReplayed && dueAt !== null ? dueAt : receivedAt);
}
