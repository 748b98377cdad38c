/**
 * Opens the store that the settings ask for: the embedded one in its folder, or PostgreSQL where `databaseUrl` names one. Each is
 * loaded only where it is used: both together cost an idle process 20 MB and the start 100 ms.
 */
import { hash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { secretsTable } from './auth/admin-key.ts';
import type { Configuration } from './config/configuration.ts';
import { fingerprintOf } from './config/fingerprint.ts';
import { secretKeyBytes } from './config/refusals.ts';
import type { Settings } from './config/settings.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import type { PostgresStore } from './store/postgres/open.ts';
import { sealStore } from './store/secrets/sealed-store.ts';
import type { SealOptions } from './store/secrets/secret-key-ring.ts';
import { secretKeyOf } from './store/secrets/secret-keys.ts';
import type { SqliteStore } from './store/sqlite/open.ts';
import { sealedTables, storeTables } from './store-tables.ts';

/**
 * The store, with its secrets encrypted.
 * @throws what the store throws that cannot be opened, and SecretKeyFailure; each says why
 */
export async function openStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
): Promise<SqliteStore | PostgresStore> {
  const store = await openPlainStore(configuration, settings, observe);
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

/** @throws what the store throws that cannot be opened; each says why */
export async function openPlainStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
): Promise<SqliteStore | PostgresStore> {
  const tables = storeTables(configuration);
  const { databaseUrl: url, databaseSchema: schema, data: folder } = settings;
  if (url === undefined) {
    const { openSqliteStore } = await import('./store/sqlite/open.ts');
    return openSqliteStore({ ...settings, folder, tables, observe });
  }
  const program = packageVersion();
  const facts = fingerprintOf(configuration, settings, program, (text) => hash('sha256', text, 'base64url'));
  const { openPostgresStore } = await import('./store/postgres/open.ts');
  return openPostgresStore({ ...settings, url, schema, tables, program, facts, observe });
}
