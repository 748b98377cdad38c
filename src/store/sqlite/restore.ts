/**
 * Puts a file that holds a store into an empty data folder. It is copied and read through by a thread before it gets
 * the name that a server looks for, so that an interrupted restore leaves a folder as empty as it was. The
 * indexes are those of the file; the server that opens it makes what its configuration adds.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readFile } from '../backup-file/read-file.ts';
import { NotEmpty, type Restored } from '../backup-file/restored.ts';
import { type Copy, type OnProgress, startCopy } from '../backup-file/start-copy.ts';
import { workerFile } from '../worker-file.ts';
import { lockFolder } from './lock.ts';

export type RestoreData = { readonly from: string; readonly to: string };

/** Whatever of a store stands in the way of another. */
const storeFiles = ['comity.db', 'comity.db-wal', 'comity.db-journal'] as const;

/**
 * Starts the restore; progress is told in pages.
 * @param folder made when missing
 * @param file what `backup` of either store wrote
 * @throws UnfitBackup, NotEmpty, FolderInUse before anything is begun
 */
export function startRestore(
  folder: string,
  file: string,
  onProgress: OnProgress,
): { readonly done: Promise<Restored>; readonly stop: Copy['stop'] } {
  const found = readFile(file);
  const { rev, tables } = found;
  found.close();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(folder);
  try {
    const there = storeFiles.find((name) => existsSync(join(folder, name)));
    if (there !== undefined) throw new NotEmpty(`there is a store in ${folder} already (${there})`);
    const data: RestoreData = { from: file, to: join(folder, 'comity.db') };
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
