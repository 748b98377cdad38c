/**
 * Deleted text leaves the files. `secure_delete` overwrites it in the database when it is deleted (connection.ts); what is left is the log,
 * which holds older versions of pages until it is truncated, and free pages, which are given back a few at a time. Files of versions
 * without `secure_delete` are rewritten once.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { faultOf } from './failure.ts';

const incremental = 2;
/** Free pages that are kept for what is written next: 4 MiB. */
const freePagesKept = 1024;
/** Pages given back at a time: 4 MiB, some 10 ms. */
const pagesPerStep = 1024;

/** Rewrites a file that was made without `auto_vacuum`. It needs as much space again while it does; without it, the next start tries again. */
export function rewriteOnce(database: DatabaseSync, observe: Observe): void {
  if (numberOf(database, 'auto_vacuum') === incremental) return;
  const started = performance.now();
  try {
    database.exec(`PRAGMA auto_vacuum = ${incremental}; VACUUM`);
    observe({
      kind: 'store-migrated',
      what: 'the file, without deleted text',
      durationMs: performance.now() - started,
    });
  } catch (error) {
    if (faultOf(error) !== 'storage_full') throw error;
    observe({ kind: 'store-failed', what: 'rewriting the file without deleted text', error });
  }
}

export type Erasure = {
  /** To be called after every write. */
  wrote(): void;
  stop(): void;
};

/**
 * Truncates the log some time after a write. A reader that is in the middle of it is not waited for: it is tried again.
 * @param busyTimeoutMs what the connection waits for locks otherwise
 */
export function createErasure(database: DatabaseSync, afterMs: number, busyTimeoutMs: number): Erasure {
  let timer: NodeJS.Timeout | undefined;

  function schedule(): void {
    timer ??= setTimeout(erase, afterMs);
  }

  function erase(): void {
    timer = undefined;
    database.exec('PRAGMA busy_timeout = 0');
    try {
      const free = numberOf(database, 'freelist_count');
      const some = Math.min(pagesPerStep, free - freePagesKept);
      if (some > 0) database.exec(`PRAGMA incremental_vacuum(${some})`);
      const truncated = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
      if (truncated?.busy !== 0 || free - some > freePagesKept) schedule();
    } catch {
      // A full disk or a lock: nothing is lost by trying later, and the next write reports the failure.
      schedule();
    } finally {
      database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    }
  }

  return { wrote: schedule, stop: () => clearTimeout(timer) };
}

function numberOf(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
