/** Reads the newest rows that other processes put to name an endpoint, and tells of those that it has not seen. */
import { idField } from '../../../model/field.ts';
import { always } from '../../../model/filter.ts';
import type { Row } from '../../../store/store.ts';
import { wakesTable } from '../tables.ts';
import { createFollower, type Followed, type Follower } from './follower.ts';

/** Rows of one reading; they last a minute, and what is not among the newest waits for the sender's own round. */
const rowsPerReadMax = 256;

/** What a row says: one endpoint, or several. */
export type WakeRow =
  | { readonly endpointId: string; readonly deliveryId?: string | undefined }
  | { readonly endpointIds: readonly string[] };

/** Tells of rows that come from then on. @throws StoreUnavailable */
export async function followWakeRows(
  { store, observe }: Followed,
  announce: (endpointIds: Iterable<string>, deliveryId?: string) => void,
): Promise<Follower> {
  const plan = store.plan({
    table: wakesTable,
    filter: always,
    sort: [{ field: idField, direction: 'desc' }],
    limit: rowsPerReadMax,
  });
  let seenRev = 0;

  /** Revisions grow from unit to unit, whichever process and whatever its clock. */
  async function unseen(): Promise<readonly Row[]> {
    const rows = await plan.rows({ from: 'start' });
    const fresh = rows.filter(({ rev }) => rev > seenRev);
    for (const { rev } of fresh) seenRev = Math.max(seenRev, rev);
    return fresh;
  }

  async function read(): Promise<void> {
    for (const { doc } of await unseen()) {
      const wake = JSON.parse(doc) as WakeRow;
      if ('endpointIds' in wake) announce(wake.endpointIds);
      else announce([wake.endpointId], wake.deliveryId);
    }
  }

  await unseen();
  return createFollower({
    subscribe: (listener) => store.onChange(wakesTable, listener),
    read,
    what: 'wakes of other processes',
    observe,
  });
}
