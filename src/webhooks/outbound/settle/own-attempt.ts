/**
 * Whether a settlement that comes too late was overtaken by itself: its unit had been made, and only the answer of the store was lost.
 * Then the log holds the very attempt, under a number that was free when it was written. Two attempts of one delivery do not
 * have the same document: one begins after the other has ended, and the millisecond in which it began stands in it.
 */
import type { Delivery } from '../../../model/delivery.ts';
import type { Store } from '../../../store/store.ts';
import { type AttemptFacts, attemptDocument, attemptId } from '../attempt-row.ts';
import { attemptsTable } from '../tables.ts';

/** Attempts that may have been concluded beside one; older numbers are not looked at. */
const numbersMax = 64;

/**
 * @param begun the delivery as the attempt began with it
 * @param standing as it stands
 * @param facts of the attempt; its number is left out of account
 */
export async function findOwnAttempt(
  store: Pick<Store, 'read'>,
  begun: Delivery,
  standing: Delivery,
  facts: AttemptFacts,
): Promise<boolean> {
  const from = Math.max(begun.attemptCount + 1, standing.attemptCount + 1 - numbersMax);
  for (let number = from; number <= standing.attemptCount; number += 1) {
    const row = await store.read(attemptsTable, attemptId(begun.id, number));
    if (row !== undefined && row.doc === attemptDocument({ ...facts, number })) return true;
  }
  return false;
}
