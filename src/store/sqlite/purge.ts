/**
 * Removes old rows. A reader thread finds them, which may be a scan; the writer then removes them by id, a few hundred
 * in a transaction so that commits pass in between, and looks at the time of each once more.
 * References are not looked at: what is purged is a log, not a collection that others refer to.
 */
import { tickSql } from './compile/select.ts';
import type { Layout } from './layout.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { WriterQueue } from './writer/queue.ts';

const rowsPerTransaction = 500;

export async function purgeRows(
  readers: ReaderPool,
  writer: WriterQueue,
  layout: Layout,
  tableNumber: number,
  range: { readonly updatedBefore: number; readonly limit: number },
): Promise<number> {
  const sql = `SELECT id FROM ${layout.name} WHERE ${tickSql} AND updated_at < ? LIMIT ?`;
  const { rows } = await readers.read(sql, [range.updatedBefore, range.limit], tableNumber);
  const ids = rows.map((row) => String(row[0]));
  let purged = 0;
  for (let start = 0; start < ids.length; start += rowsPerTransaction) {
    const some = ids.slice(start, start + rowsPerTransaction);
    purged += await writer.purge(layout.table.name, range.updatedBefore, some);
  }
  return purged;
}
