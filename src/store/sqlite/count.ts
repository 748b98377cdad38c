/** Counts the undeleted rows that pass a filter, on a reader thread: there is no count without a walk. */
import type { Filter } from '../../model/filter.ts';
import type { SqlValue } from '../field-value.ts';
import { compileFilter } from './compile/filter.ts';
import { tickSql } from './compile/select.ts';
import type { Layout } from './layout.ts';
import type { ReaderPool } from './reader/pool.ts';

export async function countRows(
  readers: ReaderPool,
  layout: Layout,
  tableNumber: number,
  filter: Filter,
): Promise<number> {
  if (filter.op === 'never') return 0;
  const parameters: SqlValue[] = [];
  const condition = filter.op === 'always' ? '' : ` AND ${compileFilter(filter, parameters)}`;
  const sql = `SELECT count(*) FROM ${layout.name} WHERE deleted_at IS NULL${condition} AND ${tickSql}`;
  const { rows } = await readers.read(sql, parameters, tableNumber);
  return Number(rows[0]?.[0]);
}
