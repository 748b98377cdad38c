/** PostgreSQL as the contract suite opens it: each store over a database of its own, as good as new. */
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
    async dispose() {
      await store.close();
      await database.dispose();
      remove();
    },
  };
};
