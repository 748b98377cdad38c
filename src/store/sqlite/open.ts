/**
 * The store on embedded SQLite (design §3): the contract of store.ts over one file `comity.db` in a folder that this process has to
 * itself. Three kinds of connections: this thread reads what an index serves, reader threads scan, one writer thread commits.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { dropDigests } from '../backup-file/digests.ts';
import { migrate } from '../backup-file/migrate.ts';
import { beginPartial, publish } from '../backup-file/publish.ts';
import { RunningBackups } from '../backup-file/running-backups.ts';
import { ChangeListeners } from '../change-listeners.ts';
import { Lines } from '../lines.ts';
import { rowOf } from '../row-cells.ts';
import type { Store, Table } from '../store.ts';
import { eventsTable, StoreUnavailable } from '../store.ts';
import { startBackup } from './backup.ts';
import type { Cells } from './cells.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import { countRows } from './count.ts';
import { rewriteOnce } from './erasure.ts';
import { messageOf, unavailable } from './failure.ts';
import {
  checkPages,
  createDamage,
  type Damage,
  judged,
  refuseEmptyFile,
  refuseFullDisk,
} from './integrity.ts';
import { type Layout, layoutsOf } from './layout.ts';
import { lockFolder } from './lock.ts';
import { createCompiledShapes, makePlan } from './plan.ts';
import { purgeRows } from './purge.ts';
import { installDeadline } from './reader/deadline.ts';
import { ReaderPool } from './reader/pool.ts';
import { reconcile, type TableNumbers } from './reconcile.ts';
import { Snapshot } from './snapshot.ts';
import { type TableDirectory, tableDirectory } from './table-directory.ts';
import { readHead, readTail } from './tail.ts';
import { createTallies } from './tallies.ts';
import { WriterQueue } from './writer/queue.ts';

export type SqliteOptions = {
  /** Made when missing, readable by its owner alone. */
  readonly folder: string;
  readonly tables: readonly Table[];
  /** Threads for reads whose cost grows with a table. 0, the default: as many as processors, from 2 to 4. */
  readonly readerThreads?: number;
  /** Such reads that may wait for a thread; more are `StoreUnavailable`. Default 256. */
  readonly readerQueueMax?: number;
  /** Time that one such read may take. Default 10 s. */
  readonly scanTimeoutMs?: number;
  /** Page cache of each connection. Default 16 MiB. */
  readonly cacheKibibytes?: number;
  /** Bytes of the database file that readers map into memory. Default 1 GiB. */
  readonly mappedBytesMax?: number;
  /** Units that may wait for the writer; more are `StoreUnavailable`. Default 10,000. */
  readonly unitsWaitingMax?: number;
  /** Octets of their documents that may wait; more are `StoreUnavailable`. Default 64 MiB. */
  readonly unitsWaitingBytesMax?: number;
  /** Units that one transaction commits. Default 512. */
  readonly unitsPerTransactionMax?: number;
  /** Characters of documents after which a batch takes no further unit. Default 8 Mi. */
  readonly charactersPerTransactionMax?: number;
  /** Bound on the database file in pages of 4 KiB; beyond it writes are `StoreUnavailable`. Default none. */
  readonly pagesMax?: number;
  /** Changes that may wait for their turn at a row; more are `StoreUnavailable`. Default 10,000. */
  readonly changesWaitingMax?: number;
  /** How long a change may wait for its turn. Default 30 s. */
  readonly changeWaitMs?: number;
  /** Greatest file that a start has SQLite read through for damage. Default 256 MiB; 0: none. */
  readonly startCheckMebibytes?: number;
  /** Time after which the log no longer holds what was deleted. Default 60 s. */
  readonly logTruncateSeconds?: number;
  readonly observe?: Observe;
  /** Milliseconds since the epoch; replaced in tests alone. */
  readonly clock?: () => number;
};

export type SqliteStore = Store & {
  /** Units that wait for the writer, for metrics. */
  readonly unitsWaiting: () => number;
};

/** At least two, so that a scan of one party never makes all others wait. */
function readerThreadsOf({ readerThreads = 0 }: SqliteOptions): number {
  return readerThreads > 0 ? readerThreads : Math.min(4, Math.max(2, availableParallelism()));
}

/** How long a connection waits for another's lock; only a checkpoint or a recovery holds one, briefly. */
const busyTimeoutMs = 5000;

/**
 * Opens or makes the store in the folder, brings its schema up to date and starts the writer.
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
    const numbers = judged(path, () => bringUpToDate(path, connection, layouts, checked));
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
  // Nobody observes.
}

/** A new file gets its name when it is a store: one without content is always the sign of damage. */
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

type Parts = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly release: () => void;
  readonly observe: Observe;
};

/** What the store is made of while it is open. */
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

/** Starts the connections in the order in which they need each other. */
function assemble(options: SqliteOptions, parts: Parts): SqliteStore {
  const { path, connection, layouts, numbers, release } = parts;
  const damage = createDamage(path, parts.observe);
  const caller = connect(path, 'reader', connection);
  // Filters of columns may hold a short pattern; nothing that runs here takes long enough to be ended.
  installDeadline(caller, Number.POSITIVE_INFINITY, new Int32Array(1));
  const snapshot = new Snapshot(caller, damage);
  const readers = new ReaderPool(
    { path, connection, scanTimeoutMs: options.scanTimeoutMs ?? 10_000 },
    { readerThreads: readerThreadsOf(options), readerQueueMax: options.readerQueueMax ?? 256, damage },
  );
  const listeners = new ChangeListeners();
  const writer = startWriter(options, parts, { snapshot, listeners, damage });
  const tableOf = tableDirectory(layouts, numbers);
  const backups = new RunningBackups((to, onProgress) => startBackup(path, to, onProgress));
  const tally = createTallies(options.clock ?? Date.now);
  const lines = new Lines(options);
  return storeOver({ snapshot, readers, writer, tableOf, listeners, tally, lines, backups, release });
}

type Reached = {
  readonly snapshot: Snapshot;
  readonly listeners: ChangeListeners;
  readonly damage: Damage;
};

/** Apart, since these are the only ways by which the writer reaches the rest: the snapshot, the listeners, the observer. */
function startWriter(
  options: SqliteOptions,
  parts: Parts,
  { snapshot, listeners, damage }: Reached,
): WriterQueue {
  const { path, connection, layouts, numbers, observe } = parts;
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
    },
  );
}

/** One object of closures over what runs, and no more between: `read` is what most requests wait for. */
function storeOver(running: Running): SqliteStore {
  const { snapshot, readers, writer, tableOf, listeners, backups } = running;
  const shapes = createCompiledShapes();
  const processId = randomUUID();
  let closing: Promise<void> | undefined;
  return {
    shared: false,
    processId,
    // The folder is this process's alone, so every other one is a former one.
    hasEnded: (other) => other !== processId,
    lines: running.lines,
    read(table, id) {
      const { readSql } = tableOf(table);
      return snapshot.run(() => {
        const cells = snapshot.prepare(readSql).get(id) as unknown as Cells | undefined;
        return cells === undefined ? undefined : rowOf(cells);
      });
    },
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
    commit: (unit) => writer.commit(unit),
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

/** Both sides must answer: a writer that runs, and storage that can be read. */
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

/** In this order, so that units that were taken are still committed, and the folder is free only when nothing uses it. */
async function closeAll({ backups, writer, readers, snapshot, release }: Running): Promise<void> {
  await backups.close();
  await writer.close();
  await readers.close();
  snapshot.close();
  release();
}
