/**
 * One process per folder. The lock is SQLite's own exclusive lock on a file that holds nothing else: the kernel
 * drops it when its holder dies, however it dies, so there is no stale lock to clear and no pid to guess about.
 */
import { closeSync, openSync } from 'node:fs';
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
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (isBusy(error))
      throw new FolderInUse(`the folder ${folder} is in use by another process`, { cause: error });
    throw error;
  }
  return () => database.close();
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}
