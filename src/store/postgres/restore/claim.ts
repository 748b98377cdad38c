/**
 * A schema for oneself, for as long as a transaction lasts, if it is empty: the lock of migrations, and the one that every commit
 * takes (row 0 of the counters), so that nothing is written beside the restore.
 */
import { NotEmpty, StoreInUse } from '../../backup-file/restored.ts';
import { quoteName } from '../../quote-name.ts';
import { tryLockInTransaction } from '../schema/lock.ts';
import type { Session } from '../schema/session.ts';
import { nameIn, type StandingTable, standingTables } from '../standing-tables.ts';

export type Claim = {
  readonly schema: string;
  /** What the schema is called in messages. */
  readonly place: string;
  /** How long another process may hold what is claimed. */
  readonly lockTimeoutMs: number;
};

/**
 * @returns the tables that stand, each of them empty
 * @throws StoreInUse, NotEmpty, DatabaseFailed with SQLSTATE 55P03 when others hold a lock for too long
 */
export async function claimEmpty(
  session: Session,
  { schema, place, lockTimeoutMs }: Claim,
): Promise<readonly StandingTable[]> {
  if (!(await tryLockInTransaction(session, schema))) {
    throw new StoreInUse(`another process migrates ${place} or restores into it; wait for its end`);
  }
  await session.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
  await session.rows(`SELECT rev FROM ${quoteName(schema)}.comity_counters WHERE n = 0 FOR UPDATE`);
  const { tables } = await standingTables(session, schema);
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
