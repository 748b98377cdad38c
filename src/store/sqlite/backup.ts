/**
 * Copies the database while it serves: a thread of its own copies pages from one snapshot. Progress is told in pages.
 */
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';

export type BackupData = { readonly from: string; readonly to: string };

/** Starts the copy of the file `from`; nothing stands under the name `to` before it is whole. */
export function startBackup(from: string, to: string, onProgress: OnProgress): Copy {
  const data: BackupData = { from, to };
  return startCopy(workerFile('./backup-thread', import.meta.url), data, onProgress);
}
