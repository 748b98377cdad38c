/**
 * The rows in which a store remembers what its documents are: the declared shape of each collection, the migrations that were made, and the
 * run under way in each collection. Every change expects the row as it was read, so that of several processes one succeeds.
 */
import { byId } from '../model/filter.ts';
import { rowBatches } from '../store/in-batches.ts';
import { type Change, keptRow, type Row, type Store } from '../store/store.ts';
import type { DeclaredShape } from './declared-shape.ts';

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
