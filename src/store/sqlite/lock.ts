/** Locks a folder for one process by SQLite's exclusive lock on a file, which the kernel releases when its holder dies. */
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
  readonly code = 'store_folder_in_use';
}

/** @returns a function that releases the folder @throws FolderInUse if another store holds it, in this process or another */
export function lockFolder(folder: string): () => void {
  const path = join(folder, 'comity.lock');
  const isNew = !existsSync(path);
  // Only for a new file: closing any descriptor of a file drops the process's locks on it (fcntl(2)), including those of another store in
  // this process.
  if (isNew) closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (isBusy(error))
      throw new FolderInUse(`the folder ${folder} is in use by another process`, { cause: error });
    throw error;
  }
  try {
    if (isNew) refuseOpenDatabase(folder);
  } catch (error) {
    database.close();
    throw error;
  }
  return () => database.close();
}

/** If the lock file was removed under a running process, its connections to the database still reveal it. */
function refuseOpenDatabase(folder: string): void {
  const path = join(folder, 'comity.db');
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; SELECT count(*) FROM sqlite_schema');
  } catch (error) {
    if (!isBusy(error)) return; // What else is wrong with the file is found where it is opened.
    const message = `the folder ${folder} is in use by another process, whose file comity.lock was removed`;
    throw new FolderInUse(message, { cause: error });
  } finally {
    database.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}
