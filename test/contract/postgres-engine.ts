/** PostgreSQL as the contract suite opens it: each store over a database of its own, as good as new. */
import pg from 'pg';
import { restore } from '../../src/store/postgres/postgres-restore.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Store } from '../../src/store/store.ts';
import { databaseWith } from '../harness/postgres-database.ts';
import { backupFiles } from './backup-files.ts';
import type { Engine } from './engine.ts';

export const postgresEngine: Engine = async (tables) => {
  const database = await databaseWith(tables);
  const open = (): Promise<Store> => openPostgresStore({ url: database.url, tables });
  let store = await open();
  const { remove, ...backups } = backupFiles(tables);
  return {
    ...backups,
    get store() {
      return store;
    },
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    async restore(path) {
      await store.close();
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      await client.query('DROP SCHEMA comity CASCADE');
      await client.end();
      const observe = (): void => undefined;
      const place = { url: database.url, schema: 'comity', connectTimeoutMs: 10_000 };
      const target = { ...place, tables, observe, program: 'test' };
      await restore(target, path, () => undefined, new AbortController().signal);
      store = await open();
      return store;
    },
    async dispose() {
      await store.close();
      await database.dispose();
      remove();
    },
  };
};
