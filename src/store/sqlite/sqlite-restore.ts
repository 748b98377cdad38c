/**
 * Restores a file with a store into an empty data folder. A thread copies and checks it before it gets the name that a server opens, so an
 * interrupted restore leaves the folder as empty as before. The indexes are those of the file; the server that opens it adds those of its
 * configuration.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { folderOrigin, type RowToSet, type SetRow } from '../backup-file/origin.ts';
import { NotEmpty, type Restored, readFile } from '../backup-file/read-file.ts';

import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';
import { lockFolder } from './lock.ts';

export type RestoreData = { readonly from: string; readonly to: string; readonly set: SetRow | undefined };

/** Files of a store that a restore must not replace. */
const storeFiles = ['comity.db', 'comity.db-wal', 'comity.db-journal'] as const;

/**
 * @param folder created if missing
 * @param file written by `backup` of either store
 * @throws UnfitBackup, NotEmpty, FolderInUse before the restore starts
 */
export function startRestore(
  folder: string,
  file: string,
  onProgress: OnProgress,
  rowToSet?: RowToSet,
): { readonly done: Promise<Restored>; readonly stop: Copy['stop'] } {
  const found = readFile(file);
  const { rev, tables, origin } = found;
  found.close();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(folder);
  try {
    const there = storeFiles.find((name) => existsSync(join(folder, name)));
    if (there !== undefined) throw new NotEmpty(`the folder ${folder} already holds a store (${there})`);
    const set = rowToSet?.(origin === folderOrigin(folder));
    const data: RestoreData = { from: file, to: join(folder, 'comity.db'), set };
    const copy = startCopy(workerFile('./restore-thread', import.meta.url), data, onProgress);
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    return {
      done: copy.done.then(() => ({ rows, tables: tables.length, rev })).finally(release),
      stop: copy.stop,
    };
  } catch (error) {
    release();
    throw error;
  }
}
