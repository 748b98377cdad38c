/** Backs up the store into one file for the embedded store (backup-file/file-format.ts): a thread reads one snapshot. Counts rows. */
import {
  type Copy,
  type CopyTarget,
  type OnProgress,
  startCopy,
  type WhenCopied,
} from '../backup-file/write-file.ts';
import { workerFile } from '../worker-file.ts';
import { addressOf, describe } from './connection/address.ts';
import { SchemaTooNew } from './postgres-failure.ts';
import { inspectSchema } from './schema/inspect.ts';
import { schemaNumber } from './schema/schema-plan.ts';
import { inTransaction, openSession, type Session } from './schema/session.ts';

/** Has the URL, because the password of an `Address` is not sent to threads. */
export type BackupData = StorePlace & CopyTarget;

/** Starts the copy; a file named `to` appears only when the copy is complete. */
export function startBackup(
  source: StorePlace,
  to: string,
  onProgress: OnProgress,
  whenCopied?: WhenCopied,
): Copy {
  const { url, schema, connectTimeoutMs } = source;
  const data: BackupData = { url, schema, connectTimeoutMs, to };
  return startCopy(workerFile('./postgres-backup-thread', import.meta.url), data, onProgress, whenCopied);
}

/* Checks that a schema holds a store that this version can read, for backups and restores. */

class NoStore extends Error {
  override readonly name = 'NoStore';
  readonly code = 'store_missing';
}

export type StorePlace = {
  readonly url: string;
  readonly schema: string;
  readonly connectTimeoutMs: number;
};

/** The origin of backups (backup-file/file-format.ts). */
export function originOf({ url, schema }: Pick<StorePlace, 'url' | 'schema'>): string {
  return `${describe(addressOf(url))} ${schema}`;
}

/** @throws NoStore, SchemaTooNew, DatabaseFailed, TypeError (an invalid URL) */
export async function findStore({ url, schema, connectTimeoutMs }: StorePlace): Promise<void> {
  const address = addressOf(url);
  const session = await openSession(address, 'comity backup', connectTimeoutMs);
  try {
    const { migrations } = await inspectSchema(session, schema);
    const number = Math.max(0, ...migrations);
    if (number === 0)
      throw new NoStore(`there is no store in the schema "${schema}" of ${describe(address)}`);
    if (number > schemaNumber) throw new SchemaTooNew(schema, number, schemaNumber);
  } finally {
    await session.end();
  }
}

/** A setting that the server does not know is left out. */
const bounds = ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'] as const;

/** Runs a transaction without the server's time limits, for backups and restores. @param mode text after BEGIN */
export function inLongTransaction<T>(session: Session, mode: string, work: () => Promise<T>): Promise<T> {
  return inTransaction(session, mode, async () => {
    // Only for this transaction (`true`), so that a pooler passes the session on unchanged.
    await session.rows(
      `SELECT set_config(name, '0', true) FROM pg_catalog.pg_settings
       WHERE name IN (${bounds.map((name) => `'${name}'`).join(', ')})`,
    );
    return work();
  });
}
