/**
 * A store over a folder that another process may hold: it reads, takes no lock and changes nothing. Tables that the file lacks must not be
 * read (`Store.holdsDocuments` tells).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../store.ts';
import { connect } from './connection.ts';
import { type HomeOptions, homeConnection } from './home.ts';
import { createHomeState } from './home-state.ts';
import { convertDamage, refuseEmptyFile } from './integrity.ts';
import { countersOf } from './reconcile.ts';
import { joinSqliteStore, type StoreOptions } from './sqlite-store.ts';

/** @returns undefined if the folder has no store @throws DamagedStore */
export function openLookingStore(options: HomeOptions & StoreOptions): Store | undefined {
  const path = join(options.folder, 'comity.db');
  if (!existsSync(path)) return undefined;
  refuseEmptyFile(path);
  const connection = homeConnection(options);
  const numbers = convertDamage(path, () => {
    const database = connect(path, 'reader', connection);
    try {
      return countersOf(database);
    } finally {
      database.close();
    }
  });
  return joinSqliteStore(options, {
    data: { path, connection, numbers, state: createHomeState() },
    // There is no writer.
    join: (port) => port.unref(),
    ...{ shared: false, processId: '', hasEnded: () => true, tally: async () => [] },
  });
}
