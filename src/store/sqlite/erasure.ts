/**
 * Removes deleted text from the files. `secure_delete` overwrites it in the database (connection.ts); the log, which holds older versions
 * of pages, is truncated, and free pages are returned in steps. Files of versions without `secure_delete` are rewritten once.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { faultOf } from './connection.ts';

const incremental = 2;
/** Free pages kept for the next writes: 4 MiB. */
const freePagesKept = 1024;
/** Pages returned per step: 4 MiB, some 10 ms. */
const pagesPerStep = 1024;

/** Rewrites a file made without `auto_vacuum`, which temporarily doubles its size. On a full disk, the next start retries. */
export function rewriteOnce(database: DatabaseSync, observe: Observe): void {
  if (numberOf(database, 'auto_vacuum') === incremental) return;
  const started = performance.now();
  try {
    database.exec(`PRAGMA auto_vacuum = ${incremental}; VACUUM`);
    observe({
      kind: 'store-migrated',
      what: 'file rewritten without deleted text',
      durationMs: performance.now() - started,
    });
  } catch (error) {
    if (faultOf(error) !== 'storage_full') throw error;
    observe({ kind: 'store-failed', what: 'rewriting the file without deleted text', error });
  }
}

export type Erasure = {
  /** Call after every write. */
  wrote(): void;
  stop(): void;
};

/**
 * Truncates the log some time after a write. Does not wait for readers, but retries.
 * @param busyTimeoutMs the connection's usual timeout for locks
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
      // A full disk or a lock: a later attempt loses nothing, and the next write reports the failure.
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
