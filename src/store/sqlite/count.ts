/** Counts the undeleted rows that pass a filter, on a reader thread: there is no count without a walk. */
import type { Filter } from '../../model/filter.ts';
import type { SqlValue } from '../field-value.ts';
import { shapeFilter } from '../filter-shape.ts';
import { conditionOf, encoding } from './compile/filter.ts';
import { tickSql } from './compile/select.ts';
import type { Layout } from './layout.ts';
import type { ReaderPool } from './reader/pool.ts';

export async function countRows(
  readers: ReaderPool,
  layout: Layout,
  tableNumber: number,
  filter: Filter,
  party: string | undefined,
): Promise<number> {
  const shaped = shapeFilter(filter, encoding);
  if (shaped.shape.op === 'never') return 0;
  const parameters: SqlValue[] = [];
  const condition = shaped.shape.op === 'always' ? '' : ` AND ${conditionOf(shaped, parameters)}`;
  const sql = `SELECT count(*) FROM ${layout.name} WHERE ${tickSql} AND deleted_at IS NULL${condition}`;
  const { rows } = await readers.read(sql, parameters, tableNumber, { party });
  return Number(rows[0]?.[0]);
}
