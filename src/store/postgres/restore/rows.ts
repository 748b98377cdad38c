/** Sends the rows of a table in batches, reading ahead. Rejects values that PostgreSQL cannot store, while their row is known. */
import { columnNamesOf } from '../../backup-file/layout.ts';
import {
  type StoredRow,
  type StoredTable,
  type StoreFile,
  UnfitBackup,
} from '../../backup-file/read-file.ts';
import type { Session } from '../schema/session.ts';

const rowsPerBatchMax = 1000;
/** Characters of documents, without the one that crosses the limit. */
const charactersPerBatchMax = 4 * 1024 * 1024;

const bigintColumns: ReadonlySet<string> = new Set(['rev', 'created_at', 'updated_at', 'deleted_at']);

export type RowsSource = {
  readonly session: Session;
  readonly source: StoreFile;
  /** The file's name in messages. */
  readonly file: string;
  readonly signal: AbortSignal;
};

export type RowsTarget = {
  /** Quoted, with its schema. */
  readonly name: string;
  /** False drops search text; if the table is searched later, a row is found after its next write. */
  readonly searched: boolean;
};

/** @param onRows receives the number of rows in each batch that the server accepted */
export async function insertRows(
  { session, source, file, signal }: RowsSource,
  table: StoredTable,
  to: RowsTarget,
  onRows: (rows: number) => void,
): Promise<void> {
  const columns = columnNamesOf({ ...table, searched: table.searched && to.searched });
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
    // A failure is thrown where the batch is awaited.
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

/** Rejects U+0000, which PostgreSQL stores neither in a text nor in a JSON string that it compares. */
function refuseUnfit(row: StoredRow, table: string, file: string): void {
  for (const value of row) {
    if (typeof value !== 'string' || !holdsNull(value)) continue;
    throw new UnfitBackup(
      `${file} has a row that PostgreSQL cannot hold: "${String(row[0])}" of ${table} contains U+0000; change it and back up again`,
    );
  }
}

/** An odd number of backslashes before the `u` makes it an escape; an even number makes it plain text. */
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
  // Thrown where the promise is awaited.
}

/** Encodes a list as PostgreSQL's array literal (manual, 8.15.2), to be cast as in `$1::text[]`: a session binds single values. */
export function arrayLiteral(values: readonly (string | number | null)[]): string {
  let literal = '{';
  for (const value of values) {
    if (literal.length > 1) literal += ',';
    if (value === null) literal += 'NULL';
    else if (typeof value === 'number') literal += value;
    else literal += `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  }
  return `${literal}}`;
}
