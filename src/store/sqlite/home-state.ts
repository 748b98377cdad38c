/** State that all stores over one folder share, across threads. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { type StorageFault, StoreUnavailable } from '../store.ts';
import { type ConnectionOptions, faultOf, messageOf } from './connection.ts';
import type { TableNumbers } from './sqlite-schema.ts';

/** Words of memory, so that each thread knows at once what another one did or found. */
export type HomeState = Int32Array<SharedArrayBuffer>;

/** Counts commits; the writer adds to it before it acknowledges one, so a snapshot that began at the present count is current. */
export const commitsAt = 0;
/** Not 0 once a thread has found damage. */
const damageAt = 1;
/** Counts requests to the writer, which waits for it to change. */
export const requestsAt = 2;
const words = 3;

export function createHomeState(): HomeState {
  return new Int32Array(new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT));
}

/** Data from which any thread can open a store over the folder. */
export type HomeData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly numbers: TableNumbers;
  readonly state: HomeState;
};

/*
 * Detects damage of the database file: at the start up to a size limit, and in operation by SQLite's errors. A damaged page can look like
 * one with fewer rows, so a store with known damage refuses every read and write. SQLite's page checksums need its checksum VFS, which
 * Node's build lacks.
 */

/** Thrown at the start for a file that is damaged or is no database. */
export class DamagedStore extends Error {
  override readonly name = 'DamagedStore';
  readonly code = 'store_damaged';

  constructor(path: string, fault: string, cause?: unknown) {
    const advice =
      'keep a copy of the folder, restore the last backup into another folder with "comity restore", and start Comity on that folder';
    super(`the store ${path} is damaged (${fault}): ${advice}`, { cause });
  }
}

export type Damage = {
  /** @throws StoreUnavailable once damage is known */
  refuse(): void;
  /** Records the fault if it is damage, and reports the first one. */
  note(fault: StorageFault | undefined, message: string): void;
};

/** @param state by it this store and those of other threads inform each other */
export function createDamage(path: string, state: HomeState, observe: Observe): Damage {
  let found: DamagedStore | undefined;
  return {
    refuse() {
      if (Atomics.load(state, damageAt) === 0) return;
      found ??= new DamagedStore(path, 'as another thread found');
      throw new StoreUnavailable(found.message, { cause: found, fault: 'storage_damaged' });
    },
    note(fault, message) {
      if (found !== undefined || fault !== 'storage_damaged') return;
      found = new DamagedStore(path, message);
      Atomics.store(state, damageAt, 1);
      observe({ kind: 'store-failed', what: 'reading: the database file is damaged', error: found });
    },
  };
}

/** Refuses an empty file, and a log without its file: SQLite would open either as an empty store. @throws DamagedStore */
export function refuseEmptyFile(path: string): void {
  if (existsSync(path)) {
    if (statSync(path).size === 0) throw new DamagedStore(path, 'the file is empty');
    return;
  }
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if ((log?.size ?? 0) > 0) throw new DamagedStore(path, 'the file is missing, but its log is there');
}

/** Free space required to start, and for a full store to become ready again. */
const freeBytesLeast = 1_048_576;
/** SQLITE_FULL. */
const fullCode = 13;

/** @throws Error with SQLite's code for a full disk */
export function refuseFullDisk(folder: string): void {
  const { bavail, bsize, blocks } = statfsSync(folder);
  // A file system with 0 blocks does not report its space.
  if (blocks === 0 || bavail * bsize >= freeBytesLeast) return;
  throw Object.assign(new Error('the disk is full'), { errcode: fullCode });
}

/** Makes SQLite read every page, unless the file is larger than `bytesMax`. @throws DamagedStore */
export function checkPages(database: DatabaseSync, path: string, bytesMax: number): void {
  if (statSync(path).size > bytesMax) return;
  const fault = String(database.prepare('PRAGMA quick_check(1)').get()?.quick_check);
  // The first line only names the database.
  if (fault !== 'ok') throw new DamagedStore(path, fault.split('\n').at(-1) ?? fault);
}

/** Converts errors of damage during an open to `DamagedStore`, which says what to do. */
export function convertDamage<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw faultOf(error) === 'storage_damaged' ? new DamagedStore(path, messageOf(error), error) : error;
  }
}
