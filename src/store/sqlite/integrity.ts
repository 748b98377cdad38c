/**
 * Damage of the database file: found at the start within a bound on size, found in operation by what SQLite says of a page, and then refused.
 * A damaged page can look like one with fewer rows, so a store that is known to be damaged answers nothing.
 *
 * SQLite's own checksums of pages need its checksum VFS, which Node's build does not have.
 */
import { existsSync, statfsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import type { StorageFault } from '../store.ts';
import { faultOf, messageOf, unavailable } from './failure.ts';

/** Thrown at the start for a file that SQLite finds damaged, or that is no database any more. */
export class DamagedStore extends Error {
  override readonly name = 'DamagedStore';
  readonly code = 'store_damaged';

  constructor(path: string, fault: string, cause?: unknown) {
    const advice =
      'keep a copy of the folder, restore the last backup into another one with "comity restore", and start on that';
    super(`the store ${path} is damaged (${fault}): ${advice}`, { cause });
  }
}

/** What the store knows of damage while it is open. */
export type Damage = {
  /** @throws StoreUnavailable once damage is known */
  refuse(): void;
  /** Records a fault if it is damage, and reports the first. */
  note(fault: StorageFault | undefined, message: string): void;
};

export function createDamage(path: string, observe: Observe): Damage {
  let found: DamagedStore | undefined;
  return {
    refuse() {
      if (found !== undefined) throw unavailable(found.message, found, 'storage_damaged');
    },
    note(fault, message) {
      if (found !== undefined || fault !== 'storage_damaged') return;
      found = new DamagedStore(path, message);
      observe({ kind: 'store-failed', what: 'reading: the database file is damaged', error: found });
    },
  };
}

/**
 * Refuses a file without content, and a log without its file: opened by SQLite, both would be a store without rows.
 * @throws DamagedStore
 */
export function refuseEmptyFile(path: string): void {
  if (existsSync(path)) {
    if (statSync(path).size === 0) throw new DamagedStore(path, 'the file is empty');
    return;
  }
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if ((log?.size ?? 0) > 0) throw new DamagedStore(path, 'the file is gone, and its log is still there');
}

/** What must be free for a start, and for a store that was full to count as ready: a page or two fit where nothing else does. */
const freeBytesLeast = 1_048_576;
/** SQLITE_FULL. */
const fullCode = 13;

/** @throws Error with the code that SQLite has for a full disk */
export function refuseFullDisk(folder: string): void {
  const { bavail, bsize, blocks } = statfsSync(folder);
  // A file system without blocks does not count its room.
  if (blocks === 0 || bavail * bsize >= freeBytesLeast) return;
  throw Object.assign(new Error('the disk is full'), { errcode: fullCode });
}

/**
 * Has SQLite read every page, where the file is not too big for a start to wait for that.
 * @throws DamagedStore
 */
export function checkPages(database: DatabaseSync, path: string, bytesMax: number): void {
  if (statSync(path).size > bytesMax) return;
  const fault = String(database.prepare('PRAGMA quick_check(1)').get()?.quick_check);
  // The first line names the database alone.
  if (fault !== 'ok') throw new DamagedStore(path, fault.split('\n').at(-1) ?? fault);
}

/** Runs what opens a store, and says of damage what to do about it. */
export function judged<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw faultOf(error) === 'storage_damaged' ? new DamagedStore(path, messageOf(error), error) : error;
  }
}
