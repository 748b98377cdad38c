/** The collections whose documents are judged and migrated: those of the configuration, and accounts that have fields of their own. */
import type { Configuration } from '../config/configuration.ts';
import type { Collection } from '../model/collection.ts';

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
