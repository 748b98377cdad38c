/**
 * A transaction that takes as long as it takes: backups and restores. The bounds that a server may set on statements and
 * transactions are for those that serve requests.
 */
import { inTransaction, type Session } from './schema/session.ts';

/** Each is left alone where the server does not know it. */
const bounds = ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'] as const;

/** @param mode what follows BEGIN, such as `READ ONLY` */
export function inLongTransaction<T>(session: Session, mode: string, work: () => Promise<T>): Promise<T> {
  return inTransaction(session, mode, async () => {
    // For this transaction alone (`true`), so that behind a pooler the session is handed on as it was.
    await session.rows(
      `SELECT set_config(name, '0', true) FROM pg_catalog.pg_settings
       WHERE name IN (${bounds.map((name) => `'${name}'`).join(', ')})`,
    );
    return work();
  });
}
