/**
 * The store on embedded SQLite (design §3): the contract of store.ts over one file `comity.db` in a folder that this process has to
 * itself. Three kinds of connections: this thread reads what an index serves, reader threads scan, one writer thread commits.
 */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Observe } from '../../observe/observation.ts';
import { migrate } from '../backup-file/migrate.ts';
import { RunningBackups } from '../backup-file/running-backups.ts';
import { ChangeListeners } from '../change-listeners.ts';
import { rowOf } from '../row-cells.ts';
import type { Store, Table } from '../store.ts';
import { eventsTable } from '../store.ts';
import { startBackup } from './backup.ts';
import type { Cells } from './cells.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import { countRows } from './count.ts';
import { messageOf, unavailable } from './failure.ts';
import { type Layout, layoutsOf } from './layout.ts';
import { lockFolder } from './lock.ts';
import { makePlan } from './plan.ts';
import { purgeRows } from './purge.ts';
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
  /** Threads for reads whose cost grows with a table. Default 1. */
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
  /** Units that one transaction commits. Default 512. */
  readonly unitsPerTransactionMax?: number;
  /** Characters of documents after which a batch takes no further unit. Default 8 Mi. */
  readonly charactersPerTransactionMax?: number;
  /** Bound on the database file in pages of 4 KiB; beyond it writes are `StoreUnavailable`. Default none. */
  readonly pagesMax?: number;
  readonly observe?: Observe;
  /** Milliseconds since the epoch; replaced in tests alone. */
  readonly clock?: () => number;
};

export type SqliteStore = Store & {
  /** Units that wait for the writer, for metrics. */
  readonly unitsWaiting: () => number;
};

/** How long a connection waits for another's lock; only a checkpoint or a recovery holds one, briefly. */
const busyTimeoutMs = 5000;

/**
 * Opens or makes the store in the folder, brings its schema up to date and starts the writer.
 * @throws FolderInUse, UnknownDatabase, UnfitRows, TypeError (a declaration that cannot be stored)
 */
export async function openSqliteStore(options: SqliteOptions): Promise<SqliteStore> {
  const started = performance.now();
  const observe = options.observe ?? ignore;
  const layouts = layoutsOf(options.tables);
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const release = lockFolder(options.folder);
  try {
    const path = join(options.folder, 'comity.db');
    // SQLite gives the log and the shared memory file the mode of the database.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
    else chmodSync(path, 0o600);
    const connection: ConnectionOptions = {
      cacheKibibytes: options.cacheKibibytes ?? 16_384,
      busyTimeoutMs,
      mappedBytesMax: options.mappedBytesMax ?? 1_073_741_824,
      pagesMax: options.pagesMax,
    };
    const numbers = bringUpToDate(path, connection, layouts, observe);
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

function bringUpToDate(
  path: string,
  connection: ConnectionOptions,
  layouts: readonly Layout[],
  observe: Observe,
): TableNumbers {
  const database = connect(path, 'writer', connection);
  try {
    migrate(database, path, observe);
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
  readonly backups: RunningBackups;
  readonly release: () => void;
};

/** Starts the connections in the order in which they need each other. */
function assemble(options: SqliteOptions, parts: Parts): SqliteStore {
  const { path, connection, layouts, numbers, release } = parts;
  const snapshot = new Snapshot(connect(path, 'reader', connection));
  const readers = new ReaderPool(
    { path, connection, scanTimeoutMs: options.scanTimeoutMs ?? 10_000 },
    { readerThreads: options.readerThreads ?? 1, readerQueueMax: options.readerQueueMax ?? 256 },
  );
  const listeners = new ChangeListeners();
  const writer = startWriter(options, parts, snapshot, listeners);
  const tableOf = tableDirectory(layouts, numbers);
  const backups = new RunningBackups((to, onProgress) => startBackup(path, to, onProgress));
  const tally = createTallies(options.clock ?? Date.now);
  return storeOver({ snapshot, readers, writer, tableOf, listeners, tally, backups, release });
}

/** Apart, since these are the only ways by which the writer reaches the rest: the snapshot, the listeners, the observer. */
function startWriter(
  options: SqliteOptions,
  parts: Parts,
  snapshot: Snapshot,
  listeners: ChangeListeners,
): WriterQueue {
  const { path, connection, layouts, numbers, observe } = parts;
  return new WriterQueue(
    { path, tables: options.tables, numbers, connection },
    layouts.map((layout) => layout.table.name),
    {
      unitsWaitingMax: options.unitsWaitingMax ?? 10_000,
      unitsPerTransactionMax: options.unitsPerTransactionMax ?? 512,
      charactersPerTransactionMax: options.charactersPerTransactionMax ?? 8_388_608,
      onCommitted: () => snapshot.end(),
      onChanged: (tables) => listeners.call(tables),
      onBatch: (units, durationMs) => observe({ kind: 'units-committed', units, durationMs }),
      onFailed: (error) => observe({ kind: 'store-failed', what: 'commit', error }),
    },
  );
}

/** One object of closures over what runs, and no more between: `read` is what most requests wait for. */
function storeOver(running: Running): SqliteStore {
  const { snapshot, readers, writer, tableOf, listeners, backups } = running;
  const explained = new Map<string, boolean>();
  let closing: Promise<void> | undefined;
  return {
    shared: false,
    read(table, id) {
      const { readSql } = tableOf(table);
      return snapshot.run(() => {
        const cells = snapshot.prepare(readSql).get(id) as unknown as Cells | undefined;
        return cells === undefined ? undefined : rowOf(cells);
      });
    },
    plan(query) {
      const { layout, tableNumber } = tableOf(query.table);
      return makePlan({ snapshot, readers, layout, tableNumber, explained }, query);
    },
    async count(table, filter) {
      const { layout, tableNumber } = tableOf(table);
      return countRows(readers, layout, tableNumber, filter);
    },
    version(table) {
      const { tableNumber } = tableOf(table);
      return snapshot.run(() => snapshot.version(tableNumber));
    },
    commit: (unit) => writer.commit(unit),
    tail(after, filter, limit) {
      return readTail(snapshot, readers, tableOf(eventsTable).tableNumber, { after, filter, limit });
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
    ping: async () => ping(writer, snapshot),
    close() {
      closing ??= closeAll(running);
      return closing;
    },
    unitsWaiting: () => writer.unitsWaiting,
  };
}

/** Both sides must answer: a writer that runs, and storage that can be read. */
function ping(writer: WriterQueue, snapshot: Snapshot): void {
  if (!writer.alive) throw unavailable('the writer thread is not running');
  try {
    snapshot.run(() => snapshot.prepare('SELECT rev FROM comity_counters WHERE n = 0').get());
  } catch (error) {
    throw unavailable(`storage failed: ${messageOf(error)}`, error);
  }
}

/** In this order, so that units that were taken are still committed, and the folder is free only when nothing uses it. */
async function closeAll({ backups, writer, readers, snapshot, release }: Running): Promise<void> {
  await backups.close();
  await writer.close();
  await readers.close();
  snapshot.close();
  release();
}
