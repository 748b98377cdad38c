/**
 * A connection for inspecting and changing the schema: statements one after the other, each awaited. Unlike the connections for requests it
 * does not reconnect, because its state (a transaction, the lock of session.ts) would be silently lost.
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client, QueryArrayConfig } from 'pg';
import type { Address } from '../connection/address.ts';
import { openClient } from '../connection/client.ts';
import type { Cell, Rows } from '../connection/connection.ts';
import { DatabaseFailed, SchemaBusy, sqlState } from '../postgres-failure.ts';

export type Session = {
  /** @throws DatabaseFailed around the server's error */
  readonly rows: (sql: string, values?: readonly Cell[]) => Promise<Rows>;
  /** True if the responding server process is the one connected to: behind a pooler the process number differs. */
  readonly isDirect: () => Promise<boolean>;
  /** The server's process. */
  readonly processNumber: number;
  readonly end: () => Promise<void>;
};

export type SessionBounds = {
  /** Timeout of a statement, after which the connection is cut. Default 30 s. */
  readonly answerTimeoutMs?: number;
  /**
   * Statements may take any time, such as the build of an index: the connection is cut only if the server does not answer another one
   * either, which is asked each time that `answerTimeoutMs` have passed.
   */
  readonly isLong?: boolean;
};

const answerTimeoutMsDefault = 30_000;
const closeTimeoutMs = 1000;

/** @throws DatabaseFailed */
export async function openSession(
  address: Address,
  name: string,
  connectTimeoutMs: number,
  { answerTimeoutMs = answerTimeoutMsDefault, isLong = false }: SessionBounds = {},
): Promise<Session> {
  const client = await openClient(address, name, connectTimeoutMs).catch((error: unknown) => {
    throw new DatabaseFailed(error);
  });
  // `pg` has this from the start of the connection, but does not declare it.
  const { processID: processNumber } = client as unknown as { readonly processID: number };
  const isAlive = isLong ? () => answers(address, name, connectTimeoutMs) : async () => false;
  const rows = (sql: string, values: readonly Cell[] = []): Promise<Rows> =>
    send(client, { text: sql, values: [...values], rowMode: 'array' }, { answerTimeoutMs, isAlive });
  return {
    rows,
    isDirect: async () => (await rows('SELECT pg_backend_pid()'))[0]?.[0] === processNumber,
    processNumber,
    end: () => endSession(client),
  };
}

/** Runs the work in a transaction; rolls back and rethrows if it throws. @param mode text after BEGIN, such as `READ ONLY` */
export async function inTransaction<T>(session: Session, mode: string, work: () => Promise<T>): Promise<T> {
  await session.rows(`BEGIN ${mode}`);
  try {
    const result = await work();
    await session.rows('COMMIT');
    return result;
  } catch (error) {
    // The server rolls back if the connection broke.
    await session.rows('ROLLBACK').catch(ignore);
    throw error;
  }
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

type Patience = { readonly answerTimeoutMs: number; readonly isAlive: () => Promise<boolean> };

async function send(
  client: Client,
  query: QueryArrayConfig,
  { answerTimeoutMs, isAlive }: Patience,
): Promise<Rows> {
  let isOver = false;
  let isLate = false;
  const look = async (): Promise<void> => {
    const goesOn = await isAlive();
    if (isOver) return;
    if (goesOn) {
      timer = setTimeout(look, answerTimeoutMs);
      return;
    }
    isLate = true;
    client.connection.stream.destroy();
  };
  let timer = setTimeout(look, answerTimeoutMs);
  try {
    return (await client.query<Cell[]>(query)).rows;
  } catch (error) {
    const late = `no reply within ${answerTimeoutMs} ms`;
    throw new DatabaseFailed(isLate ? new Error(late, { cause: error }) : error);
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}

/** True if the server says anything to another client, even that it takes no more. */
async function answers(address: Address, name: string, connectTimeoutMs: number): Promise<boolean> {
  try {
    await endSession(await openClient(address, name, connectTimeoutMs));
    return true;
  } catch (error) {
    return sqlState(error) !== undefined;
  }
}

async function endSession(client: Client): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), closeTimeoutMs);
  await client.end().catch(ignore);
  clearTimeout(timer);
}

function ignore(): void {
  // The session ends in any case.
}

/*
 * The lock for changing a schema: an advisory lock of PostgreSQL, which the server releases when its holder dies.
 * The program polls for it instead of waiting in the server. A waiting statement holds a snapshot, and the holder's CREATE INDEX
 * CONCURRENTLY waits for every older snapshot: the two would deadlock.
 * A migration holds it by its session, since its steps are many transactions. That fails through a pooler in transaction mode, where
 * statements use any free session: another client's session would hold the lock and never release it. The first creation of a schema is one
 * transaction that holds the lock itself, which works through any pooler.
 */

const pollMs = 100;

/**
 * Takes the schema's lock for the rest of the session.
 * @param onWaiting called once if another process holds it
 * @throws SchemaBusy after `waitMs`
 */
export async function lockSchema(
  session: Session,
  schema: string,
  waitMs: number,
  onWaiting: () => void,
): Promise<void> {
  const endsAt = performance.now() + waitMs;
  for (let told = false; !(await tryLock(session, 'pg_try_advisory_lock', schema)); told = true) {
    if (!told) onWaiting();
    if (performance.now() >= endsAt) {
      throw new SchemaBusy(
        `another process migrates the schema "${schema}" and did not end within ${waitMs} ms`,
      );
    }
    await pause(pollMs);
  }
}

/** Takes the lock for the rest of the transaction, if it is free. */
export function tryLockInTransaction(session: Session, schema: string): Promise<boolean> {
  return tryLock(session, 'pg_try_advisory_xact_lock', schema);
}

async function tryLock(session: Session, call: string, schema: string): Promise<boolean> {
  const [row] = await session.rows(`SELECT ${call}($1::bigint)`, [lockNumber(schema)]);
  return row?.[0] === true;
}

/** The lock's number: 64 bits of a digest, to avoid the numbers of other programs in the database. */
function lockNumber(schema: string): string {
  return BigInt.asIntN(
    64,
    BigInt(`0x${hash('sha256', `comity schema ${schema}`, 'hex').slice(0, 16)}`),
  ).toString();
}
