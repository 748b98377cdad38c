/** Backs up the database while it serves: a thread copies the pages of one snapshot. Progress counts pages. */
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';

export type BackupData = { readonly from: string; readonly to: string };

/** Starts the copy of `from`; a file named `to` appears only when the copy is complete. */
export function startBackup(from: string, to: string, onProgress: OnProgress): Copy {
  const data: BackupData = { from, to };
  return startCopy(workerFile('./sqlite-backup-thread', import.meta.url), data, onProgress);
}
