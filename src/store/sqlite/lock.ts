/**
 * One process per folder. The lock is SQLite's own exclusive lock on a file that holds nothing else: the kernel
 * drops it when its holder dies, however it dies, so there is no stale lock to clear and no pid to guess about.
 */
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Thrown when another store has the folder open. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
  readonly code = 'store_folder_in_use';
}

/**
 * Takes the folder for this store.
 * @returns the way to release it
 * @throws FolderInUse when another store holds it, in this process or another
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, 'comity.lock');
  const isNew = !existsSync(path);
  // Only then: a process that closes any descriptor of a file drops its locks on it (fcntl(2)), those of another store of this process too.
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

/** A lock file that was removed under a running process keeps nobody out: then the connections to the database do. */
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
