/** Embedded SQLite as the contract suite opens it: each store over a folder of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store, Table } from '../../src/store/store.ts';
import type { Engine, Opened } from './engine.ts';

export const sqliteEngine: Engine = async (tables: readonly Table[]): Promise<Opened> => {
  const root = mkdtempSync(join(tmpdir(), 'comity-store-'));
  const open = (folder: string): Promise<Store> => openSqliteStore({ folder, tables });
  let store = await open(join(root, 'data'));
  let paths = 0;
  return {
    get store() {
      return store;
    },
    async reopen() {
      await store.close();
      store = await open(join(root, 'data'));
      return store;
    },
    freePath() {
      paths += 1;
      return join(root, `backup-${paths}.db`);
    },
    async openBackup(path) {
      const folder = join(root, `restored-${paths}`);
      await mkdir(folder);
      await copyFile(path, join(folder, 'comity.db'));
      return open(folder);
    },
    async dispose() {
      await store.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
};
