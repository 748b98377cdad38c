/**
 * Restores a file with a store into an empty schema, in one transaction: no row is visible before the commit, and a failure leaves the
 * schema as it was. It locks out writers (`claimEmpty`); readers of a running server wait.
 * Rows keep their ids, revisions and times, and the counters continue from those of the file, so entity tags, cursors and log positions of
 * clients stay valid. Indexes are created after the rows: 10^5 rows with five indexes took 3.1 s, and 4.6 s with the indexes created first
 * (two cores, fsync on; COPY was no faster than unnest).
 */
import type { Observe } from '../../observe/observation.ts';
import {
  type BeforeRestore,
  columnNamesOf,
  type FileTable,
  type RowToSet,
  type SetRow,
} from '../backup-file/file-format.ts';
import {
  NotEmpty,
  type Restored,
  readFile,
  type StoredRow,
  type StoredTable,
  type StoreFile,
  StoreInUse,
  UnfitBackup,
} from '../backup-file/read-file.ts';
import { purgedCounter, purgedCounterName } from '../revision.ts';
import { quoteName } from '../sql-text.ts';
import { eventsTable, type Table } from '../store.ts';
import { type Address, addressOf, describe } from './connection/address.ts';
import { inLongTransaction, originOf, type StorePlace } from './postgres-backup.ts';
import { DatabaseFailed, sqlState } from './postgres-failure.ts';
import { nameIn, readSchemaTables, type SchemaTable } from './schema/inspect.ts';
import { openSchema } from './schema/open-schema.ts';
import { arrayLiteral, openSession, type Session, tryLockInTransaction } from './schema/session.ts';

/** A missing schema is created. */
type RestoreTarget = StorePlace & {
  /** The declared tables; the file may hold rows of no other. */
  readonly tables: readonly Table[];
  readonly observe: Observe;
  /** Version of the program, recorded with the schema when it is created. */
  readonly program: string;
  /** Time that another process may hold a lock that a restore needs. Default 10 s. */
  readonly lockTimeoutMs?: number;
  readonly rowToSet?: RowToSet;
  readonly before?: BeforeRestore;
};

/** Counts the rows first, then the indexes. */
export type OnRestore = (what: 'rows' | 'indexes', done: number, total: number) => void;

const lockNotAvailable = '55P03';

/**
 * Resolves when the restore is committed.
 * @param signal aborts it: the current statement is cancelled, and nothing of the restore remains
 * @throws UnfitBackup, NotEmpty, StoreInUse, errors of openSchema, DatabaseFailed, the signal's reason
 */
export async function restore(
  target: RestoreTarget,
  file: string,
  onProgress: OnRestore,
  signal: AbortSignal,
): Promise<Restored> {
  const source = readFile(file);
  try {
    const held = source.tables.filter(({ rows }) => rows > 0);
    refuseUndeclared(held, target.tables, file);
    const address = addressOf(target.url);
    await openSchema(address, target);
    signal.throwIfAborted();
    const session = await openSession(address, 'comity restore', target.connectTimeoutMs, { isLong: true });
    const place = `the schema "${target.schema}" of ${describe(address)}`;
    const { schema, lockTimeoutMs = 10_000 } = target;
    const isSameStore = source.origin === originOf(target);
    const set = target.rowToSet?.(isSameStore);
    const before = async (): Promise<void> => target.before?.(isSameStore);
    const run: Run = {
      ...{ session, source, held, file, schema, place, lockTimeoutMs, onProgress, signal, set, before },
    };
    const forget = await cancelOnAbort(session, address, target.connectTimeoutMs, signal);
    try {
      await inLongTransaction(session, '', () => restoreAll(run));
    } catch (error) {
      throw reasonOf(error, run);
    } finally {
      forget();
      await session.end();
    }
    return { rows: totalOf(held), tables: held.length, rev: source.rev };
  } finally {
    source.close();
  }
}

type Run = {
  readonly session: Session;
  readonly source: StoreFile;
  /** The tables of the file that have rows. */
  readonly held: readonly StoredTable[];
  readonly file: string;
  readonly schema: string;
  readonly place: string;
  readonly lockTimeoutMs: number;
  readonly onProgress: OnRestore;
  readonly signal: AbortSignal;
  readonly set: SetRow | undefined;
  readonly before: () => Promise<void>;
};

async function restoreAll(run: Run): Promise<void> {
  const { session, source, held, schema, signal } = run;
  const existing = await claimEmpty(session, run);
  await run.before();
  const indexes = await dropIndexes(session, schema, held);
  const total = totalOf(held);
  let done = 0;
  for (const table of held) {
    const searched = existing.some((each) => each.searched && each.name === table.name);
    const to = { name: nameIn(schema, table), searched };
    await insertRows({ session, source, file: run.file, signal }, table, to, (rows) => {
      done += rows;
      run.onProgress('rows', done, total);
    });
  }
  await makeIndexes(run, indexes);
  await count(run);
  await verify(run);
  if (run.set !== undefined) await setRow(run, run.set);
  for (const table of held) await session.rows(`ANALYZE ${nameIn(schema, table)}`);
  signal.throwIfAborted();
}

function refuseUndeclared(held: readonly StoredTable[], tables: readonly Table[], file: string): void {
  const declared = new Set([...tables.map(({ name }) => name), eventsTable]);
  const others = held.filter(({ name }) => !declared.has(name));
  if (others.length === 0) return;
  const told = others.map(({ name, rows }) => `"${name}" (${rows})`).join(', ');
  throw new UnfitBackup(`${file} holds rows of tables that the configuration does not declare: ${told}`);
}

async function makeIndexes(run: Run, indexes: readonly DroppedIndex[]): Promise<void> {
  const { session, schema, file, onProgress, signal } = run;
  for (const [at, index] of indexes.entries()) {
    signal.throwIfAborted();
    onProgress('indexes', at, indexes.length);
    await makeIndex(session, schema, index, file);
  }
  onProgress('indexes', indexes.length, indexes.length);
}

/** Continues the revisions of the file; a higher revision of the schema stays, because none is used twice. */
async function count({ session, source, schema }: Run): Promise<void> {
  const counted = [{ name: '', rev: source.rev }, ...source.tables];
  await session.rows(
    `UPDATE ${quoteName(schema)}.comity_counters AS counter SET rev = greatest(counter.rev, given.rev)
     FROM unnest($1::text[], $2::bigint[]) AS given (name, rev) WHERE counter.name = given.name`,
    [arrayLiteral(counted.map(({ name }) => name)), arrayLiteral(counted.map(({ rev }) => rev))],
  );
  const { raises } = source;
  await session.rows(
    `INSERT INTO ${quoteName(schema)}.comity_raises (before, after, made_at, server)
     SELECT *, '' FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) ON CONFLICT (before) DO NOTHING`,
    [
      raises.map(({ before }) => before),
      raises.map(({ after }) => after),
      raises.map(({ madeAt }) => madeAt),
    ].map(arrayLiteral),
  );
  if (source.purged === 0) return;
  await session.rows(
    `INSERT INTO ${quoteName(schema)}.comity_counters AS counter (n, name, rev) VALUES (${purgedCounter}, '${purgedCounterName}', $1::bigint)
     ON CONFLICT (n) DO UPDATE SET rev = greatest(counter.rev, excluded.rev)`,
    [String(source.purged)],
  );
}

/** Compares the rows to be committed with those of the file. */
async function verify({ session, source, held, schema, file }: Run): Promise<void> {
  for (const table of held) {
    const [row] = await session.rows(`SELECT count(*) FROM ${nameIn(schema, table)}`);
    if (Number(row?.[0]) === table.rows) continue;
    throw new UnfitBackup(`${file} holds ${table.rows} rows of ${table.name}, but ${row?.[0]} were restored`);
  }
  const { rev } = await readSchemaTables(session, schema);
  if (rev < source.rev) throw new UnfitBackup(`${file} is at revision ${source.rev}, the schema at ${rev}`);
}

async function setRow({ session, source, schema }: Run, { table, id, doc, at }: SetRow): Promise<void> {
  const name = `${quoteName(schema)}.${quoteName(table)}`;
  await session.rows(`DELETE FROM ${name} WHERE id = $1`, [id]);
  if (doc === undefined) return;
  await session.rows(
    `INSERT INTO ${name} (id, rev, owner, created_at, updated_at, deleted_at, doc) VALUES ($1, $2, NULL, $3, $3, NULL, $4)`,
    [id, source.rev, at, doc],
  );
}

function reasonOf(error: unknown, { signal, place }: Run): unknown {
  // The cancelled statement failed with an error of its own.
  if (signal.aborted) return signal.reason;
  if (error instanceof DatabaseFailed && sqlState(error.cause) === lockNotAvailable) {
    return new StoreInUse(`${place} is in use; stop every server on it`, { cause: error });
  }
  return error;
}

function totalOf(tables: readonly StoredTable[]): number {
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * Cancels the session's current statement on abort, by a second session, because a busy one accepts no other message.
 * @returns a function that removes the listener
 */
async function cancelOnAbort(
  session: Session,
  address: Address,
  connectTimeoutMs: number,
  signal: AbortSignal,
): Promise<() => void> {
  // Queried, because behind a pooler the number from the start of the connection is not the server process's.
  const [row] = await session.rows('SELECT pg_backend_pid()');
  const cancel = async (): Promise<void> => {
    const other = await openSession(address, 'comity restore', connectTimeoutMs);
    await other.rows('SELECT pg_cancel_backend($1)', [Number(row?.[0])]);
    await other.end();
  };
  // If no second session can be opened, the end of the process ends this one.
  const listener = (): void => void cancel().catch(ignore);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

type Claim = {
  readonly schema: string;
  /** The schema's name in messages. */
  readonly place: string;
  readonly lockTimeoutMs: number;
};

/**
 * Locks an empty schema for the rest of the transaction: takes the lock of migrations, and the one that every commit takes (row 0 of the
 * counters), so that nothing else is written.
 * @returns the tables of the schema, all empty
 * @throws StoreInUse, NotEmpty, DatabaseFailed with SQLSTATE 55P03 if other processes hold a lock for too long
 */
async function claimEmpty(
  session: Session,
  { schema, place, lockTimeoutMs }: Claim,
): Promise<readonly SchemaTable[]> {
  if (!(await tryLockInTransaction(session, schema))) {
    throw new StoreInUse(`another process migrates ${place} or restores into it; wait until it ends`);
  }
  await session.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
  await session.rows(`SELECT rev FROM ${quoteName(schema)}.comity_counters WHERE n = 0 FOR UPDATE`);
  const { tables } = await readSchemaTables(session, schema);
  const filled: string[] = [];
  for (const table of tables) {
    const [row] = await session.rows(`SELECT EXISTS (SELECT FROM ${nameIn(schema, table)})`);
    if (row?.[0] === true) filled.push(table.name);
  }
  if (filled.length === 0) return tables;
  throw new NotEmpty(
    `${place} holds rows already (${filled.join(', ')}); restore into another COMITY_DATABASE_SCHEMA or database, before a server is started on it`,
  );
}

// Drops indexes before a restore and creates them again from the server's definitions, also those that Comity did not declare.

type DroppedIndex = {
  readonly name: string;
  readonly table: FileTable;
  /** The server's definition. */
  readonly sql: string;
  /** The indexed expressions, as a list in SQL. */
  readonly keys: string;
};

/** Drops every index of the tables but the primary keys. */
async function dropIndexes(
  session: Session,
  schema: string,
  tables: readonly FileTable[],
): Promise<readonly DroppedIndex[]> {
  const dropped: DroppedIndex[] = [];
  for (const table of tables) {
    const indexes = await session.rows(
      `SELECT i.relname, pg_get_indexdef(x.indexrelid),
         (SELECT string_agg('(' || pg_get_indexdef(x.indexrelid, at, false) || ')', ', ')
            FROM generate_series(1, x.indnkeyatts) AS at)
       FROM pg_catalog.pg_index x
       JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
       WHERE x.indrelid = $1::regclass AND NOT x.indisprimary ORDER BY i.relname`,
      [nameIn(schema, table)],
    );
    for (const [name, sql, keys] of indexes) {
      await session.rows(`DROP INDEX ${quoteName(schema)}.${quoteName(String(name))}`);
      dropped.push({ name: String(name), table, sql: String(sql), keys: String(keys) });
    }
  }
  return dropped;
}

/** @throws UnfitBackup with the reason why the rows do not fit the index; `file` is the backup */
async function makeIndex(session: Session, schema: string, index: DroppedIndex, file: string): Promise<void> {
  await session.rows('SAVEPOINT before_index');
  try {
    await session.rows(index.sql);
  } catch (error) {
    const state = error instanceof DatabaseFailed ? sqlState(error.cause) : undefined;
    if (state !== uniqueViolation && state !== programLimitExceeded) throw error;
    await session.rows('ROLLBACK TO SAVEPOINT before_index');
    const reason = await describeFault(session, schema, index, error as DatabaseFailed);
    throw new UnfitBackup(`${file} does not fit the index ${index.name}: ${reason}`, { cause: error });
  }
  await session.rows('RELEASE SAVEPOINT before_index');
}

const uniqueViolation = '23505';
const programLimitExceeded = '54000';

/** Describes equal rows by their value, and a value too long for the index by its row. */
async function describeFault(
  session: Session,
  schema: string,
  index: DroppedIndex,
  error: DatabaseFailed,
): Promise<string> {
  const { cause } = error;
  if (sqlState(cause) === uniqueViolation) {
    const detail = cause instanceof Error && 'detail' in cause ? cause.detail : undefined;
    return detail === undefined ? error.message : `${error.message}: ${String(detail)}`;
  }
  const [row] = await session.rows(
    `SELECT id FROM ${nameIn(schema, index.table)} ORDER BY octet_length(concat(${index.keys})) DESC LIMIT 1`,
  );
  return `${error.message}; the longest value is in row "${row?.[0]}" of ${index.table.name}`;
}

/* Sends the rows of a table in batches, reading ahead. Rejects values that PostgreSQL cannot store, while their row is known. */

const rowsPerBatchMax = 1000;
/** Characters of documents, without the one that crosses the limit. */
const charactersPerBatchMax = 4 * 1024 * 1024;

const bigintColumns: ReadonlySet<string> = new Set(['rev', 'created_at', 'updated_at', 'deleted_at']);

type RowsSource = {
  readonly session: Session;
  readonly source: StoreFile;
  /** The file's name in messages. */
  readonly file: string;
  readonly signal: AbortSignal;
};

type RowsTarget = {
  /** Quoted, with its schema. */
  readonly name: string;
  /** False drops search text; if the table is searched later, a row is found after its next write. */
  readonly searched: boolean;
};

/** @param onRows receives the number of rows in each batch that the server accepted */
async function insertRows(
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
  // Where the promise is awaited it is thrown, and the error of the restore itself is reported.
}
