/** Counts the undeleted rows that pass a filter, on the scan lane: there is no count without a walk. */
import type { Filter } from '../../../model/filter.ts';
import { compileFilter } from '../compile/filter.ts';
import { Parameters } from '../compile/parameters.ts';
import type { Bindable } from '../connection/connection.ts';
import type { ScanLane } from '../connection/scan-lane.ts';
import type { Layout } from '../schema/layout.ts';

/** @throws StoreUnavailable */
export async function countRows(
  scan: Pick<ScanLane, 'read'>,
  layout: Layout,
  filter: Filter,
): Promise<number> {
  if (filter.op === 'never') return 0;
  const parameters = new Parameters(false);
  const condition = filter.op === 'always' ? '' : ` AND ${compileFilter(filter, parameters)}`;
  const sql = `SELECT count(*) FROM ${layout.name} WHERE deleted_at IS NULL${condition}`;
  const rows = await scan.read({ sql, values: parameters.list as readonly Bindable[], prepared: false });
  return Number(rows[0]?.[0]);
}
