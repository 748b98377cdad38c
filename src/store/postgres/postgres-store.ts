/**
 * The store on PostgreSQL: the contract of store/store.ts over one schema that any number of processes share. Each connection has one
 * job: a few carry all reads of bounded cost, some run long reads, one commits, one listens for changes by other processes.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { defaultSettings, type Settings } from '../../config/settings.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { tablesOf } from '../../model/filter.ts';
import type { Observe } from '../../observe/observation.ts';
import { octetsOfZone, type Zones } from '../aggregate.ts';
import { RunningBackups } from '../backup-file/write-file.ts';
import { reportIndexes, wantedIndexes } from '../declared-indexes.ts';
import { createCompiledShapes } from '../filter-shape.ts';
import { Lines } from '../lines.ts';
import { quoteName } from '../sql-text.ts';
import {
  endOfRevision,
  eventsTable,
  type ListQuery,
  type Store,
  StoreUnavailable,
  type Table,
  whenKnown,
} from '../store.ts';
import { countedRowsMax, type IndexReport, type StoreReport, type TableReport } from '../store-report.ts';
import { ChangeListeners } from '../table-changes.ts';
import { Changes, lostNumber } from './changes.ts';
import { Committer } from './commit/committer.ts';
import { isLostSql } from './commit/transaction.ts';
import { pendingSql } from './compile/expressions.ts';
import { type Address, addressOf } from './connection/address.ts';
import { type Connection, createConnection } from './connection/connection.ts';
import { createReadLane, type ReadLane, ScanLane } from './connection/lanes.ts';
import type { Cell } from './connection/session.ts';
import { type Peers, startPeers } from './peers.ts';
import { startBackup } from './postgres-backup.ts';
import { createPointReads, createVersions, type PointReads } from './read/point-reads.ts';
import { aggregateRows, type CompiledShape, countRows, findOld, makePlan } from './read/postgres-query.ts';
import { readFormer, readHead, readStretch, readTail, type TailSources } from './read/tail.ts';
import { openSchema } from './schema/open-schema.ts';
import {
  channelOf,
  type Layout,
  layoutsOf,
  physicalName,
  type TableNumbers,
} from './schema/schema-layout.ts';
import { type SearchSweep, startSearchSweep } from './search-sweep.ts';
import { createTallies } from './tallies.ts';

/** Settings that are absent have their defaults. */
type PostgresOptions = Partial<Settings> & {
  /** `postgres://user:password@host:5432/database` */
  readonly url: string;
  /** Default `comity`. */
  readonly schema?: string;
  readonly tables: readonly Table[];
  /** Version of the program, recorded with the migrations it makes. */
  readonly program?: string;
  /** Facts, by name, that must be equal in all processes on the schema; differences are logged. */
  readonly facts?: Readonly<Record<string, string>>;
  /** How often search texts that processes of an earlier declaration left are made. Default 10 s. */
  readonly searchSweepMs?: number;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  readonly observe?: Observe;
  /** Asked between two parts of the answer to a read (event-loop.ts). */
  readonly nextRead?: (() => Promise<void> | undefined) | undefined;
};

export type PostgresStore = Store & {
  readonly unitsWaiting: () => number;
};

/** Retries of a batch that the database rolled back, for a deadlock or its own restart. */
const retriesMax = 5;

/**
 * Opens the store; creates its schema if there is none.
 * @throws SchemaOutdated, SchemaTooNew, UnfitServer, SchemaBusy, DatabaseFailed, TypeError (an invalid URL or declaration)
 */
export async function openPostgresStore(options: PostgresOptions): Promise<PostgresStore> {
  const store = await open(options, false);
  if (store === undefined) throw new Error('the schema has no tables');
  return store;
}

/**
 * Opens a schema that may lack something, to read from the tables that it has.
 * @returns undefined if it has no store
 * @throws SchemaTooNew, UnfitServer, DatabaseFailed, TypeError (an invalid URL or declaration)
 */
export function openLookingStore(options: PostgresOptions): Promise<PostgresStore | undefined> {
  return open(options, true);
}

/** Tables that the schema has, and their references to each other. */
function presentTables(tables: readonly Table[], numbers: TableNumbers): readonly Table[] {
  return tables
    .filter(({ name }) => numbers.has(name))
    .map((table) => ({
      ...table,
      references: table.references.filter(({ table: target }) => numbers.has(target)),
    }));
}

async function open(options: PostgresOptions, looksOnly: boolean): Promise<PostgresStore | undefined> {
  const started = performance.now();
  const observe = options.observe ?? ignore;
  const { databaseConnectTimeoutMs: connectTimeoutMs, databaseSchema } = { ...defaultSettings, ...options };
  const schema = options.schema ?? databaseSchema;
  const address = addressOf(options.url);
  const { tables, program } = options;
  const { numbers } = await openSchema(address, {
    schema,
    tables,
    observe,
    connectTimeoutMs,
    ...(program === undefined ? {} : { program }),
    looksOnly,
  });
  if (looksOnly && numbers.size === 0) return undefined;
  const layouts = layoutsOf(looksOnly ? presentTables(tables, numbers) : tables, schema);
  const running = start(options, { address, schema, connectTimeoutMs, layouts, numbers, looksOnly, observe });
  // Another process would take over what this one claims before its first heartbeat.
  await Promise.all([running.changes.ready, running.peers.ready, running.committer.ready]);
  observe({
    kind: 'store-opened',
    engine: 'postgres',
    tables: layouts.length,
    durationMs: performance.now() - started,
  });
  return storeOver(running);
}

function ignore(): void {
  // No observer was given.
}

type OpenInputs = {
  readonly address: Address;
  readonly schema: string;
  readonly connectTimeoutMs: number;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly looksOnly: boolean;
  readonly observe: Observe;
};

type Running = {
  readonly schema: string;
  readonly layouts: ReadonlyMap<string, Layout>;
  readonly ordered: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly read: ReadLane;
  readonly scan: ScanLane;
  readonly rows: PointReads;
  readonly commits: Connection;
  readonly committer: Committer;
  readonly changes: Changes;
  readonly listeners: ChangeListeners;
  readonly backups: RunningBackups;
  /** Id in the list of processes. */
  readonly process: string;
  readonly peers: Peers;
  readonly sweep: SearchSweep;
  readonly lines: Lines;
};

function start(options: PostgresOptions, inputs: OpenInputs): Running {
  const { layouts, numbers, looksOnly, observe, ...place } = inputs;
  const { address, schema, connectTimeoutMs } = place;
  const settings = { ...defaultSettings, ...options };
  const { databaseTimeoutMs: timeoutMs } = settings;
  const onLost = (error: unknown): void => observe({ kind: 'store-failed', what: 'connection', error });
  const connecting = { address, connectTimeoutMs, onLost };
  const reading = { ...connecting, nextRead: options.nextRead };
  const read = createReadLane({ ...reading, timeoutMs }, settings.databaseReadConnections);
  const scan = new ScanLane(
    { ...reading, timeoutMs: settings.scanTimeoutMs },
    settings.databaseScanConnections,
    settings.readerQueueMax,
  );
  const listeners = new ChangeListeners();
  const changes = new Changes({
    ...place,
    pollMs: settings.databasePollMs,
    numbers,
    onChanged: (tables) => listeners.call(tables),
    readCounters: (known) => read.send({ sql: countersSqlOf(schema, looksOnly), values: [known] }),
    onLost() {
      observe({ kind: 'store-failed', what: 'acknowledged writes', error: new Error(lostText) });
      listeners.call([lostUnits]);
    },
    observe,
  });
  const process = randomUUID();
  const peers = startPeers({ send: read.send, schema, process, facts: options.facts ?? {}, observe });
  const commits = createConnection({ ...connecting, name: 'comity commit', timeoutMs });
  const named = new Map(layouts.map((layout) => [layout.table.name, layout]));
  const lines = new Lines(options);
  const committer = new Committer(
    {
      ...{ connection: commits, layouts, numbers, schema, channel: channelOf(schema), writer: process },
      ...{ timeoutMs, retriesMax, observe, revisions: lines.revisions },
      findOld: (table, updatedBefore, limit) => findOld(scan, layoutOf(named, table), updatedBefore, limit),
      onChanged: (touched) => {
        for (const [table, rev] of touched) changes.note(table, rev);
      },
      newestRev: looksOnly ? undefined : () => changes.newestRev,
      clock: options.clock,
      onRaised: () => void changes.poll(),
    },
    options,
  );
  const everyMs = options.searchSweepMs ?? 10_000;
  const sweep = startSearchSweep({ ...place, layouts, read, everyMs, observe });
  const backups = new RunningBackups((to, onProgress, whenCopied) =>
    startBackup({ url: options.url, schema, connectTimeoutMs }, to, onProgress, whenCopied),
  );
  return {
    ...{ schema, layouts: named, ordered: layouts, numbers },
    ...{ read, scan, commits, committer },
    rows: createPointReads(read, { layouts, numbers, schema, nextRead: options.nextRead }),
    ...{ changes, listeners, backups, lines },
    ...{ process, peers, sweep },
  };
}

/** A store that is only looked at may lack the table of raises. */
function countersSqlOf(schema: string, looksOnly: boolean): string {
  const lost = looksOnly ? 'false' : isLostSql(schema, 'known.rev');
  return `SELECT n, rev FROM ${quoteName(schema)}.comity_counters
UNION ALL SELECT DISTINCT ${lostNumber}, 0 FROM unnest($1::bigint[]) AS known (rev) WHERE ${lost}`;
}

const lostText =
  'they are lost: the database is at an earlier state than this process has seen, as after a failover to a standby that lagged';

/** Name among the listeners for the loss of units; no table has it. */
const lostUnits = '';

function layoutOf(layouts: ReadonlyMap<string, Layout>, table: string): Layout {
  const layout = layouts.get(table);
  if (layout === undefined) throw new TypeError(`no table is named ${table}`);
  return layout;
}

/** The table of a query, and the numbers of those that its filter looks at. */
function tablesFor(
  { layouts, numbers }: Pick<Running, 'layouts' | 'numbers'>,
  { table, filter }: Pick<ListQuery, 'table' | 'filter'>,
) {
  return {
    layout: layoutOf(layouts, table),
    tableNumber: numbers.get(table) ?? 0,
    relatedNumbers: tablesOf(filter).map((other) => numbers.get(other) ?? 0),
  };
}

function storeOver(running: Running): PostgresStore {
  const { schema, layouts, ordered, numbers, read, scan, committer, changes, listeners, lines } = running;
  const { backups, rows, sweep } = running;
  const onUnready = sweep.soon;
  const zones: Zones = new OctetCache({
    octetsMax: memoryBounds.postgresZones.octets,
    octetsOf: octetsOfZone,
  });
  const versions = createVersions(read, numbers, schema);
  const tally = createTallies(read, schema);
  const shapes = createCompiledShapes<CompiledShape>();
  let closing: Promise<void> | undefined;
  return {
    shared: true,
    processId: running.process,
    hasEnded: running.peers.hasEnded,
    lines,
    unitCharactersMax: committer.queue.unitCharactersMax,
    revision: () => undefined,
    read: rows.read,
    readMany: rows.readMany,
    readNewest: (table, id) =>
      lines.newest(table, id) ?? whenKnown(rows.read(table, id), (row) => ({ row, isProvisional: false })),
    async holdsDocuments(table) {
      if (!numbers.has(table)) return false;
      const sql = `SELECT 1 FROM ${quoteName(schema)}.${quoteName(table)} WHERE deleted_at IS NULL LIMIT 1`;
      return (await read.send({ sql, values: [] })).length > 0;
    },
    plan(query) {
      const tables = tablesFor(running, query);
      const named = (table: string): Layout => layoutOf(layouts, table);
      const frequentWords = running.sweep.frequentWords(query.table);
      const sources = { read, scan, versions, ...tables, layoutOf: named, schema, shapes };
      return makePlan({ ...sources, frequentWords, onUnready }, query);
    },
    count: async (table, filter, party) =>
      countRows({ scan, layout: layoutOf(layouts, table), schema, onUnready }, filter, party),
    aggregate: async (query, party) => {
      return aggregateRows({ scan, schema, ...tablesFor(running, query), onUnready, zones }, query, party);
    },
    version: versions.version,
    commit: (unit) => lines.commit(unit, (handed) => committer.commit(handed)),
    ...logReads({ read, scan, layout: layoutOf(layouts, eventsTable), schema }, changes),
    purgedTo: versions.purgedTo,
    isLost: async (rev) => {
      const [row] = await read.send({ sql: `SELECT ${isLostSql(schema)}`, values: [rev] });
      const isLost = row?.[0] === true;
      // A client that learns of the loss reads its lists again, and must not get a position from before it.
      if (isLost) await changes.poll();
      return isLost;
    },
    onLost: (listener) => listeners.add(lostUnits, listener),
    onAppend: (listener) => listeners.add(eventsTable, listener),
    onChange: (table, listener) => listeners.add(layoutOf(layouts, table).table.name, listener),
    tally,
    purge: async (table, updatedBefore, limit) =>
      committer.purge(layoutOf(layouts, table).table.name, updatedBefore, limit),
    report: (names) => {
      const tables = ordered.map(({ table }) => table);
      return reportStore({ scan, schema, layoutOf: (table) => layoutOf(layouts, table), tables }, names);
    },
    backup: (path, onProgress, whenCopied) => backups.run(path, onProgress, whenCopied),
    ping: () => ping(running),
    close() {
      closing ??= closeAll(running);
      return closing;
    },
    unitsWaiting: () => committer.queue.unitsWaiting,
  };
}

function logReads(
  log: TailSources,
  changes: Changes,
): Pick<Store, 'tail' | 'stretch' | 'logPosition' | 'former' | 'head'> {
  return {
    tail: (after, filter, limit, options) => readTail(log, { after, filter, limit, ...options }),
    stretch: (after, eventsMax) => readStretch(log, after, eventsMax),
    logPosition: () => endOfRevision(changes.known(eventsTable)),
    former: (id) => readFormer(log, id),
    head: () => readHead(log),
  };
}

/** Below the timeout of common probes, 1 s. */
const pingMs = 900;

/**
 * Checks reading and writing: a standby must get no requests, and neither must a process whose commits hang. A commit of its own shows that they
 * do not any more.
 * @throws StoreUnavailable also if the database does not respond within `pingMs`
 */
async function ping(running: Running): Promise<void> {
  const late = new AbortController();
  const looking = look(running);
  looking.catch(() => undefined);
  const silent = pause(pingMs, undefined, { signal: late.signal, ref: false }).then(
    () => Promise.reject(new StoreUnavailable(`the database did not respond within ${pingMs} ms`)),
    () => undefined,
  );
  try {
    await Promise.race([looking, silent]);
  } finally {
    late.abort();
  }
}

/** Skips the committing connection unless it is disconnected or its last batch failed. */
async function look({ read, commits, committer }: Running): Promise<void> {
  if (!commits.connected) await commits.send([{ sql: 'SELECT 1', values: [], prepared: false }]);
  const [row] = await read.send({ sql: 'SELECT pg_is_in_recovery()', values: [] });
  if (row?.[0] !== false) throw new StoreUnavailable('the database is a standby, which accepts no writes');
  if (committer.isStalled) await committer.probe();
}

/** In this order, so that accepted units are committed and notified. */
async function closeAll(running: Running): Promise<void> {
  const { backups, peers, sweep, committer, commits, changes, scan, read } = running;
  await backups.close();
  await sweep.stop();
  await peers.stop();
  await committer.close();
  await Promise.all([commits.close(), changes.close(), scan.close(), read.close()]);
}

/*
 * Reports on the store's tables and indexes in PostgreSQL (`Store.report`). Small tables are counted; of a larger one the server's own
 * estimate is taken, so that the cost does not grow with it. Sizes include indexes and long values.
 */

type Sources = {
  readonly scan: Pick<ScanLane, 'read'>;
  readonly schema: string;
  readonly layoutOf: (table: string) => Layout;
  readonly tables: readonly Table[];
};

type Ask = (sql: string, ...values: readonly string[]) => Promise<readonly (readonly Cell[])[]>;

async function reportStore(
  { scan, schema, layoutOf, tables }: Sources,
  names: readonly string[],
): Promise<StoreReport> {
  const ask: Ask = (sql, ...values) => scan.read({ sql, values, prepared: values.length > 0 });
  const [[version = 0] = []] = await ask(`SELECT max(number) FROM ${quoteName(schema)}.comity_migrations`);
  const sizes = new Map(
    (await ask(sizesSql, schema)).map(([name, bytes, live]) => [
      String(name),
      [Number(bytes), Number(live)] as const,
    ]),
  );
  const standing = new Set((await ask(indexesSql, schema)).map(([name]) => String(name)));
  const reports: TableReport[] = [];
  for (const name of names) {
    const layout = layoutOf(name);
    const [bytes, live] = sizes.get(name) ?? [0, 0];
    const rows = await rowsOf(ask, layout.name, live);
    reports.push({ name, ...rows, bytes, indexes: await indexesOf(ask, layout, tables, standing) });
  }
  const bytes = [...sizes.values()].reduce((sum, [size]) => sum + size, 0);
  return { bytes, schemaVersion: Number(version), tables: reports };
}

/** A table that was never analysed has -1 tuples, and a count of its own in the statistics. */
const sizesSql = `
SELECT c.relname, pg_total_relation_size(c.oid),
  CASE WHEN c.reltuples >= 0 THEN c.reltuples ELSE pg_stat_get_live_tuples(c.oid) END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'm')`;

const indexesSql = `
SELECT i.relname FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
WHERE n.nspname = $1::text AND x.indisvalid AND x.indisready AND x.indislive`;

async function rowsOf(
  ask: Ask,
  name: string,
  live: number,
): Promise<Pick<TableReport, 'rows' | 'isEstimate'>> {
  const [[seen, undeleted] = []] = await ask(
    `SELECT count(*), count(*) FILTER (WHERE deleted_at IS NULL) FROM (SELECT deleted_at FROM ${name} LIMIT ${countedRowsMax + 1}) AS first`,
  );
  if (Number(seen) <= countedRowsMax) return { rows: Number(undeleted), isEstimate: false };
  return { rows: Math.max(Math.round(live), countedRowsMax + 1), isEstimate: true };
}

async function indexesOf(
  ask: Ask,
  { table, name, search }: Layout,
  tables: readonly Table[],
  standing: ReadonlySet<string>,
): Promise<readonly IndexReport[]> {
  const wanted = wantedIndexes(table, tables);
  const indexes = reportIndexes(wanted, (label) => standing.has(physicalName(label)));
  const { words } = table;
  if (search === undefined || words === undefined) return indexes;
  const isMade = standing.has(search.words.name) && standing.has(search.pending.name);
  const stands =
    isMade &&
    (await ask(`SELECT EXISTS (SELECT FROM ${name} WHERE ${pendingSql(words.mark)})`))[0]?.[0] === false;
  return [...indexes, { kind: 'search', fields: words.fields, stands }];
}
