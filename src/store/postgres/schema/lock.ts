/**
 * One process at a time changes a schema: an advisory lock of PostgreSQL, which is let go by itself when its holder dies.
 *
 * It is asked for again and again instead of waited for in the server. A waiting statement holds a snapshot, and CREATE INDEX
 * CONCURRENTLY of the holder waits for every older snapshot: each would wait for the other for ever.
 *
 * A migration holds it by its session, since its steps are many transactions. That does not work through a pooler in
 * transaction mode: statements meet whichever session is free, so the lock would be held by a session that others use too,
 * and could not be let go. The first making of a schema is one transaction and holds the same lock by that, which works
 * through any pooler.
 */
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { SchemaBusy } from './failure.ts';
import type { Session } from './session.ts';

const askAgainMs = 100;

/**
 * Takes the lock of the schema for as long as the session lasts.
 * @param onWaiting called once when another has it
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
    await pause(askAgainMs);
  }
}

/** Takes the lock for as long as the transaction lasts, if no other has it. */
export function tryLockInTransaction(session: Session, schema: string): Promise<boolean> {
  return tryLock(session, 'pg_try_advisory_xact_lock', schema);
}

async function tryLock(session: Session, call: string, schema: string): Promise<boolean> {
  const [row] = await session.rows(`SELECT ${call}($1::bigint)`, [lockNumber(schema)]);
  return row?.[0] === true;
}

/** Advisory locks are known by a number only, in one database: 64 bits of a digest keep out of everybody's way. */
function lockNumber(schema: string): string {
  return BigInt.asIntN(
    64,
    BigInt(`0x${hash('sha256', `comity schema ${schema}`, 'hex').slice(0, 16)}`),
  ).toString();
}
