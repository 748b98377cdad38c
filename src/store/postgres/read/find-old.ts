/** Ids of the rows that are to be purged, on the scan lane: there may be no index by time of change. */
import type { ScanLane } from '../connection/scan-lane.ts';
import type { Layout } from '../schema/layout.ts';

/**
 * @param updatedBefore milliseconds since the epoch
 * @throws StoreUnavailable
 */
export async function findOld(
  scan: Pick<ScanLane, 'read'>,
  layout: Layout,
  updatedBefore: number,
  limit: number,
): Promise<readonly string[]> {
  const sql = `SELECT id FROM ${layout.name} WHERE updated_at < $1::bigint LIMIT $2::bigint`;
  const rows = await scan.read({ sql, values: [updatedBefore, limit], prepared: false });
  return rows.map(([id]) => String(id));
}
