/**
 * The lock for changing a schema: an advisory lock of PostgreSQL, which the server releases when its holder dies.
 * The program polls for it instead of waiting in the server. A waiting statement holds a snapshot, and the holder's CREATE INDEX
 * CONCURRENTLY waits for every older snapshot: the two would deadlock.
 * A migration holds it by its session, since its steps are many transactions. That fails through a pooler in transaction mode, where
 * statements use any free session: another client's session would hold the lock and never release it. The first creation of a schema is one
 * transaction that holds the lock itself, which works through any pooler.
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { SchemaBusy } from './schema-failure.ts';
import type { Session } from './session.ts';

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
