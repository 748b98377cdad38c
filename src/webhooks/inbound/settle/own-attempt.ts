/**
 * Whether a settlement that comes too late was overtaken by itself: its unit had been made, and only the answer of the store was lost.
 * Then the log holds the very attempt. It is known by the millisecond in which it began and by how long it took. Asked only where an answer was
 * lost: then another process that handed the same message on in the very same milliseconds is taken for it, and what that wrote stands.
 */
import type { Received } from '../../../model/received.ts';
import type { Store } from '../../../store/store.ts';
import { attemptId } from '../../outbound/attempt-row.ts';
import { type ReceivedAttempt, receivedAttemptsTable } from '../tables.ts';
import { type AttemptFacts, attemptOf } from './attempt-row.ts';
import { refusedError, supersededError } from './conclude.ts';

/** Attempts that may have been concluded beside one; older numbers are not looked at. */
const numbersMax = 64;

/** As which a run that was processed may have been written down, because its unit was refused. */
const refusals: ReadonlySet<string | null> = new Set([refusedError, supersededError]);

/**
 * @param begun the message as the attempt began with it
 * @param standing as it stands
 * @param facts of the attempt; its number is left out of account
 */
export async function findOwnAttempt(
  store: Pick<Store, 'read'>,
  begun: Received,
  standing: Received,
  facts: AttemptFacts,
): Promise<boolean> {
  const own = attemptOf(facts);
  const from = Math.max(begun.attempts + 1, standing.attempts + 1 - numbersMax);
  for (let number = from; number <= standing.attempts; number += 1) {
    const row = await store.read(receivedAttemptsTable, attemptId(begun.id, number));
    if (row !== undefined && isSame(JSON.parse(row.doc) as ReceivedAttempt, own)) return true;
  }
  return false;
}

function isSame(logged: ReceivedAttempt, own: ReceivedAttempt): boolean {
  const { at, durationMs, outcome, error } = logged;
  if (at !== own.at || durationMs !== own.durationMs) return false;
  return (outcome === own.outcome && error === own.error) || refusals.has(error);
}
