/**
 * What an attempt says of its endpoint (§6), whatever it means for the delivery.
 *
 *   2xx                        it works, also where a person had asked for the attempt
 *   429, 502, 503, 504         it fails and wants less at once; its Retry-After is honoured
 *   timeout                    it fails and wants less at once
 *   410, scheme `standard`     it wants no more; the other schemes document no such meaning (§6.6), so there it is a failure
 *   everything else            it fails; a redirect is among that
 *   aborted, expunged          nothing
 *
 * A failure that a person had asked for says nothing of its health: somebody who tries a broken endpoint again and again should not bring
 * nearer the day on which it is disabled.
 */

import type { Trigger } from '../../../model/delivery.ts';
import type { Scheme } from '../../../model/endpoint.ts';
import type { Attempted, Verdict } from '../claim.ts';
import { retryAfter } from '../retry-after.ts';

const succeeded: Verdict = { health: 'succeeded', notBefore: null, slowDown: false, gone: false };
const silent: Verdict = { health: 'ignored', notBefore: null, slowDown: false, gone: false };

/** Statuses that ask for less, and with which Retry-After is read. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const goneStatus = 410;

/** Any 2xx, and nothing else (§6.4). */
export function isAcknowledged({ outcome }: Attempted): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;
}

/** Whether the attempt counts at all, or the program stopped in the middle of it. */
export function isAborted({ outcome }: Attempted): boolean {
  return outcome.kind === 'failed' && outcome.failure === 'aborted';
}

export function verdictOf(
  attempted: Attempted,
  trigger: Trigger,
  scheme: Scheme,
  retryAfterSecondsMax: number,
): Verdict {
  const { outcome, endedAt } = attempted;
  if (outcome.kind === 'expunged' || outcome.kind === 'forbidden' || isAborted(attempted)) return silent;
  if (isAcknowledged(attempted)) return succeeded;
  const health = trigger === 'manual' ? 'ignored' : 'failed';
  if (outcome.kind === 'failed') {
    return { health, notBefore: null, slowDown: outcome.failure === 'timeout', gone: false };
  }
  const slowDown = slowing.has(outcome.status);
  return {
    health,
    notBefore: slowDown ? retryAfter(outcome.fields, endedAt, retryAfterSecondsMax) : null,
    slowDown,
    gone: outcome.status === goneStatus && scheme === 'standard',
  };
}
