/**
 * A store over a folder that another process may hold: it reads, takes no lock and changes nothing. Tables that the file lacks must not be
 * read (`Store.holdsDocuments`).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { identify } from '../backup-file/migrate.ts';
import type { Store } from '../store.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import { type HomeOptions, homeConnection } from './home.ts';
import { createHomeState } from './home-state.ts';
import { convertDamage, refuseEmptyFile } from './integrity.ts';
import { countersOf, findDuplicates } from './reconcile.ts';
import { joinSqliteStore, type StoreOptions } from './sqlite-store.ts';
import { layoutsOf } from './table-layout.ts';

/** @returns undefined if the folder has no store @throws DamagedStore, UnknownDatabase */
export function openLookingStore(options: HomeOptions & StoreOptions): Store | undefined {
  const connection = homeConnection(options);
  const path = join(options.folder, 'comity.db');
  const numbers = lookAt(options.folder, connection, countersOf);
  if (numbers === undefined) return undefined;
  return joinSqliteStore(options, {
    data: { path, connection, numbers, state: createHomeState() },
    // There is no writer.
    join: (port) => port.unref(),
    ...{ shared: false, processId: '', hasEnded: () => true, tally: async () => [] },
  });
}

/** Sentences about declared unique fields whose stored values are not unique, which a start refuses. @throws DamagedStore, UnknownDatabase */
export function lookForDuplicates(options: HomeOptions): readonly string[] {
  const layouts = layoutsOf(options.tables);
  const find = (database: DatabaseSync): readonly string[] => findDuplicates(database, layouts);
  return lookAt(options.folder, homeConnection(options), find) ?? [];
}

function lookAt<T>(
  folder: string,
  connection: ConnectionOptions,
  look: (database: DatabaseSync) => T,
): T | undefined {
  const path = join(folder, 'comity.db');
  if (!existsSync(path)) return undefined;
  refuseEmptyFile(path);
  return convertDamage(path, () => {
    const database = connect(path, 'reader', connection);
    try {
      identify(database, path);
      return look(database);
    } finally {
      database.close();
    }
  });
}
