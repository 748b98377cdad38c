/** One embedded store for all tests of a file. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { storeTables } from '../../../src/store-tables.ts';

export async function openSuiteStore(): Promise<Store> {
  let close: () => Promise<void> = async () => undefined;
  after(() => close());
  const folder = await mkdtemp(join(tmpdir(), 'comity-webhooks-'));
  const store = await openSqliteStore({ folder, tables: storeTables({ collections: new Map() }) });
  close = async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return store;
}
