/**
 * Opens the store that the settings ask for: the embedded one in its folder, or PostgreSQL where `databaseUrl` names one.
 */
import { hash } from 'node:crypto';
import type { Configuration } from './config/configuration.ts';
import { fingerprintOf } from './config/fingerprint.ts';
import type { Settings } from './config/settings.ts';
import type { Observe } from './observe/observation.ts';
import { packageVersion } from './package-version.ts';
import { openPostgresStore, type PostgresStore } from './store/postgres/open.ts';
import { openSqliteStore, type SqliteStore } from './store/sqlite/open.ts';
import { storeTables } from './store-tables.ts';

/** @throws what the store throws that cannot be opened; each says why */
export function openStore(
  configuration: Configuration,
  settings: Settings,
  observe: Observe,
): Promise<SqliteStore | PostgresStore> {
  const tables = storeTables(configuration);
  const { databaseUrl: url, databaseSchema: schema, data: folder } = settings;
  if (url === undefined) return openSqliteStore({ ...settings, folder, tables, observe });
  const program = packageVersion();
  const facts = fingerprintOf(configuration, settings, program, (text) => hash('sha256', text, 'base64url'));
  return openPostgresStore({ ...settings, url, schema, tables, program, facts, observe });
}
