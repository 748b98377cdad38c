/**
 * One attempt: a message handed on, written down, understood. Its place is free when it is written down, so that with one place messages are
 * handed on one after the other, and no handler reads what the one before it has not committed.
 */
import type { DeclaredSender } from '../../config/senders.ts';
import type { Settings } from '../../config/settings.ts';
import type { Received } from '../../model/received.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import type { Lanes } from '../work/lanes.ts';
import type { Timers } from '../work/timers.ts';
import { faultPauseMs, type WorkEngine } from '../work/work-engine.ts';
import { type Failure, type Run, supersededError } from './conclude-received.ts';
import type { Claimed, HandedOn, HandOn } from './hand-on.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from './received-tables.ts';
import type { DueMessage, SenderQueue } from './sender-queue.ts';
import type { Settled, SettleHandedOn } from './settle-received.ts';

/** How often a handler is run again because others than handlers of its sender changed what it had read. */
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
  /** Whose commits add deliveries: what handlers write is announced. */
  readonly store: Pick<Store, 'plan' | 'read' | 'commit' | 'onChange' | 'lines'>;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly lanes: Pick<Lanes, 'owns' | 'need' | 'hold' | 'release' | 'onChange'>;
  /** What takes messages of the sender; undefined: nothing, they wait to be marked. Asked once for each sender. */
  readonly handOnOf: (sender: DeclaredSender) => HandOn | undefined;
  /** Uniformly from 0 to 1. */
  readonly random: () => number;
  readonly timers?: Timers;
  readonly settings: HandingOnSettings;
};

/** What all attempts to hand messages on share. */
export type HandingOnParts = HandingOnOptions & {
  readonly engine: WorkEngine<DueMessage, SenderQueue>;
  readonly settle: SettleHandedOn;
};

/** One message that is being handed on. */
type Attempt = {
  readonly queue: SenderQueue;
  readonly due: DueMessage;
  /** Whether the breaker lets no other begin before its end. */
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
  try {
    const concluded = await handOn(parts, begun);
    if (concluded === undefined) queue.breaker.ignored(probe);
    else understand(parts, queue, probe, concluded);
  } catch (error) {
    parts.observe({ kind: 'receiving-failed', what: 'handing on a message', error });
    parts.engine.pauseAfter(queue, error);
    queue.breaker.ignored(probe);
  }
}

/**
 * Handlers of one sender that write the same resource lose against each other. Those that lost run again in turn, and none begins meanwhile: so each
 * loses at most to those that were under way, and then to nobody of its sender.
 *
 * @returns undefined where nothing came of it: there was nothing to do any more, or the program stops
 */
async function handOn(parts: HandingOnParts, begun: Attempt): Promise<Concluded | undefined> {
  const first = await handOnOnce(parts, begun, true);
  if (first !== 'rerun') return first;
  const { queue } = begun;
  const letGo = await queue.rerunTurn();
  try {
    const rerunsMax = queue.inFlightMax - 1 + foreignRerunsMax;
    for (let reruns = 1; !parts.engine.working.aborted; reruns += 1) {
      const concluded = await handOnOnce(parts, begun, reruns < rerunsMax);
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
  mayRerun: boolean,
): Promise<Concluded | 'rerun' | undefined> {
  const { clock, engine } = parts;
  const { working, settling } = engine;
  if (working.aborted) return undefined;
  const found = await claim(parts, queue, due);
  if (found === undefined) return undefined;
  const { claimed, hasContent } = found;
  const startedAt = clock();
  const handedOn: HandedOn = hasContent ? await queue.handOn(claimed, working) : contentGone;
  if (handedOn.outcome === 'aborted') {
    // Given up by what it was handed to, though we go on: it is still due.
    if (!working.aborted) queue.pause(clock() + abortedPauseMs);
    return undefined;
  }
  const run = { handedOn, startedAt, endedAt: clock() };
  const settled = await engine.settleSurely(() => parts.settle(claimed, run, mayRerun));
  if (settled === undefined) {
    // Done and not written down: done again at once it would be done again and again.
    if (!settling.aborted) queue.pause(clock() + faultPauseMs);
    return undefined;
  }
  return settled.kind === 'settled' ? { claimed, run, settled } : 'rerun';
}

/** After a message was given back as aborted though the program goes on. */
const abortedPauseMs = 1000;

/** The content of a message stands for as long as the message was received ago, and no longer (§4.14, retention). */
const contentGone: Failure = {
  outcome: 'failed',
  error: 'content-gone',
  message: 'the body of the message is not kept any more',
  statusCode: null,
  permanent: true,
  notBefore: null,
};

type Found = { readonly claimed: Claimed; readonly hasContent: boolean };

/**
 * A message as it stands at the moment at which it is handed on. It was found due a while ago, and since then it may have been marked,
 * replayed, removed, or handed on by another process.
 *
 * @returns undefined where nothing is to be done @throws StoreUnavailable
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
  const content = contentOf(contentRow, id);
  const claimed: Claimed = {
    ...{ sender, received, rev: row.rev, attempt: received.attempts + 1 },
    content: content ?? noContent(id),
  };
  return { claimed, hasContent: content !== undefined };
}

/** A message that came when the content of an older one with the same key was gone has put its own in that place. */
function contentOf(row: Row | undefined, messageId: string): ReceivedContent | undefined {
  if (row === undefined) return undefined;
  const content = JSON.parse(row.doc) as ReceivedContent;
  return content.id === messageId ? content : undefined;
}

function noContent(id: string): ReceivedContent {
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
  const { permanent, notBefore, error } = handedOn;
  if (notBefore !== null) queue.notBefore = Math.max(queue.notBefore, notBefore);
  // A message that will never do, or whose writes came too late, says nothing of those behind it.
  if (permanent || error === supersededError) {
    queue.breaker.ignored(probe);
    return;
  }
  const until = queue.breaker.failed(now, probe);
  if (until === undefined) return;
  queue.pausedAt = now;
  observe({ kind: 'sender-paused', sender: name, until });
}

/** When it came, as long as it was not replayed; then the time at which it was due. Milliseconds since the epoch. */
function waitingSince({ received }: Claimed): number {
  const { attempts, scheduledAttempts, receivedAt, dueAt } = received;
  const isReplayed = attempts !== scheduledAttempts || (attempts === 0 && dueAt !== receivedAt);
  return Date.parse(isReplayed && dueAt !== null ? dueAt : receivedAt);
}
