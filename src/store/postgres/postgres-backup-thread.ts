/**
 * The thread of one backup: copies every row of one snapshot into a file, table by table in batches by id. The snapshot is one REPEATABLE
 * READ transaction, so a unit is in the copy entirely or not at all, no writer waits, and a pooler in transaction mode or a standby works
 * as well. The thread fetches the next batch while it writes one.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { columnNamesOf } from '../backup-file/file-format.ts';
import { beginPartial, type CopyReply, publishWhenTold, writeFile } from '../backup-file/write-file.ts';
import { addressOf } from './connection/address.ts';
import type { Cell, Rows } from './connection/connection.ts';
import { type BackupData, inLongTransaction, originOf } from './postgres-backup.ts';
import { nameIn, readSchemaTables, type SchemaTable } from './schema/inspect.ts';
import { openSession, type Session } from './schema/session.ts';

const rowsPerBatchMax = 2000;
/** Octets of documents and search text, without the row that crosses the limit. */
const bytesPerBatchMax = 4 * 1024 * 1024;

async function run({ url, schema, connectTimeoutMs, to, waits }: BackupData): Promise<void> {
  const partial = beginPartial(to);
  const session = await openSession(addressOf(url), 'comity backup', connectTimeoutMs, { isLong: true });
  let total = 0;
  await inLongTransaction(session, 'ISOLATION LEVEL REPEATABLE READ READ ONLY', async () => {
    const { rev, purged, raises, tables } = await readSchemaTables(session, schema);
    for (const table of tables) total += await countOf(session, schema, table);
    const file = writeFile(partial, { rev, purged, raises, origin: originOf({ url, schema }) }, tables);
    let done = 0;
    for (const table of tables) {
      for await (const rows of batches(session, schema, table)) {
        file.insert(table, rows as readonly (readonly Exclude<Cell, boolean>[])[]);
        done += rows.length;
        if (done < total) tell({ kind: 'progress', done, total });
      }
    }
    if (done !== total) throw new Error(`only ${done} of the snapshot's ${total} rows were read`);
    file.close();
  });
  await session.end();
  if (parentPort === null) throw new Error('this is a thread');
  await publishWhenTold({ to, ...(waits === undefined ? {} : { waits }) }, parentPort);
  tell({ kind: 'progress', done: total, total });
  tell({ kind: 'done' });
}

async function countOf(session: Session, schema: string, table: SchemaTable): Promise<number> {
  const [row] = await session.rows(`SELECT count(*) FROM ${nameIn(schema, table)}`);
  return Number(row?.[0]);
}

/** Reads every row of the table; requests each batch before it yields the one before. */
async function* batches(session: Session, schema: string, table: SchemaTable): AsyncGenerator<Rows> {
  let limit = rowsPerBatchMax;
  let next: Promise<Rows> | undefined = session.rows(batchSql(schema, table, undefined, limit));
  while (next !== undefined) {
    const rows: Rows = await next;
    const last = rows.at(-1)?.[0];
    // The octet limit discards rows already read: request at most twice as many as fit.
    limit = Math.min(rowsPerBatchMax, Math.max(1, rows.length * 2));
    next = last === undefined ? undefined : session.rows(batchSql(schema, table, last, limit), [last]);
    // A failure is thrown when the batch is awaited, not while the one before is written.
    next?.catch(ignore);
    if (rows.length > 0) yield rows;
  }
}

/** Lengths are known from the row alone, so a long document is fetched only when it is sent. */
function batchSql(schema: string, table: SchemaTable, after: Cell | undefined, limit: number): string {
  const columns = columnNamesOf(table).join(', ');
  const others = [...(table.searched ? ['search'] : []), ...(table.traced === true ? ['former'] : [])];
  const bytes = ['octet_length(doc)', ...others.map((name) => `coalesce(octet_length(${name}), 0)`)].join(
    ' + ',
  );
  return `SELECT ${columns} FROM (
    SELECT ${columns}, sum(${bytes}) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - (${bytes}) AS bytes_before
    FROM (
      SELECT ${columns} FROM ${nameIn(schema, table)} ${after === undefined ? '' : 'WHERE id > $1'}
      ORDER BY id LIMIT ${limit}
    ) AS next
  ) AS sized WHERE bytes_before < ${bytesPerBatchMax} ORDER BY id`;
}

function tell(reply: CopyReply): void {
  parentPort?.postMessage(reply);
}

function ignore(): void {
  // Thrown where the promise is awaited.
}

await run(workerData as BackupData);
