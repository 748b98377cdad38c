/**
 * The parts that all stores of a process over one folder share: the lock, the checked and migrated file, and the
 * writer thread. A store in another thread needs only `HomeData` and a port that `join` connects to the writer.
 */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, Worker } from 'node:worker_threads';
import type { Observe } from '../../observe/observation.ts';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { dropDigests } from '../backup-file/digests.ts';
import { migrate } from '../backup-file/migrate.ts';
import { dropOrigin } from '../backup-file/origin.ts';
import { beginPartial, publish } from '../backup-file/write-file.ts';
import { raisedRevision, raisesKeptMax } from '../raised-revision.ts';
import type { Table } from '../store.ts';
import { workerFile } from '../worker-file.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import { rewriteOnce } from './erasure.ts';
import { createHomeState, type HomeData } from './home-state.ts';
import { inTransaction } from './in-transaction.ts';
import { checkPages, convertDamage, refuseEmptyFile, refuseFullDisk } from './integrity.ts';
import { lockFolder } from './lock.ts';
import { reconcile, type TableNumbers } from './reconcile.ts';
import { type Layout, layoutsOf } from './table-layout.ts';
import type { HomeMessage, WriterData } from './writer/writer-messages.ts';

export type HomeOptions = {
  /** Created if missing, readable by its owner only. */
  readonly folder: string;
  readonly tables: readonly Table[];
  /** Page cache of each connection. Default 16 MiB. */
  readonly cacheKibibytes?: number;
  /** Bytes of the database file that readers map into memory. Default 1 GiB. */
  readonly mappedBytesMax?: number;
  /** Limit of the database file in pages of 4 KiB; writes beyond it get `StoreUnavailable`. Default none. */
  readonly pagesMax?: number;
  /** Largest file that a start checks for damage. Default 256 MiB; 0: none. */
  readonly startCheckMebibytes?: number;
  /** Time after which the log no longer holds deleted text. Default 60 s. */
  readonly logTruncateSeconds?: number;
  /** False: a commit may be lost with the machine. Default true. */
  readonly durable?: boolean;
  /** Milliseconds since the epoch; only tests replace it. */
  readonly clock?: () => number;
  readonly observe?: Observe;
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
    const checked = { bytesMax: 1_048_576 * (options.startCheckMebibytes ?? 256), now, observe };
    const numbers = existsSync(path)
      ? convertDamage(path, () => bringUpToDate(path, connection, layouts, checked))
      : makeFile(path, layouts, { durable: options.durable ?? true, now, observe });
    const data = { path, connection, numbers, state: createHomeState() };
    const logTruncateMs = 1000 * (options.logTruncateSeconds ?? 60);
    const writer = createWriter({ ...data, tables: options.tables, logTruncateMs }, observe);
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
    cacheKibibytes: options.cacheKibibytes ?? 16_384,
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
    dropDigests(database);
    dropOrigin(database);
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
