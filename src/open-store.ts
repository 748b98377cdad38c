/**
 * Opens the store that the settings ask for: the embedded one in its folder, or PostgreSQL where `databaseUrl` names one. Each is
 * loaded only where it is used: both together cost an idle process 20 MB and the start 100 ms.
 */
import { hash } from 'node:crypto';
import type { Configuration } from './config/configuration.ts';
import { fingerprintOf } from './config/fingerprint.ts';
import type { Settings } from './config/settings.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import type { PostgresStore } from './store/postgres/open.ts';
import type { SqliteStore } from './store/sqlite/open.ts';
import { storeTables } from './store-tables.ts';

/** @throws what the store throws that cannot be opened; each says why */
export async function openStore(
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
