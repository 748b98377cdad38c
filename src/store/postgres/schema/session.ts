/**
 * A connection for inspecting and changing the schema: statements one after the other, each awaited. Unlike the connections for requests it
 * does not reconnect, because its state (a transaction, the lock of lock.ts) would be silently lost.
 */
import type { Client, QueryArrayConfig } from 'pg';
import type { Address } from '../connection/address.ts';
import { openClient } from '../connection/client.ts';
import type { Cell, Rows } from '../connection/connection.ts';
import { DatabaseFailed } from './schema-failure.ts';

export type Session = {
  /** @throws DatabaseFailed around the server's error */
  readonly rows: (sql: string, values?: readonly Cell[]) => Promise<Rows>;
  /** True if the responding server process is the one connected to: behind a pooler the process number differs. */
  readonly isDirect: () => Promise<boolean>;
  /** The server's process. */
  readonly processNumber: number;
  readonly end: () => Promise<void>;
};

const closeTimeoutMs = 1000;

/** @param answerTimeoutMs timeout of a statement, after which the connection is cut; default: none @throws DatabaseFailed */
export async function openSession(
  address: Address,
  name: string,
  connectTimeoutMs: number,
  answerTimeoutMs?: number,
): Promise<Session> {
  const client = await openClient(address, name, connectTimeoutMs).catch((error: unknown) => {
    throw new DatabaseFailed(error);
  });
  // `pg` has this from the start of the connection, but does not declare it.
  const { processID: processNumber } = client as unknown as { readonly processID: number };
  const rows = (sql: string, values: readonly Cell[] = []): Promise<Rows> =>
    send(client, { text: sql, values: [...values], rowMode: 'array' }, answerTimeoutMs);
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

async function send(client: Client, query: QueryArrayConfig, timeoutMs: number | undefined): Promise<Rows> {
  let isLate = false;
  const cut = (): void => {
    isLate = true;
    client.connection.stream.destroy();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(cut, timeoutMs);
  try {
    return (await client.query<Cell[]>(query)).rows;
  } catch (error) {
    throw new DatabaseFailed(isLate ? new Error(`no reply within ${timeoutMs} ms`, { cause: error }) : error);
  } finally {
    clearTimeout(timer);
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
