/** Where a store under the contract suite writes its backups, which are files of the embedded store whichever store wrote them; no tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Table } from '../../src/store/store.ts';
import type { Opened } from './engine.ts';

export type BackupFiles = Pick<Opened, 'freePath' | 'openBackup'> & {
  /** For the data of a store, beside them; not made yet. */
  readonly folder: string;
  remove(): void;
};

export function backupFiles(tables: readonly Table[]): BackupFiles {
  const root = mkdtempSync(join(tmpdir(), 'comity-contract-'));
  let paths = 0;
  return {
    folder: join(root, 'data'),
    freePath() {
      paths += 1;
      return join(root, `backup-${paths}.db`);
    },
    async openBackup(path) {
      const folder = join(root, `restored-${paths}`);
      await mkdir(folder);
      await copyFile(path, join(folder, 'comity.db'));
      return openSqliteStore({ folder, tables });
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
