/**
 * Opens the configured store: the embedded one in its folder, or PostgreSQL if `databaseUrl` is set. Each is loaded only if used: both
 * together cost an idle process 20 MB and the start 100 ms.
 */
import { hash, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { secretsTable } from './accounts/admin-key.ts';
import { type Configuration, fingerprintOf } from './config/configuration.ts';
import { secretKeyBytes } from './config/refusals.ts';
import type { Settings } from './config/settings.ts';
import { mappableBytes, readMachineMemory } from './memory/program-memory.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import type { PostgresStore } from './store/postgres/postgres-store.ts';
import { sealStore } from './store/secrets/sealed-store.ts';
import { type SealOptions, secretKeyOf } from './store/secrets/secret-key-ring.ts';
import type { HomeOptions, SqliteHome } from './store/sqlite/home.ts';
import type { Membership, SqliteStore } from './store/sqlite/sqlite-store.ts';
import type { Store } from './store/store.ts';
import { sealedTables, storeTables } from './store-tables.ts';

/** For `compose`, which knows no engine. */
export type StoreMembership = Membership;

type StoreSharing = {
  /** The membership of a store that shares the folder with those of other threads. */
  readonly membership?: Membership | undefined;
  /** False: the embedded store does not wait for the disk, for tests. */
  readonly durable?: boolean;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** Labels of indexes that are made after a migration of documents. */
  readonly late?: ReadonlySet<string>;
  /** Asked between two parts of what a store reads from its database (event-loop.ts). */
  readonly nextRead?: (() => Promise<void> | undefined) | undefined;
  /** Asked before the embedded store reads another page. */
  readonly nextPage?: (() => Promise<void> | undefined) | undefined;
};

/**
 * Opens the store with encrypted secrets.
 * @throws errors of a store that cannot be opened, and SecretKeyFailure; each says why
 */
export async function openStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
  sharing: StoreSharing = {},
): Promise<SqliteStore | PostgresStore> {
  const store = await openPlainStore(configuration, settings, observe, sharing);
  try {
    return await sealStore(store, sealOptions(settings, observe));
  } catch (error) {
    await store.close();
    throw error;
  }
}

export function sealOptions(
  { data, secretKey, secretKeyPrevious }: Pick<Settings, 'data' | 'secretKey' | 'secretKeyPrevious'>,
  observe: Observe,
): SealOptions {
  const written = [secretKey, ...(secretKeyPrevious?.split(',') ?? [])];
  const given = written
    .map((text) => (text === undefined ? undefined : secretKeyBytes(text.trim())))
    .filter((bytes) => bytes !== undefined)
    .map(secretKeyOf);
  return {
    ...{ tables: sealedTables, keyTable: secretsTable, given, file: join(data, 'secret.key') },
    ...{ random: randomBytes, clock: Date.now, observe },
  };
}

/**
 * Opens the folder of the embedded store for stores in several threads (`membership`).
 * @throws errors of a store that cannot be opened; each says why
 */
export async function openStoreHome(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
): Promise<SqliteHome> {
  const { openHome } = await import('./store/sqlite/home.ts');
  return openHome(homeOptions(configuration, settings, observe));
}

function homeOptions(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
  late?: ReadonlySet<string>,
): HomeOptions {
  const mappedBytesMax = Math.min(
    settings.mappedMebibytesMax * 1_048_576,
    mappableBytes(readMachineMemory()),
  );
  return {
    ...settings,
    folder: settings.data,
    tables: storeTables(configuration, late),
    mappedBytesMax,
    observe,
  };
}

/** @throws errors of a store that cannot be opened; each says why */
export async function openPlainStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
  { membership, durable = true, clock = Date.now, late, nextRead, nextPage }: StoreSharing = {},
): Promise<SqliteStore | PostgresStore> {
  const tables = storeTables(configuration, late);
  const { databaseUrl: url, databaseSchema: schema } = settings;
  if (url === undefined) {
    const { joinSqliteStore, openSqliteStore } = await import('./store/sqlite/sqlite-store.ts');
    const reading = { ...settings, observe, nextPage };
    if (membership !== undefined) return joinSqliteStore({ ...reading, tables }, membership);
    const options = homeOptions(configuration, settings, observe, late);
    return openSqliteStore({ ...reading, ...options, clock, durable });
  }
  const program = packageVersion();
  const facts = fingerprintOf(configuration, settings, program, (text) => hash('sha256', text, 'base64url'));
  const { openPostgresStore } = await import('./store/postgres/postgres-store.ts');
  return openPostgresStore({ ...settings, url, schema, tables, program, facts, clock, observe, nextRead });
}

/**
 * Opens the store to read it, beside servers and without a change: missing tables are empty, and indexes are not looked at. What it commits
 * never settles on the embedded store.
 * @returns undefined if there is no store
 */
export async function openLookingStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
): Promise<Store | undefined> {
  const tables = storeTables(configuration);
  const { databaseUrl: url, databaseSchema: schema } = settings;
  if (url !== undefined) {
    const { openLookingStore: openSchema } = await import('./store/postgres/postgres-store.ts');
    return openSchema({ ...settings, url, schema, tables, observe });
  }
  const { openLookingStore: openFile } = await import('./store/sqlite/sqlite-store.ts');
  return openFile({ ...homeOptions(configuration, settings, observe), ...settings });
}

/**
 * Looks for stored rows that a start or `comity migrate` would refuse because a unique field has equal values in them. Reads the tables of
 * unique indexes that are still to be made; others have no such rows.
 * @param except tables whose rows a pending migration changes
 * @returns a sentence for each field
 */
export async function lookForDuplicates(
  configuration: Configuration,
  settings: Settings,
  except: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { databaseUrl: url, databaseSchema: schema, databaseConnectTimeoutMs: connectTimeoutMs } = settings;
  const tables = storeTables(configuration).map((table) =>
    except.has(table.name) ? { ...table, unique: [] } : table,
  );
  if (url !== undefined) {
    const { findDuplicates } = await import('./store/postgres/schema/migrate.ts');
    const { addressOf } = await import('./store/postgres/connection/address.ts');
    return findDuplicates(addressOf(url), { schema, tables, connectTimeoutMs, program: packageVersion() });
  }
  const { lookForDuplicates: lookInFile } = await import('./store/sqlite/sqlite-store.ts');
  return lookInFile({ ...homeOptions(configuration, settings, () => undefined), tables });
}

/** The size of the files of the embedded store; undefined for one that this program does not have on its disk. */
export function storeBytes({
  databaseUrl,
  data,
}: Pick<Settings, 'databaseUrl' | 'data'>): number | undefined {
  if (databaseUrl !== undefined) return undefined;
  const sizes = ['comity.db', 'comity.db-wal'].map(
    (name) => statSync(join(data, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
