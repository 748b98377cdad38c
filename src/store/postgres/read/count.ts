/** Counts the undeleted rows that pass a filter, on the scan lane: there is no count without a walk. */
import type { Filter } from '../../../model/filter.ts';
import { compileFilter, shapeOfFilter } from '../compile/filter.ts';
import { bindValues, Parameters } from '../compile/parameters.ts';
import type { ScanLane } from '../connection/scan-lane.ts';
import type { Layout } from '../schema/layout.ts';

/** @throws StoreUnavailable */
export async function countRows(
  scan: Pick<ScanLane, 'read'>,
  layout: Layout,
  filter: Filter,
  party?: string,
): Promise<number> {
  const { shape, values } = shapeOfFilter(filter);
  if (shape.op === 'never') return 0;
  const parameters = new Parameters(false);
  const condition = shape.op === 'always' ? '' : ` AND ${compileFilter(shape, parameters)}`;
  const sql = `SELECT count(*) FROM ${layout.name} WHERE deleted_at IS NULL${condition}`;
  const call = { sql, values: bindValues(parameters.list, values), prepared: false };
  const rows = await scan.read(call, party);
  return Number(rows[0]?.[0]);
}
