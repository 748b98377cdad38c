/** A folder of its own for each test, and the open stores in it closed when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { HomeOptions } from '../../src/store/sqlite/home.ts';
import { openSqliteStore, type SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { tables } from '../contract/fixture.ts';
import { patienceMs } from '../harness/until.ts';

export type Folder = { readonly path: string; open(options?: Partial<HomeOptions>): Promise<SqliteStore> };

export function folderFor(context: TestContext): Folder {
  const root = mkdtempSync(join(tmpdir(), 'comity-sqlite-'));
  const path = join(root, 'data');
  const stores: SqliteStore[] = [];
  context.after(async () => {
    for (const store of stores) await store.close();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    path,
    async open(options = {}) {
      const store = await openSqliteStore({ folder: path, tables, scanTimeoutMs: patienceMs, ...options });
      stores.push(store);
      return store;
    },
  };
}
