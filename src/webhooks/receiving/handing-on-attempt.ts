/**
 * One attempt to hand a message on: run, settled, evaluated. Its place becomes free only after it is settled, so that
 * with one place messages are handed on one after the other, and no handler reads state that the previous one has not
 * committed.
 */
import type { Settings } from '../../config/settings.ts';
import type { Source } from '../../config/sources.ts';
import { type Failure, failure, type HandedOn } from '../../logic/threads/handed-on.ts';
import type { MemoryBudget, MemoryLease } from '../../memory/budget.ts';
import { handedOnOctets } from '../../memory/work-rules.ts';
import type { Received } from '../../model/received.ts';
import { givenUpText } from '../../model/starts-max.ts';
import type { Observation } from '../../observe/observation.ts';
import type { Services } from '../../store/capabilities.ts';
import { type MaybePromise, type Row, type Store, whenKnown } from '../../store/store.ts';
import { fittingText } from '../../work/attempt-log.ts';
import type { Lanes } from '../../work/lanes.ts';
import type { Starts } from '../../work/starts.ts';
import type { Timers } from '../../work/timers.ts';
import { faultPauseMs, type WorkEngine } from '../../work/work-engine.ts';
import { type Run, supersededError } from './conclude-received.ts';
import type { Claimed, ClaimedContent, HandOn } from './hand-on.ts';
import { callNext, heldBackError, holdBack, placeOf } from './message-lines.ts';
import { bodyOf } from './message-parts.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';
import type { DueMessage, SenderQueue } from './sender-queue.ts';
import type { Settled, SettleHandedOn } from './settle-received.ts';

/** In the log of the program, as in that of attempts. */
const reasonCharactersMax = 500;
/** Reruns of a handler because writers other than its sender's handlers changed what it had read. */
const foreignRerunsMax = 5;

export type HandingOnSettings = Pick<
  Settings,
  | 'handOnInFlightMax'
  | 'senderInFlightDefault'
  | 'webhookBreakerFailuresMax'
  | 'webhookBreakerSeconds'
  | 'webhookBreakerSecondsMax'
>;

export type HandingOnOptions = Pick<Services, 'clock' | 'observe'> & {
  /** The store with fan-out: events of handlers are delivered. */
  readonly store: Pick<Store, 'plan' | 'read' | 'commit' | 'onChange' | 'lines'>;
  readonly senders: ReadonlyMap<string, Source>;
  readonly lanes: Pick<Lanes, 'owns' | 'need' | 'hold' | 'release' | 'onChange'>;
  /** Absent: no memory is counted. */
  readonly memory?: Pick<MemoryBudget, 'lease'> | undefined;
  /** Absent: no start is counted. */
  readonly starts?: Starts | undefined;
  /** Returns what takes messages of the sender; undefined: messages wait to be marked. Called once for each sender. */
  readonly handOnOf: (sender: Source) => HandOn | undefined;
  /** Returns numbers uniformly from 0 to 1. */
  readonly random: () => number;
  readonly timers?: Timers;
  readonly settings: HandingOnSettings;
};

/** What all attempts to hand messages on share. */
export type HandingOnParts = HandingOnOptions & {
  readonly engine: WorkEngine<DueMessage, SenderQueue>;
  readonly settle: SettleHandedOn;
};

type Attempt = {
  readonly queue: SenderQueue;
  readonly due: DueMessage;
  /** The breaker admits no other attempt until this one ends. */
  readonly probe: boolean;
};

type Concluded = {
  readonly claimed: Claimed;
  readonly run: Run;
  readonly settled: Extract<Settled, { readonly kind: 'settled' }>;
};

/** Never rejects. */
export async function attempt(parts: HandingOnParts, begun: Attempt): Promise<void> {
  const { queue, probe } = begun;
  const line: LineOf = { name: undefined };
  const calledFrom = queue.lines.calledFrom(begun.due.id);
  let concluded: Concluded | undefined;
  try {
    concluded = await handOn(parts, begun, line);
    if (concluded === undefined) queue.breaker.ignored(probe);
    else understand(parts, queue, probe, concluded);
  } catch (error) {
    parts.observe({ kind: 'receiving-failed', what: 'handing on a message', error });
    parts.engine.pauseAfter(queue, error);
    queue.breaker.ignored(probe);
  }
  // A message that is not due any more, because it was marked, has not been in its line.
  if (line.name !== undefined) await passOn(parts, begun, line.name, concluded);
  else if (calledFrom !== undefined && !queue.lines.holds(begun.due.id)) queue.callNextOf(calledFrom);
}

/**
 * Concurrent handlers of one sender that write the same resource supersede each other. Superseded ones run again in
 * turn, while no other begins: so each can be superseded by those that were under way, and after that by no handler of
 * its sender.
 *
 * @returns undefined if there was nothing left to do, or the program stops
 */
async function handOn(parts: HandingOnParts, begun: Attempt, line: LineOf): Promise<Concluded | undefined> {
  const first = await handOnOnce(parts, begun, line, true);
  if (first !== 'rerun') return first;
  const { queue } = begun;
  const letGo = await queue.rerunTurn();
  try {
    const rerunsMax = queue.inFlightMax - 1 + foreignRerunsMax;
    for (let reruns = 1; !parts.engine.working.aborted; reruns += 1) {
      const concluded = await handOnOnce(parts, begun, line, reruns < rerunsMax);
      if (concluded !== 'rerun') return concluded;
    }
    return undefined;
  } finally {
    letGo();
  }
}

async function handOnOnce(
  parts: HandingOnParts,
  { queue, due }: Attempt,
  line: LineOf,
  mayRerun: boolean,
): Promise<Concluded | 'rerun' | undefined> {
  const lease = parts.memory?.lease('background', { name: `source ${queue.sender.name}`, isReserved: false });
  try {
    // A short message costs nothing that is counted.
    const octets = handedOnOctets(due.contentLength);
    if (octets > 0) await lease?.untilRoom(octets, parts.engine.working);
    return await handOnWithin(parts, { queue, due, lease }, line, mayRerun);
  } finally {
    lease?.release();
  }
}

async function handOnWithin(
  parts: HandingOnParts,
  { queue, due, lease }: Pick<Attempt, 'queue' | 'due'> & { readonly lease: MemoryLease | undefined },
  line: LineOf,
  mayRerun: boolean,
): Promise<Concluded | 'rerun' | undefined> {
  const { working } = parts.engine;
  if (working.aborted) return undefined;
  const found = await claim(parts, queue, due);
  if (found === undefined) return undefined;
  const { hasContent } = found;
  const claimed =
    found.claimed.content.line === undefined ? found.claimed : await inLine(parts, queue, due, found.claimed);
  if (claimed === undefined) return undefined;
  line.name = claimed.content.line;
  const { id, updatedAt } = claimed.received;
  const start = await parts.starts?.begin({ table: receivedCollection.name, id, updatedAt });
  try {
    const handing = async (): Promise<HandedOn> => {
      if (start?.isUsedUp === true) return givenUp;
      if (!hasContent) return contentGone;
      return queue.handOn(lease === undefined ? claimed : { ...claimed, memory: memoryOf(lease) }, working);
    };
    return await runAndSettle(parts, queue, claimed, { handing, mayRerun });
  } finally {
    await start?.end();
  }
}

/** Counts what the function of a message reads and writes. */
function memoryOf(lease: MemoryLease): Claimed['memory'] {
  return { hold: (octets) => lease.growAlone(octets) };
}

async function runAndSettle(
  { clock, engine, settle }: HandingOnParts,
  queue: SenderQueue,
  claimed: Claimed,
  { handing, mayRerun }: { readonly handing: () => Promise<HandedOn>; readonly mayRerun: boolean },
): Promise<Concluded | 'rerun' | undefined> {
  const { working, settling } = engine;
  const startedAt = clock();
  const handedOn = await handing();
  if (handedOn.outcome === 'aborted') {
    // Aborted by its receiver although the program continues: it is still due.
    if (!working.aborted) queue.pause(clock() + abortedPauseMs);
    return undefined;
  }
  const run = { handedOn, startedAt, endedAt: clock() };
  const settled = await engine.settleSurely(() => settle(claimed, run, mayRerun));
  if (settled === undefined) {
    // Handed on but not recorded: without a pause it would be repeated again and again.
    if (!settling.aborted) queue.pause(clock() + faultPauseMs);
    return undefined;
  }
  return settled.kind === 'settled' ? { claimed, run, settled } : 'rerun';
}

/** How soon a message looks at its line again if no message of it is under way here. */
const lineAgainMs = 100;
/** How long one waits that finds no room to wait in memory. It is called when it is the first. */
const lineFullMs = 30_000;
/** The line of the message, once no other message of it is under way. */
type LineOf = { name: string | undefined };

/** @returns the message, which then is the one of its line that is under way; undefined: it waits @throws StoreUnavailable */
async function inLine(
  { store, clock, engine }: HandingOnParts,
  queue: SenderQueue,
  due: DueMessage,
  claimed: Claimed,
): Promise<Claimed | undefined> {
  const { received, rev, content } = claimed;
  const { line = '' } = content;
  const { lines } = queue;
  const place = lines.isUnderWay(line) ? undefined : await placeOf(store, line, received.id);
  if (place !== undefined && place.kind !== 'behind' && lines.begin(line, received.id)) {
    return place.kind === 'first' ? { ...claimed, leave: place.leave } : claimed;
  }
  const now = clock();
  const firstDueAt =
    place?.kind === 'behind' ? Date.parse((JSON.parse(place.first.doc) as Received).dueAt ?? '') : now;
  if (place?.kind === 'behind' && (firstDueAt > now || lines.isFull)) {
    const dueAt = Math.max(firstDueAt, lines.isFull ? now + lineFullMs : 0);
    const heldUntil = await holdBack(store, { received, rev }, place.first, { dueAt, at: now });
    if (heldUntil === undefined) queue.mayHoldMore = true;
    else queue.dueAt(heldUntil);
    queue.callNextOf(line);
    return undefined;
  }
  lines.hold(line, due);
  if (!lines.isUnderWay(line)) {
    if (place?.kind === 'behind') queue.call(line, place.first);
    engine.timers.after(lineAgainMs, () => {
      if (queue.callNextOf(line)) engine.ready(queue);
    });
  }
  return undefined;
}

/** Ends the message's turn in its line. After a conclusion the store says which is the next; otherwise all look again. */
async function passOn(
  { store, clock, observe }: HandingOnParts,
  { queue, due }: Attempt,
  line: string,
  concluded: Concluded | undefined,
): Promise<void> {
  queue.lines.end(line, due.id);
  const isOver = concluded !== undefined && concluded.settled.received?.status !== 'pending';
  try {
    const next = isOver ? await callNext(store, line, clock()) : undefined;
    if (next === undefined) queue.callNextOf(line);
    else queue.call(line, next);
  } catch (error) {
    observe({ kind: 'receiving-failed', what: 'calling the next message of a line', error });
    queue.callNextOf(line);
  }
}

/** Pause after a message was aborted although the program continues. */
const abortedPauseMs = 1000;

/** The content of a message is kept from its receipt for a fixed time (§4.14, retention). */
const contentGone = failure('content-gone', 'the body of the message is no longer kept', true);

/** Each process that began it died. */
const givenUp = failure('given-up', givenUpText('handled the message'), true);

type Found = { readonly claimed: Claimed; readonly hasContent: boolean };

/**
 * Reads the message at the moment of handing it on: since it was found due, it may have been marked, replayed, removed,
 * or handed on by another process.
 *
 * @returns undefined if there is nothing to do @throws StoreUnavailable
 */
async function claim(
  { store, clock }: Pick<HandingOnParts, 'store' | 'clock'>,
  { sender }: SenderQueue,
  { id, dedupeKey }: DueMessage,
): Promise<Found | undefined> {
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
  return { claimed, hasContent: content !== undefined };
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

function understand(
  { clock, observe }: HandingOnParts,
  queue: SenderQueue,
  probe: boolean,
  { claimed, run, settled }: Concluded,
): void {
  const { handedOn, received } = settled;
  const now = clock();
  const { name } = queue.sender;
  observe({
    ...{ kind: 'received-handed-on', sender: name, message: claimed.received.id, outcome: handedOn.outcome },
    failure: handedOn.outcome === 'failed' ? handedOn.error : undefined,
    again: received !== undefined && received.dueAt !== null,
    lagMs: Math.max(0, run.endedAt - waitingSince(claimed)),
    durationMs: run.endedAt - run.startedAt,
  });
  if (received?.dueAt != null) queue.dueAt(Date.parse(received.dueAt));
  if (handedOn.outcome === 'processed') {
    queue.breaker.succeeded();
    return;
  }
  if (queue.sender.handOn.kind !== 'forward') observe(functionFailed(claimed, handedOn, received));
  const { permanent, notBefore, error } = handedOn;
  if (notBefore !== null) queue.notBefore = Math.max(queue.notBefore, notBefore);
  // A permanent failure or superseded writes say nothing about the messages behind it.
  if (permanent || error === supersededError) {
    queue.breaker.ignored(probe);
    return;
  }
  const until = queue.breaker.failed(now, probe);
  if (until === undefined) return;
  queue.pausedAt = now;
  observe({ kind: 'sender-paused', sender: name, until });
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
