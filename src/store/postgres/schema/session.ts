/**
 * One connection of its own for looking at the schema and changing it: statements one after the other, each awaited. Unlike the
 * connections that serve requests it is not made anew when it breaks, because what it holds (a transaction, the lock of
 * lock.ts) would be gone without a word.
 */
import type { Client, QueryArrayConfig } from 'pg';
import type { Address } from '../connection/address.ts';
import { openClient } from '../connection/client.ts';
import type { Cell, Rows } from '../connection/connection.ts';
import { DatabaseFailed } from './failure.ts';

export type Session = {
  /** @throws DatabaseFailed around the server's error */
  readonly rows: (sql: string, values?: readonly Cell[]) => Promise<Rows>;
  /** Whether the server that answers is the one that was connected to: behind a pooler the process number differs. */
  readonly isDirect: () => Promise<boolean>;
  /** The server's process. */
  readonly processNumber: number;
  readonly end: () => Promise<void>;
};

/** Time for the server to take leave. */
const farewellMs = 1000;

/**
 * @param answerTimeoutMs time for the answer to a statement, after which the connection is cut; without it any time
 * @throws DatabaseFailed around what came in the way
 */
export async function openSession(
  address: Address,
  name: string,
  connectTimeoutMs: number,
  answerTimeoutMs?: number,
): Promise<Session> {
  const client = await openClient(address, name, connectTimeoutMs).catch((error: unknown) => {
    throw new DatabaseFailed(error);
  });
  // pg keeps what the server told at the start, and does not declare it.
  const { processID: processNumber } = client as unknown as { readonly processID: number };
  const rows = (sql: string, values: readonly Cell[] = []): Promise<Rows> =>
    send(client, { text: sql, values: [...values], rowMode: 'array' }, answerTimeoutMs);
  return {
    rows,
    isDirect: async () => (await rows('SELECT pg_backend_pid()'))[0]?.[0] === processNumber,
    processNumber,
    end: () => takeLeave(client),
  };
}

/**
 * Runs the work in a transaction. What the work throws is thrown once the transaction is rolled back.
 * @param mode what follows BEGIN, such as `READ ONLY`
 */
export async function inTransaction<T>(session: Session, mode: string, work: () => Promise<T>): Promise<T> {
  await session.rows(`BEGIN ${mode}`);
  try {
    const result = await work();
    await session.rows('COMMIT');
    return result;
  } catch (error) {
    // A connection that broke has rolled back by itself.
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
    throw new DatabaseFailed(
      isLate ? new Error(`no answer within ${timeoutMs} ms`, { cause: error }) : error,
    );
  } finally {
    clearTimeout(timer);
  }
}

async function takeLeave(client: Client): Promise<void> {
  const impatience = setTimeout(() => client.connection.stream.destroy(), farewellMs);
  await client.end().catch(ignore);
  clearTimeout(impatience);
}

function ignore(): void {
  // It is over either way.
}
