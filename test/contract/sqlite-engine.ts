/** Embedded SQLite as the contract suite opens it: each store over a folder of its own. */
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { backupFiles } from './backup-files.ts';
import type { Engine } from './engine.ts';

export const sqliteEngine: Engine = async (tables) => {
  const { folder, remove, ...backups } = backupFiles(tables);
  const open = (): Promise<Store> => openSqliteStore({ folder, tables });
  let store = await open();
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
      remove();
    },
  };
};
