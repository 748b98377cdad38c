/**
 * The rows of one table of a file, sent in batches; one is read from the file while the one before is on its way. A value that
 * PostgreSQL cannot hold is refused here, where its row can still be named.
 */
import { columnNamesOf } from '../../backup-file/layout.ts';
import {
  type StoredRow,
  type StoredTable,
  type StoreFile,
  UnfitBackup,
} from '../../backup-file/read-file.ts';
import type { Session } from '../schema/session.ts';
import { arrayLiteral } from './array-literal.ts';

const rowsPerBatchMax = 1000;
/** Of documents, before the one that crosses it. */
const charactersPerBatchMax = 4 * 1024 * 1024;

const bigintColumns: ReadonlySet<string> = new Set(['rev', 'created_at', 'updated_at', 'deleted_at']);

export type RowsSource = {
  readonly session: Session;
  readonly source: StoreFile;
  /** What the file is called in messages. */
  readonly file: string;
  readonly signal: AbortSignal;
};

export type RowsTarget = {
  /** Quoted, with its schema. */
  readonly name: string;
  /** Search text of a table that is not searched stays behind; rows without any are found by it once they are written again. */
  readonly searched: boolean;
};

/** @param onRows told how many rows the server has taken, batch by batch */
export async function insertRows(
  { session, source, file, signal }: RowsSource,
  table: StoredTable,
  to: RowsTarget,
  onRows: (rows: number) => void,
): Promise<void> {
  const columns = columnNamesOf({ name: table.name, searched: table.searched && to.searched });
  const lists = columns.map((name, at) => `$${at + 1}::${bigintColumns.has(name) ? 'bigint' : 'text'}[]`);
  const insert = `INSERT INTO ${to.name} (${columns.join(', ')}) SELECT * FROM unnest(${lists.join(', ')})`;
  let sent: Promise<void> = Promise.resolve();
  for (const batch of batches(source.rows(table, columns), columns.indexOf('doc'))) {
    for (const row of batch) refuseUnfit(row, table.name, file);
    const values = columns.map((_, at) =>
      arrayLiteral(batch.map((row) => row[at] as string | number | null)),
    );
    await sent;
    signal.throwIfAborted();
    sent = session.rows(insert, values).then(() => onRows(batch.length));
    // A failure is met when the batch is waited for.
    sent.catch(ignore);
  }
  await sent;
}

function* batches(rows: Iterable<StoredRow>, docAt: number): Generator<readonly StoredRow[]> {
  let batch: StoredRow[] = [];
  let characters = 0;
  for (const row of rows) {
    batch.push(row);
    characters += String(row[docAt]).length;
    if (batch.length < rowsPerBatchMax && characters < charactersPerBatchMax) continue;
    yield batch;
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield batch;
}

/**
 * PostgreSQL keeps no U+0000 in a text, nor in a JSON string that it compares: a row with one could be stored but not listed.
 * What else a JSON text can hold it takes.
 */
function refuseUnfit(row: StoredRow, table: string, file: string): void {
  for (const value of row) {
    if (typeof value !== 'string' || !holdsNull(value)) continue;
    throw new UnfitBackup(
      `${file} has a row that PostgreSQL cannot hold: "${String(row[0])}" of ${table} contains U+0000; change it and back up again`,
    );
  }
}

/** The escape counts with an odd number of backslashes before the `u`; with an even one it is text that looks like it. */
function holdsNull(text: string): boolean {
  if (text.includes('\0')) return true;
  for (let at = text.indexOf('u0000'); at !== -1; at = text.indexOf('u0000', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 1) return true;
  }
  return false;
}

function ignore(): void {
  // Met where the promise is awaited.
}
