/** Backups and restores of the embedded store. A backup is made while it serves: a thread copies the pages of one snapshot. Progress counts pages. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  type BeforeRestore,
  folderOrigin,
  identify,
  type RowToSet,
  type SetRow,
} from '../backup-file/file-format.ts';
import { NotEmpty, type Restored, readFile } from '../backup-file/read-file.ts';
import {
  type Copy,
  type CopyTarget,
  type OnProgress,
  startCopy,
  type WhenCopied,
} from '../backup-file/write-file.ts';
import { StoreUnavailable } from '../store.ts';
import { workerFile } from '../worker-file.ts';
import { lockFolder } from './home.ts';
import { convertDamage } from './home-state.ts';

export type CopyTask = CopyTarget & { readonly from: string } & (
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
export function startBackup(from: string, to: string, onProgress: OnProgress, whenCopied?: WhenCopied): Copy {
  return start({ makes: 'backup', from, to }, onProgress, whenCopied);
}

function start(task: CopyTask, onProgress: OnProgress, whenCopied?: WhenCopied): Copy {
  return startCopy(workerFile('./copy-thread', import.meta.url), task, onProgress, whenCopied);
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
 * @param before called when the folder is locked and empty, before the restore starts
 * @throws UnfitBackup, NotEmpty, FolderInUse before the restore starts
 */
export function startRestore(
  folder: string,
  file: string,
  onProgress: OnProgress,
  rowToSet?: RowToSet,
  before?: BeforeRestore,
): { readonly done: Promise<Restored>; readonly stop: Copy['stop'] } {
  const found = readFile(file);
  const { rev, tables, origin } = found;
  found.close();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(folder);
  try {
    const there = storeFiles.find((name) => existsSync(join(folder, name)));
    if (there !== undefined) throw new NotEmpty(`the folder ${folder} already holds a store (${there})`);
    const isSameStore = origin === folderOrigin(folder);
    const set = rowToSet?.(isSameStore);
    const to = join(folder, 'comity.db');
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    let copy: Copy | undefined;
    let isStopped = false;
    const run = async (): Promise<Restored> => {
      await before?.(isSameStore);
      if (isStopped) throw new StoreUnavailable(`cannot write ${to}: it was stopped`);
      copy = start({ makes: 'store', from: file, to, set }, onProgress);
      await copy.done;
      return { rows, tables: tables.length, rev };
    };
    return {
      done: run().finally(release),
      async stop() {
        isStopped = true;
        await copy?.stop();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}
