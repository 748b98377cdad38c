/**
 * Copies the store into one file that the embedded store opens as its own (backup-file/layout.ts), while any number of processes go on
 * writing: a thread of its own reads one snapshot over a connection of its own. Progress is told in rows.
 */
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';
import type { StorePlace } from './find-store.ts';

/** The place comes with its URL, since the password of an `Address` crosses to no thread. */
export type BackupData = StorePlace & { readonly to: string };

/** Starts the copy; nothing stands under the name `to` before it is whole. */
export function startBackup(source: StorePlace, to: string, onProgress: OnProgress): Copy {
  const { url, schema, connectTimeoutMs } = source;
  const data: BackupData = { url, schema, connectTimeoutMs, to };
  return startCopy(workerFile('./backup-thread', import.meta.url), data, onProgress);
}
