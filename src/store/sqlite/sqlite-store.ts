/**
 * The store on embedded SQLite: the contract of store.ts over one file `comity.db` in a folder that this process locks. Three
 * kinds of connections: this thread reads what an index serves, reader threads scan, one writer thread commits.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { dropDigests } from '../backup-file/digests.ts';
import { migrate } from '../backup-file/migrate.ts';
import { RunningBackups } from '../backup-file/running-backups.ts';
import { beginPartial, publish } from '../backup-file/write-file.ts';
import { ChangeListeners } from '../change-listeners.ts';
import { rowOf } from '../kept-row.ts';
import { Lines } from '../lines.ts';
import type { ProvisionalRevisions } from '../provisional-revisions.ts';
import { eventsTable, type Row, type Store, StoreUnavailable, type Table } from '../store.ts';
import type { Cells } from './cells.ts';
import { tickSql } from './compile/select.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import { rewriteOnce } from './erasure.ts';
import {
  checkPages,
  convertDamage,
  createDamage,
  type Damage,
  refuseEmptyFile,
  refuseFullDisk,
} from './integrity.ts';
import { lockFolder } from './lock.ts';
import { installDeadline } from './reader/deadline.ts';
import { ReaderPool } from './reader/pool.ts';
import { reconcile, type TableDirectory, type TableNumbers, tableDirectory } from './reconcile.ts';
import { Snapshot } from './snapshot.ts';
import { startBackup } from './sqlite-backup.ts';
import { messageOf, unavailable } from './sqlite-failure.ts';
import { countRows, createCompiledShapes, makePlan } from './sqlite-query.ts';
import { type Layout, layoutsOf } from './table-layout.ts';
import { readHead, readTail } from './tail.ts';
import { createTallies } from './tallies.ts';
import { WriterQueue } from './writer/queue.ts';

export type SqliteOptions = {
  /** Created if missing, readable by its owner only. */
  readonly folder: string;
  readonly tables: readonly Table[];
  /** Threads for reads whose cost grows with a table. 0, the default: as many as processors, from 2 to 4. */
  readonly readerThreads?: number;
  /** Such reads that may wait for a thread; more get `StoreUnavailable`. Default 256. */
  readonly readerQueueMax?: number;
  /** Timeout of one such read. Default 10 s. */
  readonly scanTimeoutMs?: number;
  /** Page cache of each connection. Default 16 MiB. */
  readonly cacheKibibytes?: number;
  /** Bytes of the database file that readers map into memory. Default 1 GiB. */
  readonly mappedBytesMax?: number;
  /** Units that may wait for the writer; more get `StoreUnavailable`. Default 10,000. */
  readonly unitsWaitingMax?: number;
  /** Octets of their documents; more get `StoreUnavailable`. Default 64 MiB. */
  readonly unitsWaitingBytesMax?: number;
  /** Units per transaction. Default 512. */
  readonly unitsPerTransactionMax?: number;
  /** Characters of documents after which a batch takes no further unit. Default 8 Mi. */
  readonly charactersPerTransactionMax?: number;
  /** Limit of the database file in pages of 4 KiB; writes beyond it get `StoreUnavailable`. Default none. */
  readonly pagesMax?: number;
  /** Changes that may wait for their turn at a row; more get `StoreUnavailable`. Default 10,000. */
  readonly changesWaitingMax?: number;
  /** How long a change may wait for its turn. Default 30 s. */
  readonly changeWaitMs?: number;
  /** Largest file that a start checks for damage. Default 256 MiB; 0: none. */
  readonly startCheckMebibytes?: number;
  /** Time after which the log no longer holds deleted text. Default 60 s. */
  readonly logTruncateSeconds?: number;
  readonly observe?: Observe;
  /** Milliseconds since the epoch; only tests replace it. */
  readonly clock?: () => number;
};

export type SqliteStore = Store & {
  readonly unitsWaiting: () => number;
};

/** Timeout for another connection's lock; only a checkpoint or a recovery holds one, briefly. */
const busyTimeoutMs = 5000;

/**
 * Opens or creates the store in the folder, migrates its schema and starts the writer.
 * @throws FolderInUse, DamagedStore, UnknownDatabase, UnfitRows, TypeError (a declaration that cannot be stored)
 */
export async function openSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const started = performance.now();
  const observe = options.observe ?? ignore;
  const layouts = layoutsOf(options.tables);
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(options.folder);
  try {
    const path = join(options.folder, 'comity.db');
    refuseEmptyFile(path);
    refuseFullDisk(options.folder);
    // SQLite gives the log and the shared memory file the mode of the database.
    if (existsSync(path)) chmodSync(path, 0o600);
    else makeFile(path, observe);
    const connection: ConnectionOptions = {
      cacheKibibytes: options.cacheKibibytes ?? 16_384,
      busyTimeoutMs,
      mappedBytesMax: options.mappedBytesMax ?? 1_073_741_824,
      pagesMax: options.pagesMax,
    };
    const checked = { bytesMax: 1_048_576 * (options.startCheckMebibytes ?? 256), observe };
    const numbers = convertDamage(path, () => bringUpToDate(path, connection, layouts, checked));
    const store = assemble(options, { path, connection, layouts, numbers, release, observe });
    observe({
      kind: 'store-opened',
      engine: 'sqlite',
      tables: layouts.length,
      durationMs: performance.now() - started,
    });
    return store;
  } catch (error) {
    release();
    throw error;
  }
}

function ignore(): void {
  // No observer was given.
}

/** Names a new file only when it is a store, so that an empty file is always a sign of damage. */
function makeFile(path: string, observe: Observe): void {
  const partial = beginPartial(path);
  const database = new DatabaseSync(partial);
  database.exec('PRAGMA auto_vacuum = INCREMENTAL');
  migrate(database, partial, observe);
  database.close();
  publish(path);
}

function bringUpToDate(
  path: string,
  connection: ConnectionOptions,
  layouts: readonly Layout[],
  { bytesMax, observe }: { readonly bytesMax: number; readonly observe: Observe },
): TableNumbers {
  const database = connect(path, 'writer', connection);
  try {
    checkPages(database, path, bytesMax);
    migrate(database, path, observe);
    dropDigests(database);
    rewriteOnce(database, observe);
    return reconcile(database, layouts, observe);
  } finally {
    database.close();
  }
}

type OpenInputs = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly release: () => void;
  readonly observe: Observe;
};

type Running = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly writer: WriterQueue;
  readonly tableOf: TableDirectory;
  readonly listeners: ChangeListeners;
  readonly tally: ReturnType<typeof createTallies>;
  readonly lines: Lines;
  readonly backups: RunningBackups;
  readonly release: () => void;
};

function assemble(options: SqliteOptions, inputs: OpenInputs): SqliteStore {
  const { path, connection, layouts, numbers, release } = inputs;
  const damage = createDamage(path, inputs.observe);
  const caller = connect(path, 'reader', connection);
  // Conditions on columns may contain a short pattern; nothing on this connection takes long enough to be ended.
  installDeadline(caller, Number.POSITIVE_INFINITY, new Int32Array(1));
  const snapshot = new Snapshot(caller, damage);
  const readers = new ReaderPool(
    { path, connection, scanTimeoutMs: options.scanTimeoutMs ?? 10_000 },
    { readerThreads: readerThreadsOf(options), readerQueueMax: options.readerQueueMax ?? 256, damage },
  );
  const listeners = new ChangeListeners();
  const lines = new Lines(options);
  const { revisions } = lines;
  const writer = startWriter(options, inputs, { snapshot, listeners, damage, revisions });
  const tableOf = tableDirectory(layouts, numbers);
  const backups = new RunningBackups((to, onProgress) => startBackup(path, to, onProgress));
  const tally = createTallies(options.clock ?? Date.now);
  return storeOver({ snapshot, readers, writer, tableOf, listeners, tally, lines, backups, release });
}

type WriterHooks = {
  readonly snapshot: Snapshot;
  readonly listeners: ChangeListeners;
  readonly damage: Damage;
  readonly revisions: ProvisionalRevisions;
};

/** At least two, so that a scan of one party does not block the others. */
function readerThreadsOf({ readerThreads = 0 }: SqliteOptions): number {
  return readerThreads > 0 ? readerThreads : Math.min(4, Math.max(2, availableParallelism()));
}

/** Starts the writer, which reaches the other inputs only through these callbacks. */
function startWriter(
  options: SqliteOptions,
  inputs: OpenInputs,
  { snapshot, listeners, damage, revisions }: WriterHooks,
): WriterQueue {
  const { path, connection, layouts, numbers, observe } = inputs;
  const logTruncateMs = 1000 * (options.logTruncateSeconds ?? 60);
  return new WriterQueue(
    { path, tables: options.tables, numbers, connection, logTruncateMs },
    layouts.map((layout) => layout.table.name),
    {
      unitsWaitingMax: options.unitsWaitingMax ?? 10_000,
      unitsWaitingBytesMax: options.unitsWaitingBytesMax ?? 67_108_864,
      unitsPerTransactionMax: options.unitsPerTransactionMax ?? 512,
      charactersPerTransactionMax: options.charactersPerTransactionMax ?? 8_388_608,
      onCommitted: () => snapshot.end(),
      onChanged: (tables) => listeners.call(tables),
      onBatch: (units, durationMs) => observe({ kind: 'units-committed', units, durationMs }),
      onFailed: (error) => observe({ kind: 'store-failed', what: 'commit', error }),
      damage,
      revisions,
    },
  );
}

/** Builds the store directly from closures, without layers between: most requests wait for `read`. */
function storeOver(running: Running): SqliteStore {
  const { snapshot, readers, writer, tableOf, listeners, lines, backups } = running;
  const shapes = createCompiledShapes();
  const processId = randomUUID();
  let closing: Promise<void> | undefined;
  const read = (table: string, id: string): Row | undefined => {
    const { readSql } = tableOf(table);
    return snapshot.run(() => {
      const cells = snapshot.prepare(readSql).get(id) as unknown as Cells | undefined;
      return cells === undefined ? undefined : rowOf(cells);
    });
  };
  return {
    shared: false,
    processId,
    // This process has the folder to itself, so every other process is a former one.
    hasEnded: (other) => other !== processId,
    lines,
    read,
    readNewest: (table, id) => lines.newest(table, id) ?? { row: read(table, id), isProvisional: false },
    plan(query) {
      const { layout, tableNumber } = tableOf(query.table);
      return makePlan({ snapshot, readers, layout, tableNumber, shapes }, query);
    },
    async count(table, filter, party) {
      const { layout, tableNumber } = tableOf(table);
      return countRows(readers, layout, tableNumber, filter, party);
    },
    version(table) {
      const { tableNumber } = tableOf(table);
      return snapshot.run(() => snapshot.version(tableNumber));
    },
    commit: (unit) => lines.commit(unit, (handed) => writer.commit(handed)),
    tail(after, filter, limit, { bytesMax = Number.POSITIVE_INFINITY, party } = {}) {
      const query = { after, filter, limit, bytesMax, party };
      return readTail(snapshot, readers, tableOf(eventsTable).tableNumber, query);
    },
    head: () => readHead(snapshot),
    onAppend: (listener) => listeners.add(eventsTable, listener),
    onChange: (table, listener) => listeners.add(tableOf(table).layout.table.name, listener),
    tally: async (tallies) => running.tally(tallies),
    async purge(table, updatedBefore, limit) {
      const { layout, tableNumber } = tableOf(table);
      return purgeRows(readers, writer, layout, tableNumber, { updatedBefore, limit });
    },
    backup: (to, onProgress) => backups.run(to, onProgress),
    ping: () => ping(writer, snapshot),
    close() {
      closing ??= closeAll(running);
      return closing;
    },
    unitsWaiting: () => writer.unitsWaiting,
  };
}

/** Checks that the writer runs and storage can be read and written. */
async function ping(writer: WriterQueue, snapshot: Snapshot): Promise<void> {
  if (!writer.alive) throw unavailable('the writer thread is not running');
  try {
    snapshot.run(() => snapshot.prepare('SELECT rev FROM comity_counters WHERE n = 0').get());
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    throw unavailable(`storage failed: ${messageOf(error)}`, error);
  }
  return writer.probe();
}

/** In this order, so that accepted units are committed, and the folder is released last. */
async function closeAll({ backups, writer, readers, snapshot, release }: Running): Promise<void> {
  await backups.close();
  await writer.close();
  await readers.close();
  snapshot.close();
  release();
}

const rowsPerTransaction = 500;

/** Removes old rows of a log, without checking references: a reader thread finds them, the writer removes a few hundred at a time. */
async function purgeRows(
  readers: ReaderPool,
  writer: WriterQueue,
  layout: Layout,
  tableNumber: number,
  range: { readonly updatedBefore: number; readonly limit: number },
): Promise<number> {
  const sql = `SELECT id FROM ${layout.name} WHERE ${tickSql} AND updated_at < ? LIMIT ?`;
  const { rows } = await readers.read(sql, [range.updatedBefore, range.limit], tableNumber);
  const ids = rows.map((row) => String(row[0]));
  let purged = 0;
  for (let start = 0; start < ids.length; start += rowsPerTransaction) {
    const some = ids.slice(start, start + rowsPerTransaction);
    purged += await writer.purge(layout.table.name, range.updatedBefore, some);
  }
  return purged;
}
