/**
 * The parts that all stores of a process over one folder share: the lock, the checked and migrated file, and the
 * writer thread. A store in another thread needs only `HomeData` and a port that `join` connects to the writer.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, Worker } from 'node:worker_threads';
import { defaultSettings, type Settings } from '../../config/settings.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import type { Observe } from '../../observe/observation.ts';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { migrate, unmarkBackup } from '../backup-file/file-format.ts';
import { beginPartial, publish } from '../backup-file/write-file.ts';
import { raisedRevision, raisesKeptMax } from '../revision.ts';
import type { Table, Tally } from '../store.ts';
import { workerFile } from '../worker-file.ts';
import { type ConnectionOptions, connect, installFold, inTransaction } from './connection.ts';
import { rewriteOnce } from './erasure.ts';
import {
  checkPages,
  convertDamage,
  createHomeState,
  type HomeData,
  refuseEmptyFile,
  refuseFullDisk,
} from './home-state.ts';
import { type Layout, layoutsOf, reconcile, type TableNumbers } from './sqlite-schema.ts';
import type { HomeMessage, WriterData } from './writer/writer-messages.ts';

/** Settings that are absent have their defaults. */
export type StoreOptions = Partial<Settings> & {
  readonly tables: readonly Table[];
  readonly observe?: Observe;
  /** Asked before a thread reads another page (event-loop.ts). */
  readonly nextPage?: (() => Promise<void> | undefined) | undefined;
};

export type HomeOptions = StoreOptions & {
  /** Created if missing, readable by its owner only. */
  readonly folder: string;
  /** Bytes of the database file that readers map into memory. Default 1 GiB. */
  readonly mappedBytesMax?: number;
  /** Limit of the database file in pages of 4 KiB; writes beyond it get `StoreUnavailable`. Default none. */
  readonly pagesMax?: number;
  /** False: a commit may be lost with the machine. Default true. */
  readonly durable?: boolean;
  /** Milliseconds since the epoch; only tests replace it. */
  readonly clock?: () => number;
};

export type SqliteHome = {
  readonly data: HomeData;
  /** Connects the writer to the other end of the port, which closes if the writer ends; a later `join` starts another. */
  join(port: MessagePort): void;
  /** To be called after the stores have closed: truncates the log and releases the folder. */
  close(): Promise<void>;
};

/** Timeout for another connection's lock; only a checkpoint or a recovery holds one, briefly. */
const busyTimeoutMs = 5000;

/**
 * Locks the folder, creates or migrates the database in it, and starts the writer.
 * @throws FolderInUse, DamagedStore, UnknownDatabase, UnfitRows, TypeError (a declaration that cannot be stored)
 */
export function openHome(options: HomeOptions): SqliteHome {
  const observe = options.observe ?? ignore;
  const layouts = layoutsOf(options.tables);
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(options.folder);
  try {
    const path = join(options.folder, 'comity.db');
    refuseEmptyFile(path);
    refuseFullDisk(options.folder);
    const connection = homeConnection(options);
    const now = (options.clock ?? Date.now)();
    const { startCheckMebibytes, logTruncateSeconds } = { ...defaultSettings, ...options };
    const checked = { bytesMax: 1_048_576 * startCheckMebibytes, now, observe };
    const numbers = existsSync(path)
      ? convertDamage(path, () => bringUpToDate(path, connection, layouts, checked))
      : makeFile(path, layouts, { durable: options.durable ?? true, now, observe });
    const data = { path, connection, numbers, state: createHomeState() };
    const writer = createWriter(
      { ...data, tables: options.tables, logTruncateMs: 1000 * logTruncateSeconds },
      observe,
    );
    const close = async (): Promise<void> => {
      await writer.end();
      release();
    };
    return { data, join: writer.join, close };
  } catch (error) {
    release();
    throw error;
  }
}

export function homeConnection(options: HomeOptions): ConnectionOptions {
  return {
    cacheKibibytes: options.cacheKibibytes ?? defaultSettings.cacheKibibytes,
    busyTimeoutMs,
    mappedBytesMax: options.mappedBytesMax ?? 1_073_741_824,
    pagesMax: options.pagesMax,
    durable: options.durable ?? true,
  };
}

function ignore(): void {
  // No observer was given.
}

/**
 * Names a new file only when it is a store with its tables, so that an empty file is always a sign of damage. The next start deletes an
 * unnamed one that a crash left, so its journal need not be on the disk.
 */
function makeFile(
  path: string,
  layouts: readonly Layout[],
  { durable, now, observe }: { readonly durable: boolean; readonly now: number; readonly observe: Observe },
): TableNumbers {
  const partial = beginPartial(path);
  const database = new DatabaseSync(partial, { enableDoubleQuotedStringLiterals: false });
  installFold(database);
  database.exec(
    `PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = ${durable ? 'FULL' : 'OFF'}`,
  );
  let numbers: TableNumbers;
  try {
    migrate(database, partial, observe);
    numbers = inTransaction(database, () => reconcile(database, layouts, observe));
    raise(database, now);
    // Readers open the file at once, and while one has it no other connection could set this.
    database.exec('PRAGMA journal_mode = WAL');
  } finally {
    database.close();
  }
  publish(path);
  return numbers;
}

function bringUpToDate(
  path: string,
  connection: ConnectionOptions,
  layouts: readonly Layout[],
  { bytesMax, now, observe }: { readonly bytesMax: number; readonly now: number; readonly observe: Observe },
): TableNumbers {
  // SQLite gives the log and the shared memory file the mode of the database.
  chmodSync(path, 0o600);
  const database = connect(path, 'writer', connection);
  try {
    checkPages(database, path, bytesMax);
    migrate(database, path, observe);
    unmarkBackup(database);
    rewriteOnce(database, observe);
    const numbers = reconcile(database, layouts, observe);
    raise(database, now);
    return numbers;
  } finally {
    database.close();
  }
}

/** The file may be a copy of one whose later units were lost. A raise that follows another without a unit between extends its range. */
function raise(database: DatabaseSync, now: number): void {
  inTransaction(database, () => {
    const rev = Number(database.prepare('SELECT rev FROM comity_counters WHERE n = 0').get()?.rev);
    const after = raisedRevision(rev, now);
    database.prepare('UPDATE comity_counters SET rev = ? WHERE n = 0').run(after);
    const extended = database.prepare('UPDATE comity_raises SET after = ?, made_at = ? WHERE after = ?');
    if (extended.run(after, now, rev).changes > 0) return;
    database
      .prepare('INSERT INTO comity_raises (before, after, made_at) VALUES (?, ?, ?)')
      .run(rev, after, now);
    database.exec(`DELETE FROM comity_raises WHERE before <= (
      SELECT before FROM comity_raises ORDER BY before DESC LIMIT 1 OFFSET ${raisesKeptMax})`);
  });
}

type Writer = { readonly join: SqliteHome['join']; readonly end: () => Promise<void> };

/** Keeps one writer thread, which does not keep the process running: the ports of stores do while they wait for a commit. */
function createWriter(workerData: WriterData, observe: Observe): Writer {
  let worker: Worker | undefined;
  const start = (): Worker => {
    const started = ownEmitter(
      new Worker(workerFile('./writer/writer-thread', import.meta.url), { workerData }),
      (error) => observe({ kind: 'store-failed', what: 'the writer thread', error }),
    );
    started.unref();
    started.on('exit', () => {
      if (worker === started) worker = undefined;
    });
    worker = started;
    return started;
  };
  start();
  return {
    join(port) {
      const message: HomeMessage = { kind: 'join', port };
      (worker ?? start()).postMessage(message, [port]);
    },
    async end() {
      const ending = worker;
      if (ending === undefined) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      ending.once('exit', () => resolve());
      ending.ref();
      const message: HomeMessage = { kind: 'end' };
      ending.postMessage(message);
      await promise;
    },
  };
}

export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
  readonly code = 'store_folder_in_use';
}

/**
 * Locks a folder for one process by SQLite's exclusive lock on a file, which the kernel releases when its holder dies.
 * @returns a function that releases the folder
 * @throws FolderInUse if another store holds it, in this process or another
 */
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

/*
 * Counters in memory (`tally` of the contract); no other process uses the folder. A sweep removes expired counters when their number has
 * doubled, so its cost is amortised.
 * Clients choose the keys: accounts and addresses of logins. If too many counters are current, a sweep removes those with the lowest
 * totals, so flooding with new keys resets no counter with many counts.
 */

type Counter = { total: number; expiresAt: number };

/** Counters kept before the first sweep: about 1 MiB. */
const countersBeforeSweep = 8192;
const countersMax = memoryBounds.tallies.entries;

/** @param clock milliseconds since the epoch */
export function createTallies(clock: () => number): (tallies: readonly Tally[]) => readonly number[] {
  const counters = new Map<string, Counter>();
  let sweepAt = countersBeforeSweep;

  function sweep(): void {
    const now = clock();
    for (const [key, { expiresAt }] of counters) if (expiresAt <= now) counters.delete(key);
    for (let least = 1; counters.size > countersMax / 2; least *= 2) {
      for (const [key, { total }] of counters) if (total <= least) counters.delete(key);
    }
    sweepAt = Math.max(countersBeforeSweep, counters.size * 2);
  }

  return (tallies) =>
    tallies.map(({ key, add, expiresAt }) => {
      const counter = counters.get(key);
      if (counter !== undefined) {
        counter.total += add;
        counter.expiresAt = Math.max(counter.expiresAt, expiresAt);
        return counter.total;
      }
      // A read of an unknown key creates no counter.
      if (add === 0) return 0;
      if (counters.size >= sweepAt) sweep();
      counters.set(key, { total: add, expiresAt });
      return add;
    });
}
