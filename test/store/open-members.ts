/** Several stores over one folder, as the workers of a program have them. */
import { randomUUID } from 'node:crypto';
import { createTallies, openHome, type SqliteHome } from '../../src/store/sqlite/home.ts';
import { joinSqliteStore, type SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Table } from '../../src/store/store.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

export type Members = {
  readonly stores: readonly SqliteStore[];
  readonly home: SqliteHome;
  close(): Promise<void>;
};

export function openMembers(options: {
  readonly tables: readonly Table[];
  readonly count: number;
  readonly folder?: string;
}): Members {
  const { tables, count, folder = temporaryFolder() } = options;
  const home = openHome({ folder, tables });
  const tally = createTallies(Date.now);
  const alive = new Set<string>();
  const stores = Array.from({ length: count }, () => {
    const processId = randomUUID();
    alive.add(processId);
    return joinSqliteStore(
      { tables },
      {
        ...{ data: home.data, join: home.join, shared: true, processId },
        hasEnded: (other) => !alive.has(other),
        tally: async (tallies) => tally(tallies),
      },
    );
  });
  const close = async (): Promise<void> => {
    await Promise.all(stores.map((store) => store.close()));
    await home.close();
  };
  return { stores, home, close };
}
