/** Embedded SQLite as the contract suite opens it: each store over a folder of its own. */
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { patienceMs } from '../harness/until.ts';
import { backupFiles } from './backup-files.ts';
import type { Engine } from './engine.ts';

export const sqliteEngine: Engine = async (tables) => {
  const { folder, remove, ...backups } = backupFiles(tables);
  const open = (): Promise<Store> => openSqliteStore({ folder, tables, scanTimeoutMs: patienceMs });
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
    async restore(path) {
      await store.close();
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      copyFileSync(path, join(folder, 'comity.db'));
      store = await open();
      return store;
    },
    async dispose() {
      await store.close();
      remove();
    },
  };
};
