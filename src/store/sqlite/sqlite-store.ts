/**
 * The store on embedded SQLite: the contract of store/store.ts over one file `comity.db` in a folder that this process locks. Three
 * kinds of connections: this thread reads what an index serves, reader threads scan, one writer thread commits. Several
 * threads of the process can each have a store over the same folder (home.ts).
 */
import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { MessagePort } from 'node:worker_threads';
import { tablesOf } from '../../model/filter.ts';
import { identify } from '../backup-file/file-format.ts';
import { RunningBackups } from '../backup-file/write-file.ts';
import { reportIndexes, wantedIndexes } from '../declared-indexes.ts';
import { createCompiledShapes } from '../filter-shape.ts';
import { Lines } from '../lines.ts';
import { purgedCounter } from '../revision.ts';
import { quoteName } from '../sql-text.ts';
import {
  endOfRevision,
  eventsTable,
  type Row,
  rowOf,
  type Store,
  StoreUnavailable,
  type Table,
} from '../store.ts';
import { countedRowsMax, type IndexReport, type StoreReport, type TableReport } from '../store-report.ts';
import { ChangeListeners } from '../table-changes.ts';
import { tickSql } from './compile/filter.ts';
import type { CompiledShape } from './compiled-shape.ts';
import { type Cells, type ConnectionOptions, connect, messageOf } from './connection.ts';
import { createTallies, type HomeOptions, homeConnection, openHome, type StoreOptions } from './home.ts';
import {
  convertDamage,
  createDamage,
  createHomeState,
  type HomeData,
  refuseEmptyFile,
} from './home-state.ts';
import { installDeadline } from './reader/deadline.ts';
import { ReaderPool } from './reader/pool.ts';
import { KeptRows, readFormer, readHead, readStretch, readTail, Snapshot } from './snapshot.ts';
import { startBackup } from './sqlite-backup.ts';
import { aggregateRows, countRows, makePlan } from './sqlite-query.ts';
import {
  countersOf,
  findDuplicates,
  type Layout,
  layoutsOf,
  pendingName,
  type TableDirectory,
  tableDirectory,
} from './sqlite-schema.ts';
import { WriterClient } from './writer/writer-client.ts';

export type SqliteStore = Store & {
  readonly unitsWaiting: () => number;
};

/** Connects a store to the other stores over its folder. */
export type Membership = Pick<Store, 'shared' | 'processId' | 'hasEnded' | 'tally'> & {
  readonly data: HomeData;
  /** Connects the writer to the other end of the port. */
  readonly join: (port: MessagePort) => void;
};

/**
 * Opens or creates the store in the folder, which no other store uses meanwhile.
 * @throws FolderInUse, DamagedStore, UnknownDatabase, UnfitRows, TypeError (a declaration that cannot be stored)
 */
export async function openSqliteStore(options: HomeOptions): Promise<SqliteStore> {
  const started = performance.now();
  const home = openHome(options);
  try {
    const processId = randomUUID();
    const tally = createTallies(options.clock ?? Date.now);
    const store = joinSqliteStore(options, {
      ...{ data: home.data, join: home.join },
      shared: false,
      processId,
      // This process has the folder to itself, so every other process is a former one.
      hasEnded: (other) => other !== processId,
      tally: async (tallies) => tally(tallies),
    });
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closing ??= store.close().then(() => home.close());
      return closing;
    };
    options.observe?.({
      ...{ kind: 'store-opened', engine: 'sqlite', tables: options.tables.length },
      durationMs: performance.now() - started,
    });
    return { ...store, close };
  } catch (error) {
    await home.close();
    throw error;
  }
}

/** A store over a folder that is open; `close` leaves the folder open. */
export function joinSqliteStore(options: StoreOptions, membership: Membership): SqliteStore {
  const { data } = membership;
  const { path, connection, numbers, state } = data;
  const observe = options.observe ?? ignore;
  const layouts = layoutsOf(options.tables);
  const damage = createDamage(path, state, observe);
  const caller = connect(path, 'reader', connection);
  // Conditions on columns may contain a short pattern; nothing on this connection takes long enough to be ended.
  installDeadline(caller, Number.POSITIVE_INFINITY, new Int32Array(1));
  const snapshot = new Snapshot(caller, damage, state);
  const readers = new ReaderPool(data, damage, options);
  const listeners = new ChangeListeners();
  const lines = new Lines(options);
  const rows = new KeptRows();
  const writer = new WriterClient(
    {
      join: membership.join,
      tables: layouts.map((layout) => layout.table.name),
      ...{ numbers, state, observe, damage, revisions: lines.revisions },
      onCommitted: (units, firstRev, lastRev) => rows.committed(units, firstRev, lastRev),
      onChanged: (tables) => listeners.call(tables),
    },
    options,
  );
  const tableOf = tableDirectory(layouts, numbers);
  const backups = new RunningBackups((to, onProgress, whenCopied) =>
    startBackup(path, to, onProgress, whenCopied),
  );
  const tables = layouts.map(({ table }) => table);
  return storeOver({
    snapshot,
    readers,
    writer,
    rows,
    tableOf,
    listeners,
    lines,
    backups,
    membership,
    tables,
  });
}

function ignore(): void {
  // No observer was given.
}

type Running = {
  readonly snapshot: Snapshot;
  readonly readers: ReaderPool;
  readonly writer: WriterClient;
  readonly rows: KeptRows;
  readonly tableOf: TableDirectory;
  readonly listeners: ChangeListeners;
  readonly lines: Lines;
  readonly backups: RunningBackups;
  readonly membership: Membership;
  readonly tables: readonly Table[];
};

/** Builds the store directly from closures, without layers between: most requests wait for `read`. */
function storeOver(running: Running): SqliteStore {
  const { snapshot, readers, writer, tableOf, listeners, lines, backups, tables } = running;
  const { shared, processId, hasEnded, tally } = running.membership;
  const shapes = createCompiledShapes<CompiledShape>();
  const layoutOf = (table: string): Layout => tableOf(table).layout;
  let closing: Promise<void> | undefined;
  const { read, readMany } = rowReads(running);
  return {
    ...{ shared, processId, hasEnded, tally, lines, unitCharactersMax: writer.queue.unitCharactersMax },
    revision: () => snapshot.run(() => snapshot.revision()),
    read,
    readMany,
    readNewest: (table, id) => lines.newest(table, id) ?? { row: read(table, id), isProvisional: false },
    holdsDocuments(table) {
      if (!running.membership.data.numbers.has(table)) return false;
      const sql = `SELECT 1 FROM ${quoteName(table)} WHERE deleted_at IS NULL LIMIT 1`;
      return snapshot.run(() => snapshot.prepare(sql).get() !== undefined);
    },
    plan(query) {
      const { layout, tableNumber } = tableOf(query.table);
      const relatedNumbers = tablesOf(query.filter).map((table) => tableOf(table).tableNumber);
      return makePlan({ snapshot, readers, layout, layoutOf, tableNumber, relatedNumbers, shapes }, query);
    },
    async count(table, filter, party) {
      return countRows({ readers, layoutOf, ...tableOf(table) }, filter, party);
    },
    async aggregate(query, party) {
      const relatedNumbers = tablesOf(query.filter).map((table) => tableOf(table).tableNumber);
      return aggregateRows({ readers, layoutOf, ...tableOf(query.table), relatedNumbers }, query, party);
    },
    version(table) {
      const { tableNumber } = tableOf(table);
      return snapshot.run(() => snapshot.version(tableNumber));
    },
    commit: (unit) => lines.commit(unit, (handed) => writer.queue.commit(handed)),
    ...logReads(running),
    isLost: (rev) =>
      snapshot.run(
        () =>
          rev > snapshot.revision() ||
          snapshot.prepare('SELECT 1 FROM comity_raises WHERE before < ?1 AND ?1 <= after').get(rev) !==
            undefined,
      ),
    // Units of a file are lost only while no process has it open.
    onLost: () => () => undefined,
    onAppend: (listener) => listeners.add(eventsTable, listener),
    onChange: (table, listener) => listeners.add(tableOf(table).layout.table.name, listener),
    async purge(table, updatedBefore, limit) {
      const { layout, tableNumber } = tableOf(table);
      return purgeRows(readers, writer, layout, tableNumber, { updatedBefore, limit });
    },
    report: (names) => reportStore({ readers, tableOf, path: running.membership.data.path, tables }, names),
    backup: (to, onProgress, whenCopied) => backups.run(to, onProgress, whenCopied),
    ping: () => ping(writer, snapshot),
    close() {
      closing ??= closeAll(running);
      return closing;
    },
    unitsWaiting: () => writer.queue.unitsWaiting,
  };
}

function logReads({
  snapshot,
  readers,
  tableOf,
}: Running): Pick<Store, 'tail' | 'stretch' | 'logPosition' | 'purgedTo' | 'former' | 'head'> {
  const { tableNumber } = tableOf(eventsTable);
  return {
    tail(after, filter, limit, { bytesMax = Number.POSITIVE_INFINITY, party, until } = {}) {
      const query = { after, filter, limit, bytesMax, party, until };
      return readTail(snapshot, readers, tableNumber, query);
    },
    stretch: (after, eventsMax) => readStretch(snapshot, after, eventsMax),
    logPosition: () => endOfRevision(snapshot.run(() => snapshot.revisionOf(tableNumber))),
    purgedTo: () => snapshot.run(() => snapshot.revisionOf(purgedCounter)),
    former: (id) => readFormer(snapshot, id),
    head: () => readHead(snapshot),
  };
}

/** Reads of rows by id. */
function rowReads({ snapshot, writer, rows, tableOf }: Running) {
  /** Only within `run`. Events are read once, to be sent: keeping them would only fill memory. */
  const areKept = (table: string): boolean =>
    table !== eventsTable && rows.areAt(snapshot.revision(), writer.queue.isBusy);
  const rowIn = (
    { tableNumber, readSql }: ReturnType<TableDirectory>,
    isKept: boolean,
    id: string,
  ): Row | undefined => {
    const kept = isKept ? rows.take(tableNumber, id) : undefined;
    if (kept !== undefined) return kept;
    const cells = snapshot.prepare(readSql).get(id) as unknown as Cells | undefined;
    if (cells === undefined) return undefined;
    const row = rowOf(cells);
    if (isKept) rows.keep(tableNumber, row);
    return row;
  };
  return {
    read(table: string, id: string): Row | undefined {
      const of = tableOf(table);
      return snapshot.run(() => rowIn(of, areKept(table), id));
    },
    readMany(table: string, ids: readonly string[], bytesMax: number) {
      const of = tableOf(table);
      return snapshot.run(() => {
        const isKept = areKept(table);
        const rows = readEach((id) => rowIn(of, isKept, id), ids, bytesMax);
        return rows === undefined ? undefined : { rows, version: snapshot.version(of.tableNumber) };
      });
    },
  };
}

/**
 * Reads the rows in the snapshot of this turn. A statement with a list of ids is no faster than one each (1.6 µs a row), and would not end
 * at the bound.
 */
function readEach(
  read: (id: string) => Row | undefined,
  ids: readonly string[],
  bytesMax: number,
): ReadonlyMap<string, Row> | undefined {
  const found = new Map<string, Row>();
  let bytes = 0;
  for (const id of ids) {
    const row = found.has(id) ? undefined : read(id);
    if (row === undefined) continue;
    bytes += Buffer.byteLength(row.doc);
    if (bytes > bytesMax) return undefined;
    found.set(id, row);
  }
  return found;
}

/** Checks that the writer runs and storage can be read and written. */
async function ping(writer: WriterClient, snapshot: Snapshot): Promise<void> {
  if (!writer.alive) throw new StoreUnavailable('the writer thread is not running');
  try {
    snapshot.run(() => snapshot.prepare('SELECT rev FROM comity_counters WHERE n = 0').get());
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    throw new StoreUnavailable(`storage failed: ${messageOf(error)}`, { cause: error });
  }
  return writer.probe();
}

/** In this order, so that accepted units are committed. */
async function closeAll({ backups, writer, readers, snapshot }: Running): Promise<void> {
  await backups.close();
  await writer.close();
  await readers.close();
  snapshot.close();
}

/** Removes old rows of a log, without checking references: a reader thread finds them. */
function purgeRows(
  readers: ReaderPool,
  writer: WriterClient,
  layout: Layout,
  tableNumber: number,
  { updatedBefore, limit }: { readonly updatedBefore: number; readonly limit: number },
): Promise<number> {
  const sql = `SELECT id FROM ${layout.name} WHERE ${tickSql} AND updated_at < ? LIMIT ?`;
  return writer.purge(layout.table.name, updatedBefore, async () => {
    const { rows } = await readers.read(sql, [updatedBefore, limit], tableNumber);
    return rows.map((row) => String(row[0]));
  });
}

/*
 * A store over a folder that another process may hold: it reads, takes no lock and changes nothing. Tables that the file lacks must not be
 * read (`Store.holdsDocuments`).
 */

/** @returns undefined if the folder has no store @throws DamagedStore, UnknownDatabase */
export function openLookingStore(options: HomeOptions): Store | undefined {
  const connection = homeConnection(options);
  const path = join(options.folder, 'comity.db');
  const numbers = lookAt(options.folder, connection, countersOf);
  if (numbers === undefined) return undefined;
  return joinSqliteStore(options, {
    data: { path, connection, numbers, state: createHomeState() },
    // There is no writer.
    join: (port) => port.unref(),
    ...{ shared: false, processId: '', hasEnded: () => true, tally: async () => [] },
  });
}

/** Sentences about declared unique fields whose stored values are not unique, which a start refuses. @throws DamagedStore, UnknownDatabase */
export function lookForDuplicates(options: HomeOptions): readonly string[] {
  const layouts = layoutsOf(options.tables);
  const find = (database: DatabaseSync): readonly string[] => findDuplicates(database, layouts);
  return lookAt(options.folder, homeConnection(options), find) ?? [];
}

function lookAt<T>(
  folder: string,
  connection: ConnectionOptions,
  look: (database: DatabaseSync) => T,
): T | undefined {
  const path = join(folder, 'comity.db');
  if (!existsSync(path)) return undefined;
  refuseEmptyFile(path);
  return convertDamage(path, () => {
    const database = connect(path, 'reader', connection);
    try {
      identify(database, path);
      return look(database);
    } finally {
      database.close();
    }
  });
}

/*
 * Reports on the tables and indexes of the embedded store (`Store.report`), read by a reader thread. Small tables are counted; a larger one
 * is estimated from parts of the range of its rowids, so that the cost does not grow with it (5 ms for 10^6 rows).
 */

const samples = 32;
const rowidsPerSample = 128;

type Sources = {
  readonly readers: Pick<ReaderPool, 'read'>;
  readonly tableOf: TableDirectory;
  /** Size of the file in octets. */
  readonly path: string;
  readonly tables: readonly Table[];
};

type Ask = (sql: string, parameters?: readonly number[]) => Promise<readonly unknown[]>;

async function reportStore(sources: Sources, names: readonly string[]): Promise<StoreReport> {
  const { readers, tableOf, path, tables } = sources;
  const { tableNumber } = tableOf(names[0] ?? 'events');
  const ask: Ask = async (sql, parameters = []) =>
    (await readers.read(sql, parameters, tableNumber)).rows[0] ?? [];
  const [version] = await ask('SELECT user_version FROM pragma_user_version()');
  const { rows: objects } = await readers.read('SELECT name FROM sqlite_schema', [], tableNumber);
  const standing = new Set(objects.map(([name]) => String(name)));
  const reports: TableReport[] = [];
  for (const name of names) {
    const { layout } = tableOf(name);
    reports.push({
      name,
      ...(await rowsOf(ask, layout.name)),
      bytes: null,
      indexes: await indexesOf(ask, layout, tables, standing),
    });
  }
  const files = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  return {
    bytes: files.reduce((sum, size) => sum + size, 0),
    schemaVersion: Number(version),
    tables: reports,
  };
}

async function rowsOf(ask: Ask, name: string): Promise<Pick<TableReport, 'rows' | 'isEstimate'>> {
  const [seen, live] = await ask(
    `SELECT count(*), total(deleted_at IS NULL) FROM (SELECT deleted_at FROM ${name} LIMIT ${countedRowsMax + 1})`,
  );
  if (Number(seen) <= countedRowsMax) return { rows: Number(live), isEstimate: false };
  const [least, most] = (
    await ask(`SELECT (SELECT min(rowid) FROM ${name}), (SELECT max(rowid) FROM ${name})`)
  ).map(Number);
  const first = least ?? 0;
  const span = (most ?? 0) - first + 1;
  const starts = Array.from({ length: samples }, (_, index) => first + Math.floor((span * index) / samples));
  const [found] = await ask(
    `WITH part (start) AS (VALUES ${starts.map(() => '(?)').join(', ')})
    SELECT count(*) FROM part CROSS JOIN ${name} AS t
    WHERE t.rowid >= start AND t.rowid < start + ${rowidsPerSample} AND t.deleted_at IS NULL`,
    starts,
  );
  return { rows: Math.round((Number(found) / (samples * rowidsPerSample)) * span), isEstimate: true };
}

async function indexesOf(
  ask: Ask,
  { table, name, words }: Layout,
  tables: readonly Table[],
  standing: ReadonlySet<string>,
): Promise<readonly IndexReport[]> {
  const indexes = reportIndexes(wantedIndexes(table, tables), (label) => standing.has(label));
  if (words === undefined) return indexes;
  const pending = pendingName(table);
  const stands =
    words.objects.every((object) => standing.has(object.name)) &&
    standing.has(pending) &&
    Number(
      (
        await ask(
          `SELECT EXISTS (SELECT 1 FROM ${name} INDEXED BY ${quoteName(pending)} WHERE ${words.pendingSql})`,
        )
      )[0],
    ) === 0;
  return [...indexes, { kind: 'search', fields: words.words.fields, stands }];
}
