/** Migrations of documents as an administrator reads them: those that the store remembers, and the declared ones that it does not. */
import type { Store } from '../store/store.ts';
import type { MigratedConfiguration } from './migrated-collections.ts';
import { readMigrationRows } from './migration-rows.ts';

export type ShownMigration = {
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
