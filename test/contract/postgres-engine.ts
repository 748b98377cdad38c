/** PostgreSQL as the contract suite opens it: each store over a database of its own, as good as new. */
import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store, Table } from '../../src/store/store.ts';
import { databaseWith } from '../harness/postgres-database.ts';
import type { Engine, Opened } from './engine.ts';

export const postgresEngine: Engine = async (tables: readonly Table[]): Promise<Opened> => {
  const database = await databaseWith(tables);
  const open = (): Promise<Store> => openPostgresStore({ url: database.url, tables });
  let store = await open();
  const root = mkdtempSync(join(tmpdir(), 'comity-contract-'));
  let paths = 0;
  return {
    get store() {
      return store;
    },
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    freePath() {
      paths += 1;
      return join(root, `backup-${paths}.db`);
    },
    // A backup is a file of the embedded store, whichever store wrote it.
    async openBackup(path) {
      const folder = join(root, `restored-${paths}`);
      await mkdir(folder);
      await copyFile(path, join(folder, 'comity.db'));
      return openSqliteStore({ folder, tables });
    },
    async dispose() {
      await store.close();
      await database.dispose();
      rmSync(root, { recursive: true, force: true });
    },
  };
};
