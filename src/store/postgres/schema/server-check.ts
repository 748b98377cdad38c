/** Whether the server can be the store at all: its version, its encoding, and that it takes writes. Asks nothing of the schema. */
import { UnfitServer } from './failure.ts';
import type { Session } from './session.ts';

/** The least version with every function that statements use, and still kept by its makers. */
const leastVersion = 14;

export type ServerFacts = {
  /** As the server writes it: `18.4`. */
  readonly version: string;
  readonly user: string;
  readonly database: string;
};

/** @throws UnfitServer, DatabaseFailed */
export async function checkServer(session: Session): Promise<ServerFacts> {
  const [row] = await session.rows(factsSql);
  const [versionNumber, version, encoding, isStandby, readOnly, user, database] = row ?? [];
  if (Number(versionNumber) < leastVersion * 10_000) {
    throw new UnfitServer(
      'version',
      `the server is PostgreSQL ${version}, and ${leastVersion} is the least that serves`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new UnfitServer(
      'encoding',
      `the database has the encoding ${encoding}; make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (isStandby === true) {
    throw new UnfitServer('standby', 'the server is a standby, which takes no writes; name the primary');
  }
  if (readOnly === 'on') {
    throw new UnfitServer(
      'read-only',
      `transactions of ${user} are read-only here (default_transaction_read_only is on); turn that off for this user and database`,
    );
  }
  return { version: String(version), user: String(user), database: String(database) };
}

const factsSql = `
SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding'),
  pg_catalog.pg_is_in_recovery(), current_setting('transaction_read_only'), current_user::text, current_database()::text`;
