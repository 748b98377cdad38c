/**
 * Finds requests whose lease was given back or has run out, and takes them over, a page at a time and the next page
 * only when that one is done: a process that died with thousands pending does not fall on the others all at once.
 * An index by time makes the usual round, which finds nothing, one step.
 */
import type { Row, Store } from '../../store/store.ts';
import { Lease, leaseMs } from './lease.ts';
import type { StoredRequest } from './stored-request.ts';
import { operationRequestsTable, operationsTable, renewedAtField, requestIdField } from './tables.ts';

/** Requests looked at together; each may be as long as content may be, so octets end a page as well. */
const pageRowsMax = 10;
const pageBytesMax = 1024 * 1024;

/** Later than every lease. */
const never = Date.UTC(9999, 11, 31);

export type Sweep = {
  readonly store: Store;
  readonly holder: string;
  readonly clock: () => number;
  /** Whether every lease but ours belongs to a process that is gone. */
  readonly all: boolean;
  /** Whether this process is carrying the operation out. */
  readonly isOurs: (id: string) => boolean;
  readonly isStopped: () => boolean;
  readonly begin: (stored: StoredRequest, operation: Row, lease: Lease) => Promise<void>;
};

/** One round. @throws StoreUnavailable */
export async function sweepLeft(sweep: Sweep): Promise<void> {
  const { store, clock } = sweep;
  const before = sweep.all ? never : clock() - leaseMs;
  const plan = store.plan({
    table: operationRequestsTable,
    filter: { op: 'lte', field: renewedAtField, value: new Date(before).toISOString() },
    sort: [
      { field: renewedAtField, direction: 'asc' },
      { field: requestIdField, direction: 'asc' },
    ],
    limit: pageRowsMax,
    bytesMax: pageBytesMax,
  });
  let page = await plan.page({ from: 'start' });
  for (;;) {
    const runs: Promise<void>[] = [];
    for (const doc of page.docs) {
      if (sweep.isStopped()) break;
      const run = await takeUp(sweep, JSON.parse(doc) as StoredRequest, before);
      if (run !== undefined) runs.push(run.ends);
    }
    await Promise.all(runs);
    if (sweep.isStopped() || !page.more || page.last === null) return;
    page = await plan.page({ from: 'after', key: page.last });
  }
}

/** Wrapped, so that nobody waits for the end who awaits the beginning. */
async function takeUp(
  sweep: Sweep,
  stored: StoredRequest,
  before: number,
): Promise<{ readonly ends: Promise<void> } | undefined> {
  const { store } = sweep;
  if (sweep.isOurs(stored.id)) return undefined;
  const row = await store.read(operationRequestsTable, stored.id);
  if (row === undefined || row.updatedAt > before) return undefined;
  const operation = await store.read(operationsTable, stored.id);
  if (operation === undefined) {
    // Its time was over before anyone could end it, and nobody can ask after it any more.
    const forgotten = { table: operationRequestsTable, id: row.id, expect: { rev: row.rev }, next: null };
    await store.commit({ changes: [forgotten], events: [] });
    return undefined;
  }
  const lease = await Lease.take(store, stored, sweep.holder, row, sweep.clock());
  return lease === undefined ? undefined : { ends: sweep.begin(stored, operation, lease) };
}
