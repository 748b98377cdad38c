/** Backs up the store into one file for the embedded store (backup-file/layout.ts): a thread reads one snapshot. Counts rows. */
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';
import type { StorePlace } from './find-store.ts';

/** Has the URL, because the password of an `Address` is not sent to threads. */
export type BackupData = StorePlace & { readonly to: string };

/** Starts the copy; a file named `to` appears only when the copy is complete. */
export function startBackup(source: StorePlace, to: string, onProgress: OnProgress): Copy {
  const { url, schema, connectTimeoutMs } = source;
  const data: BackupData = { url, schema, connectTimeoutMs, to };
  return startCopy(workerFile('./postgres-backup-thread', import.meta.url), data, onProgress);
}
