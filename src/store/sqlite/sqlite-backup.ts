/** Backups and restores of the embedded store. A backup is made while it serves: a thread copies the pages of one snapshot. Progress counts pages. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { folderOrigin, identify, type RowToSet, type SetRow } from '../backup-file/file-format.ts';
import { NotEmpty, type Restored, readFile } from '../backup-file/read-file.ts';
import { type Copy, type OnProgress, startCopy } from '../backup-file/write-file.ts';
import { workerFile } from '../worker-file.ts';
import { lockFolder } from './home.ts';
import { convertDamage } from './home-state.ts';

export type CopyTask = { readonly from: string; readonly to: string } & (
  | { readonly makes: 'backup' }
  | { readonly makes: 'store'; readonly set: SetRow | undefined }
);

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
  return start({ makes: 'backup', from, to }, onProgress);
}

function start(task: CopyTask, onProgress: OnProgress): Copy {
  return startCopy(workerFile('./copy-thread', import.meta.url), task, onProgress);
}

/*
 * Restores a file with a store into an empty data folder. A thread copies and checks it before it gets the name that a server opens, so an
 * interrupted restore leaves the folder as empty as before. The indexes are those of the file; the server that opens it adds those of its
 * configuration.
 */

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
    const to = join(folder, 'comity.db');
    const copy = start({ makes: 'store', from: file, to, set }, onProgress);
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
