/**
 * The tables of the floor programs, and their rows. The same columns as a Comity collection and its events, the same
 * documents, the same two indexes that `bench/comity.config.ts` declares.
 */
import { DatabaseSync } from 'node:sqlite';
import { productCreatedMs, productDocument, productId } from '../product.ts';

const cacheKiB = 65_536;
/** Reads by id over 10^6 rows: 1.33 times the rate of page reads by system calls. */
const mappedBytesMax = 1_073_741_824;

const tables = `
  CREATE TABLE t (id TEXT PRIMARY KEY, rev INTEGER NOT NULL, doc TEXT NOT NULL, owner TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER);
  CREATE TABLE events (rev INTEGER PRIMARY KEY, id TEXT UNIQUE, type TEXT, doc TEXT, created_at INTEGER);
`;
const indexes = `
  CREATE INDEX t_price ON t (json_extract(doc, '$.price'), id);
  CREATE UNIQUE INDEX t_sku ON t (json_extract(doc, '$.sku'));
`;

/** Opens a floor database with the settings that all floors share. */
export function openFloorStore(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -${cacheKiB}; PRAGMA mmap_size = ${mappedBytesMax}`,
  );
  return database;
}

/** Makes a new floor database with this many rows, in one transaction that need not survive a crash. */
export function seedFloor(file: string, rows: number): void {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; ${tables} BEGIN`);
  const insert = database.prepare('INSERT INTO t VALUES (?, ?, ?, NULL, ?, ?, NULL)');
  for (let index = 0; index < rows; index += 1) {
    const atMs = productCreatedMs(index);
    insert.run(productId(index), index + 1, productDocument(index), atMs, atMs);
  }
  database.exec(`${indexes} COMMIT; ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
}
