/** Backs up the database while it serves: a thread copies the pages of one snapshot. Progress counts pages. */
import { DatabaseSync } from 'node:sqlite';
import { identify } from '../backup-file/migrate.ts';
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';
import { convertDamage } from './integrity.ts';

export type BackupData = { readonly from: string; readonly to: string };

/** Looks at the file beside its servers. @throws UnknownDatabase, DamagedStore */
export function identifyFile(path: string): void {
  convertDamage(path, () => {
    const database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    try {
      identify(database, path);
    } finally {
      database.close();
    }
  });
}

/** Starts the copy of `from`; a file named `to` appears only when the copy is complete. */
export function startBackup(from: string, to: string, onProgress: OnProgress): Copy {
  const data: BackupData = { from, to };
  return startCopy(workerFile('./sqlite-backup-thread', import.meta.url), data, onProgress);
}
