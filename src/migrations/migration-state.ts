/**
 * The state of migrations: the rows in which a store remembers its documents, and what of it is pending for a configuration: the declared shape of each collection, the migrations
 * that were made, and the run under way in each collection. Every change of a row expects it as it was read, so that of several processes one
 * succeeds.
 */
import type { Configuration } from '../config/configuration.ts';
import type { DeclaredMigration } from '../config/migrations.ts';
import type { Collection } from '../model/collection.ts';
import { byId } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import { rowBatches } from '../store/in-batches.ts';
import { type Change, keptRow, type Row, type Store } from '../store/store.ts';
import type { DeclaredShape } from './declared-shape.ts';

/** Services of the program, and the application whose documents are judged and migrated. */
export type MigrationServices = Pick<Services, 'store' | 'clock' | 'newId' | 'observe' | 'settings'> & {
  readonly configuration: Configuration;
  /** URL of the module whose default export is the configuration; undefined: batches run in the thread that calls. */
  readonly module: string | undefined;
  /** Version of the program. */
  readonly program: string;
};

export type PendingRun = {
  readonly collection: string;
  readonly migrations: readonly DeclaredMigration[];
  readonly isLast: boolean;
  /** They were made already, and are again for documents that an old process wrote after them. */
  readonly isAgain: boolean;
};

export type MigrationState = {
  /** In the order in which they run. */
  readonly runs: readonly PendingRun[];
  /** Collections that are removed on purpose, and not recorded yet. */
  readonly removals: readonly DeclaredMigration[];
  /** A sentence each; nothing runs while there is one. */
  readonly contradictions: readonly string[];
};

export function migrationState(
  configuration: MigratedConfiguration,
  { made, runs }: MigrationRows,
): MigrationState {
  const { migrations } = configuration;
  const collections = migratedCollections(configuration);
  const done = new Set(made.map(({ migration }) => migration));
  const contradictions = contradictionsIn(migrations, made);
  const declared = new Map(migrations.map((each) => [each.id, each]));
  for (const { row } of runs.values()) {
    for (const id of row.migrations) {
      if (!declared.has(id))
        contradictions.push(
          `the migration ${id} of ${row.collection} has begun, and is no longer declared: declare it again`,
        );
    }
  }
  const pending = migrations.filter(({ id }) => !done.has(id));
  const names = new Set(
    pending
      .filter(({ up, collection }) => up !== undefined && collections.has(collection))
      .map(({ collection }) => collection),
  );
  const ordered: PendingRun[] = [];
  for (const collection of names) {
    const chain = pending.filter((each) => each.collection === collection && each.up !== undefined);
    const begun = runs.get(collection)?.row.migrations ?? [];
    const first = chain.filter(({ id }) => begun.includes(id));
    const rest = chain.filter(({ id }) => !begun.includes(id));
    if (first.length > 0)
      ordered.push({ collection, migrations: first, isLast: rest.length === 0, isAgain: false });
    if (rest.length > 0) ordered.push({ collection, migrations: rest, isLast: true, isAgain: false });
  }
  for (const { row } of runs.values()) {
    const chain = migrations.filter(({ id }) => row.migrations.includes(id));
    if (chain.length === 0 || !collections.has(row.collection) || !chain.every(({ id }) => done.has(id)))
      continue;
    const isLast = !names.has(row.collection);
    ordered.unshift({ collection: row.collection, migrations: chain, isLast, isAgain: true });
  }
  const removals = pending.filter(({ up, collection }) => up === undefined || !collections.has(collection));
  return { runs: ordered, removals, contradictions };
}

function contradictionsIn(migrations: readonly DeclaredMigration[], made: readonly MadeRow[]): string[] {
  const found: string[] = [];
  const places = new Map(migrations.map(({ id }, index) => [id, index]));
  const last = new Map<string, { readonly id: string; readonly place: number }>();
  for (const { migration, collection, madeAt, program } of made) {
    const place = places.get(migration);
    if (place === undefined) {
      found.push(
        `the migration ${migration} of ${collection} was made ${madeAt} (comity ${program}), and is not declared: declare it again, or run the configuration that made it`,
      );
      continue;
    }
    const before = last.get(collection);
    if (before !== undefined && before.place > place) {
      found.push(
        `the migration ${migration} was made after ${before.id}, and is declared before it: restore the order`,
      );
    } else last.set(collection, { id: migration, place });
  }
  const done = new Set(made.map(({ migration }) => migration));
  for (const [place, { id, collection }] of migrations.entries()) {
    const newest = last.get(collection);
    if (!done.has(id) && newest !== undefined && place < newest.place) {
      found.push(
        `the migration ${id} is declared before ${newest.id}, which was made already: new migrations go to the end of the list`,
      );
    }
  }
  return found;
}

export const migrationsTable = 'document_migrations';

/** The shape that the documents of a collection have. */
export type ShapeRow = {
  readonly kind: 'shape';
  readonly collection: string;
  readonly fingerprint: string;
  readonly shape: DeclaredShape;
  /** Fingerprints of earlier shapes whose documents all fit this one, newest last. */
  readonly earlier: readonly string[];
  /** Migrations that led to it, for documents that an old process wrote after them; absent: none did. */
  readonly migrations?: readonly string[];
  /** Defaults were filled in, or date-times kept in UTC, as they are in documents that an old process wrote after that. */
  readonly filled?: true;
  /** ISO 8601, as all times here. */
  readonly since: string;
  readonly program: string;
};

/** A migration that was made. It is never made again. */
export type MadeRow = {
  readonly kind: 'made';
  readonly migration: string;
  readonly collection: string;
  /** Its place among all that were made. */
  readonly order: number;
  readonly madeAt: string;
  /** Documents that the run looked at, and those that it changed. */
  readonly documents: number;
  readonly changed: number;
  readonly program: string;
};

/** Migrations of one collection that are made in one pass. */
export type RunRow = {
  readonly kind: 'run';
  readonly collection: string;
  /** Ids, in their order. None: defaults are filled in and date-times kept in UTC where a document does not fit. */
  readonly migrations: readonly string[];
  /**
   * `pass`: every document last written before the run is migrated, in order of id. `final`: those written since that do not fit are.
   */
  readonly phase: 'pass' | 'final';
  /** Revision of the run's beginning; null in its first row, whose own revision it is. */
  readonly began: number | null;
  /** The last id that is done in this phase; null: none. */
  readonly after: string | null;
  readonly documents: number;
  readonly changed: number;
  /** Processes that have run it since the last batch was committed, and did not end in order; absent: none. */
  readonly starts?: number;
  /** The process that runs it. */
  readonly runner: string;
  readonly startedAt: string;
};

type Kept = ShapeRow | MadeRow | RunRow;

/** A row with what its next change expects. */
export type Known<R> = { readonly row: R; readonly rev: number; readonly createdAt: number };

export type MigrationRows = {
  readonly shapes: ReadonlyMap<string, Known<ShapeRow>>;
  readonly runs: ReadonlyMap<string, Known<RunRow>>;
  /** In the order in which they were made. */
  readonly made: readonly MadeRow[];
};

export function idOf(
  kept: Pick<Kept, 'kind'> & { readonly migration?: string; readonly collection: string },
) {
  return `${kept.kind}.${kept.kind === 'made' ? kept.migration : kept.collection}`;
}

/** @param now milliseconds since the epoch */
export function rowChange<R extends Kept>(row: R, known: Known<R> | undefined, now: number): Change {
  const createdAt = known?.createdAt ?? now;
  return {
    ...{ table: migrationsTable, id: idOf(row) },
    expect: known === undefined ? { absent: true } : { rev: known.rev },
    next: keptRow(JSON.stringify(row), null, createdAt, Math.max(now, createdAt)),
  };
}

export function rowRemoval(known: Known<Kept>): Change {
  return { table: migrationsTable, id: idOf(known.row), expect: { rev: known.rev }, next: null };
}

/** Reads by the kind of the row and the collection. */
export async function readRun(store: Store, collection: string): Promise<Known<RunRow> | undefined> {
  const row = await store.read(migrationsTable, idOf({ kind: 'run', collection }));
  return row === undefined ? undefined : knownOf<RunRow>(row);
}

/** Rows of a read; src/memory/row-reads.ts has their octets. */
export const migrationRowsPerRead = 16;

export async function readMigrationRows(
  store: Pick<Store, 'plan' | 'holdsDocuments'>,
): Promise<MigrationRows> {
  const shapes = new Map<string, Known<ShapeRow>>();
  const runs = new Map<string, Known<RunRow>>();
  const made: MadeRow[] = [];
  // A store of an earlier version, which is only looked at, has no such table.
  if (!(await store.holdsDocuments(migrationsTable))) return { shapes, runs, made };
  const plan = store.plan({
    ...{ table: migrationsTable, filter: { op: 'always' }, sort: byId, limit: migrationRowsPerRead },
  });
  for await (const rows of rowBatches(plan, migrationRowsPerRead)) {
    for (const row of rows) {
      const known = knownOf<Kept>(row);
      const kept = known.row;
      if (kept.kind === 'shape') shapes.set(kept.collection, { ...known, row: kept });
      else if (kept.kind === 'run') runs.set(kept.collection, { ...known, row: kept });
      else made.push(kept);
    }
  }
  return { shapes, runs, made: made.sort((one, other) => one.order - other.order) };
}

function knownOf<R>({ doc, rev, createdAt }: Row): Known<R> {
  return { row: JSON.parse(doc) as R, rev, createdAt };
}

/** `accounts` is absent where no accounts exist, as in a test. */
export type MigratedConfiguration = Pick<Configuration, 'collections' | 'migrations'> &
  Partial<Pick<Configuration, 'accounts'>>;

/**
 * Accounts belong to them if the configuration declares fields or a migration of accounts, or if the store remembers their shape, so that
 * fields which are no longer declared are noticed. Otherwise their members are Comity's own.
 * @param remembered the collections whose shape the store remembers
 */
export function migratedCollections(
  { collections, accounts, migrations }: MigratedConfiguration,
  remembered?: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, Collection> {
  if (accounts === undefined) return collections;
  const { users, fieldNames } = accounts;
  const isMigrated =
    fieldNames.size > 0 ||
    remembered?.has(users.name) === true ||
    migrations.some(({ collection }) => collection === users.name);
  return isMigrated ? new Map([...collections, [users.name, users]]) : collections;
}

export function migratedCollection(
  { collections, accounts }: MigratedConfiguration,
  name: string,
): Collection | undefined {
  return accounts?.users.name === name ? accounts.users : collections.get(name);
}

type ShownMigration = {
  readonly id: string;
  readonly collection: string;
  readonly state: 'made' | 'running' | 'pending';
  /** When it was made, or begun; null: it is pending. */
  readonly at: string | null;
  /** Documents that it looked at, and those that it changed; null: it is pending. */
  readonly documents: number | null;
  readonly changed: number | null;
  /** Version of the program that made it. */
  readonly program: string | null;
};

/** In the order in which they were made, then in the declared one. */
export async function shownMigrations(
  store: Pick<Store, 'plan' | 'holdsDocuments'>,
  { migrations }: Pick<MigratedConfiguration, 'migrations'>,
): Promise<readonly ShownMigration[]> {
  const { made, runs } = await readMigrationRows(store);
  const done = new Set(made.map(({ migration }) => migration));
  const shown: ShownMigration[] = made.map(
    ({ migration, collection, madeAt, documents, changed, program }) => ({
      ...{ id: migration, collection, state: 'made', at: madeAt, documents, changed, program },
    }),
  );
  for (const { id, collection } of migrations) {
    if (done.has(id)) continue;
    const run = runs.get(collection)?.row;
    const isRunning = run?.migrations.includes(id) === true;
    shown.push({
      ...{ id, collection, state: isRunning ? 'running' : 'pending', program: null },
      at: isRunning ? run.startedAt : null,
      documents: isRunning ? run.documents : null,
      changed: isRunning ? run.changed : null,
    });
  }
  return shown;
}
