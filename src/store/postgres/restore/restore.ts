/**
 * Brings a file that holds a store into an empty schema, in one transaction: until it is committed nobody sees a row, and
 * whatever ends it early leaves the schema as it was. Nothing is written beside it (claim.ts); readers of a server
 * that runs wait.
 *
 * Rows keep their ids, revisions and times, and the counters go on from those of the file, so entity tags, cursors and positions
 * in the event log that clients hold stay good. Indexes are made after the rows: 10^5 rows with five of them took 3.1 s,
 * and 4.6 s with the indexes there from the start (two cores, fsync on; COPY was no faster than unnest).
 */
import type { Observe } from '../../../observe/observation.ts';
import { readFile, type StoredTable, type StoreFile, UnfitBackup } from '../../backup-file/read-file.ts';
import { type Restored, StoreInUse } from '../../backup-file/restored.ts';
import { quoteName } from '../../quote-name.ts';
import type { Table } from '../../store.ts';
import { eventsTable } from '../../store.ts';
import { addressOf, describe } from '../connection/address.ts';
import { sqlState } from '../connection/failure.ts';
import type { StorePlace } from '../find-store.ts';
import { inLongTransaction } from '../long-transaction.ts';
import { DatabaseFailed } from '../schema/failure.ts';
import { openSchema } from '../schema/open-schema.ts';
import { openSession, type Session } from '../schema/session.ts';
import { nameIn, standingTables } from '../standing-tables.ts';
import { arrayLiteral } from './array-literal.ts';
import { cancelOnAbort } from './cancel-on-abort.ts';
import { claimEmpty } from './claim.ts';
import { type DroppedIndex, dropIndexes, makeIndex } from './indexes.ts';
import { insertRows } from './rows.ts';

/** The schema is made when it is missing. */
export type RestoreTarget = StorePlace & {
  /** What the configuration declares; the file may hold rows of no other. */
  readonly tables: readonly Table[];
  readonly observe: Observe;
  /** Version of the program, kept with the schema when it is made. */
  readonly program: string;
  /** Time that another process may hold what a restore needs. Default 10 s. */
  readonly lockTimeoutMs?: number;
};

/** What is counted: rows first, then the indexes over them. */
export type OnRestore = (what: 'rows' | 'indexes', done: number, total: number) => void;

const lockNotAvailable = '55P03';

/**
 * Resolves when all is committed.
 * @param signal ends it early: the statement under way is cancelled, and nothing of the restore stays
 * @throws UnfitBackup, NotEmpty, StoreInUse, what openSchema throws, DatabaseFailed, the signal's reason
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
    const session = await openSession(address, 'comity restore', target.connectTimeoutMs);
    const place = `the schema "${target.schema}" of ${describe(address)}`;
    const { schema, lockTimeoutMs = 10_000 } = target;
    const run: Run = { session, source, held, file, schema, place, lockTimeoutMs, onProgress, signal };
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
};

async function restoreAll(run: Run): Promise<void> {
  const { session, source, held, schema, signal } = run;
  const standing = await claimEmpty(session, run);
  const indexes = await dropIndexes(session, schema, held);
  const total = totalOf(held);
  let done = 0;
  for (const table of held) {
    const searched = standing.some((stands) => stands.searched && stands.name === table.name);
    const to = { name: nameIn(schema, table), searched };
    await insertRows({ session, source, file: run.file, signal }, table, to, (rows) => {
      done += rows;
      run.onProgress('rows', done, total);
    });
  }
  await makeIndexes(run, indexes);
  await count(run);
  await verify(run);
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

/** Revisions go on from where the file's ended; what the schema counted before may be higher, and is never used again. */
async function count({ session, source, schema }: Run): Promise<void> {
  const counted = [{ name: '', rev: source.rev }, ...source.tables];
  await session.rows(
    `UPDATE ${quoteName(schema)}.comity_counters AS counter SET rev = greatest(counter.rev, given.rev)
     FROM unnest($1::text[], $2::bigint[]) AS given (name, rev) WHERE counter.name = given.name`,
    [arrayLiteral(counted.map(({ name }) => name)), arrayLiteral(counted.map(({ rev }) => rev))],
  );
}

/** What is about to be committed is what the file holds. */
async function verify({ session, source, held, schema, file }: Run): Promise<void> {
  for (const table of held) {
    const [row] = await session.rows(`SELECT count(*) FROM ${nameIn(schema, table)}`);
    if (Number(row?.[0]) === table.rows) continue;
    throw new UnfitBackup(`${file} holds ${table.rows} rows of ${table.name}, of which ${row?.[0]} arrived`);
  }
  const { rev } = await standingTables(session, schema);
  if (rev < source.rev) throw new UnfitBackup(`${file} is at revision ${source.rev}, the schema at ${rev}`);
}

function reasonOf(error: unknown, { signal, place }: Run): unknown {
  // The statement that was cancelled failed with an error of its own.
  if (signal.aborted) return signal.reason;
  if (error instanceof DatabaseFailed && sqlState(error.cause) === lockNotAvailable) {
    return new StoreInUse(`${place} is in use; stop every server on it`, { cause: error });
  }
  return error;
}

function totalOf(tables: readonly StoredTable[]): number {
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}
