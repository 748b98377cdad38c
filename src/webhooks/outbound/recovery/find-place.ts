/**
 * Where a time lies in the event log. The log is ordered by revision and tells times only in the events themselves; they grow with it but
 * for clocks that differ and units that wait for their commit, and so by less than the slack. A search by halves takes a read of one
 * event for each bit of the revision, however long the log.
 */
import { always } from '../../../model/filter.ts';
import type { LogPosition, Store } from '../../../store/store.ts';

/** How far the times of neighbours in the log may be out of order. */
export const slackMs = 5 * 60_000;

/**
 * @param since milliseconds since the epoch
 * @returns a place that every event of that time or later, give or take the slack, lies behind
 */
export async function findPlace(store: Pick<Store, 'tail' | 'head'>, since: number): Promise<LogPosition> {
  const threshold = since - slackMs;
  let low = 0;
  let high = (await store.head()).rev + 1;
  // Every event before `low` is too old; none from `high` on is.
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await store.tail({ rev: middle, id: '' }, always, 1);
    if (event === undefined || createdOf(event.doc) >= threshold) high = middle;
    else low = event.rev + 1;
  }
  return { rev: low, id: '' };
}

const createdMember = '"created":';

/**
 * When an event was made, in milliseconds since the epoch, to the second (§6.2). No text before the member can hold its name: a quotation
 * mark within a text is escaped.
 */
export function createdOf(doc: string): number {
  const start = doc.indexOf(createdMember) + createdMember.length;
  return Number.parseInt(doc.slice(start, start + 16), 10) * 1000;
}
