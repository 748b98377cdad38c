/**
 * One attempt: a message handed on, written down, understood. Its place is free when it is written down, so that with one place messages are
 * handed on one after the other, and no handler reads what the one before it has not committed.
 */
import { StoreUnavailable } from '../../../store/store.ts';
import { settleSurely } from '../../outbound/engine/settle-surely.ts';
import type { Claimed, HandedOn } from '../hand-on.ts';
import { type Run, supersededError } from '../settle/conclude.ts';
import type { Settled } from '../settle/settle.ts';
import { claim, contentGone } from './claim.ts';
import type { Attempt, EngineParts } from './parts.ts';
import type { SenderQueue } from './sender-queue.ts';

/** How often a handler is run again because others than handlers of its sender changed what it had read. */
const foreignRerunsMax = 5;
/** After something of our own that failed, which will not be better at once. */
const storePauseMs = 1000;
const faultPauseMs = 30_000;

type Concluded = {
  readonly claimed: Claimed;
  readonly run: Run;
  readonly settled: Extract<Settled, { readonly kind: 'settled' }>;
};

/** Never rejects. */
export async function attempt(parts: EngineParts, { queue, due, probe }: Attempt): Promise<void> {
  const { shares, lanes, ready } = parts;
  try {
    const concluded = await handOn(parts, { queue, due, probe });
    if (concluded === undefined) queue.breaker.ignored(probe);
    else understand(parts, queue, probe, concluded);
  } catch (error) {
    parts.observe({ kind: 'receiving-failed', what: 'handing on a message', error });
    pause(parts, queue, error instanceof StoreUnavailable ? storePauseMs : faultPauseMs);
    queue.breaker.ignored(probe);
  }
  shares.end(queue.share);
  queue.release(due.id);
  lanes.release(queue.lane);
  ready(queue);
}

/**
 * Handlers of one sender that write the same resource lose against each other. Those that lost run again in turn, and none begins meanwhile: so each
 * loses at most to those that were under way, and then to nobody of its sender.
 *
 * @returns undefined where nothing came of it: there was nothing to do any more, or the program stops
 */
async function handOn(parts: EngineParts, begun: Attempt): Promise<Concluded | undefined> {
  const first = await handOnOnce(parts, begun, true);
  if (first !== 'rerun') return first;
  const { queue } = begun;
  const letGo = await queue.rerunTurn();
  try {
    const rerunsMax = queue.inFlightMax - 1 + foreignRerunsMax;
    for (let reruns = 1; !parts.running.aborted; reruns += 1) {
      const concluded = await handOnOnce(parts, begun, reruns < rerunsMax);
      if (concluded !== 'rerun') return concluded;
    }
    return undefined;
  } finally {
    letGo();
  }
}

async function handOnOnce(
  parts: EngineParts,
  { queue, due }: Attempt,
  mayRerun: boolean,
): Promise<Concluded | 'rerun' | undefined> {
  const { clock, running, settling } = parts;
  if (running.aborted) return undefined;
  const found = await claim(parts, queue, due);
  if (found === undefined) return undefined;
  const { claimed, hasContent } = found;
  const startedAt = clock();
  const handedOn: HandedOn = hasContent ? await queue.handOn(claimed, running) : contentGone;
  if (handedOn.outcome === 'aborted') {
    // Given up by whoever it was handed to, though we go on: it is still due.
    if (!running.aborted) pause(parts, queue, storePauseMs);
    return undefined;
  }
  const run = { handedOn, startedAt, endedAt: clock() };
  const settled = await settleSurely(() => parts.settle(claimed, run, mayRerun), {
    ...{ timers: parts.timers, signal: settling },
    onFailed: (error) => parts.observe({ kind: 'receiving-failed', what: 'writing down an attempt', error }),
  });
  if (settled === undefined) {
    // Done and not written down: done again at once it would be done again and again.
    if (!settling.aborted) pause(parts, queue, faultPauseMs);
    return undefined;
  }
  return settled.kind === 'settled' ? { claimed, run, settled } : 'rerun';
}

function pause({ clock }: EngineParts, queue: SenderQueue, ms: number): void {
  queue.notBefore = Math.max(queue.notBefore, clock() + ms);
  queue.mayHoldMore = true;
}

function understand(
  { clock, observe }: EngineParts,
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
