/**
 * One attempt: sent, written down, understood. Its place in the window is free when it was accepted; a failure keeps it until it is
 * understood, so that an endpoint that asks for less, or for peace, gets no more meanwhile.
 */
import { StoreUnavailable } from '../../../store/store.ts';
import type { Attempted, Claim, Settled } from '../claim.ts';
import type { Attempt, EngineParts } from './parts.ts';
import { settleSurely } from './settle-surely.ts';

/** After something of our own that failed, which will not be better at once. */
const storePauseMs = 1000;
const faultPauseMs = 30_000;
/** Until the directory shows what the attempt did: that the endpoint wants no more. */
const gonePauseMs = 5000;

/** Never rejects. */
export async function attempt(parts: EngineParts, begun: Attempt): Promise<void> {
  const { queue, claim, ticket } = begun;
  const { capacity, lanes } = parts;
  const attempted = await trySend(parts, begun);
  capacity.answered(ticket);
  const isAsked = claim.isAsked === true;
  const accepted = attempted !== undefined && isAccepted(attempted);
  if (accepted && !isAsked) {
    queue.underWay -= 1;
    parts.ready(queue);
  }
  if (attempted === undefined) queue.breaker.ignored(begun.probe);
  else understand(parts, begun, attempted, await settle(parts, claim, attempted));
  if (isAsked) queue.askedUnderWay -= 1;
  else if (!accepted) queue.underWay -= 1;
  capacity.settled();
  queue.release(claim.delivery.id);
  lanes.release(queue.id);
  parts.ready(queue);
}

/** @returns undefined where nothing was sent because of us; the delivery is still due */
async function trySend(
  { send, sending, observe, clock }: EngineParts,
  { queue, claim }: Attempt,
): Promise<Attempted | undefined> {
  try {
    return await send(claim, sending);
  } catch (error) {
    observe({ kind: 'sending-failed', what: 'making a delivery', error });
    const pauseMs = error instanceof StoreUnavailable ? storePauseMs : faultPauseMs;
    queue.notBefore = Math.max(queue.notBefore, clock() + pauseMs);
    queue.mayHoldMore = true;
    return undefined;
  }
}

async function settle(
  { settle, timers, observe, settling }: EngineParts,
  claim: Claim,
  attempted: Attempted,
): Promise<Settled | undefined> {
  return await settleSurely(() => settle(claim, attempted), {
    ...{ timers, signal: settling },
    onFailed: (error) => observe({ kind: 'sending-failed', what: 'writing down an attempt', error }),
  });
}

function isAccepted({ outcome }: Attempted): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;
}

/** Neither accepted nor without meaning. */
function isFailure({ outcome }: Attempted): boolean {
  if (outcome.kind === 'answered') return outcome.status < 200 || outcome.status > 299;
  return outcome.kind === 'failed' && outcome.failure !== 'aborted';
}

function understand(
  { clock, observe }: EngineParts,
  { queue, claim, probe, number }: Attempt,
  attempted: Attempted,
  settled: Settled | undefined,
): void {
  const now = clock();
  if (settled === undefined) {
    // Sent and not written down: sent again at once it would be sent again and again.
    queue.notBefore = Math.max(queue.notBefore, now + faultPauseMs);
    queue.breaker.ignored(probe);
    queue.mayHoldMore = true;
    return;
  }
  const { verdict, delivery } = settled;
  const { breaker, window, id } = queue;
  if (delivery !== undefined && delivery.dueAt !== null) queue.dueAt(Date.parse(delivery.dueAt));
  // What somebody asked for leaves the schedule of the others as it was, unless it shows that the endpoint is well or gone.
  if (claim.isAsked === true && verdict.health !== 'succeeded' && !verdict.gone) return;
  // What somebody asked for does not count against an endpoint, but as a probe it has shown what a probe is to show.
  const failed = verdict.health === 'failed' || (probe && isFailure(attempted));
  if (verdict.health === 'ignored' && !failed) breaker.ignored(probe);
  if (verdict.health === 'succeeded') {
    window.succeeded();
    if (breaker.succeeded()) observe({ kind: 'endpoint-answers-again', endpoint: id });
  }
  if (verdict.slowDown) window.slowDown(number);
  if (failed) {
    const until = breaker.failed(now, probe);
    if (until !== undefined) {
      window.paused();
      observe({ kind: 'endpoint-left-alone', endpoint: id, until });
    }
  }
  const pausedUntil = verdict.gone ? now + gonePauseMs : (verdict.notBefore ?? 0);
  if (pausedUntil > now) {
    queue.notBefore = Math.max(queue.notBefore, pausedUntil);
    window.paused();
  }
}
