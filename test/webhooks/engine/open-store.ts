/** The embedded store for all tests of a file, closed when they are over. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';

export async function openStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'comity-engine-'));
  const store = await openSqliteStore({ folder, tables: storeTables({ collections: new Map() }) });
  after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return store;
}
