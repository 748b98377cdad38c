/**
 * Compares the declared migrations with those that a store records: which are pending, in which order they run, and which contradict what
 * was made before. Pure.
 */
import type { DeclaredMigration } from '../config/migrations.ts';
import { type MigratedConfiguration, migratedCollections } from './migrated-collections.ts';
import type { MadeRow, MigrationRows } from './migration-rows.ts';

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
