/**
 * What the read floors share: the lookup of one stored row, and the header fields that Comity sends as well.
 *
 * Read transactions last one turn of the event loop: outside a transaction every SELECT takes and gives back the
 * read lock of the write-ahead log by system calls (measured: 6.1 us against 2.2 us for one `get`).
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

const datesMax = 4_096;
const pathBytes = '/api/v1/products/'.length;

export type StoredRow = readonly [rev: number, doc: string, updatedAtMs: number];

/** Opens a read transaction at the first call in a turn of the event loop and ends it with the turn. */
export function createTurnReader(database: DatabaseSync): () => void {
  const begin = database.prepare('BEGIN');
  const commit = database.prepare('COMMIT');
  let open = false;
  const end = () => {
    open = false;
    commit.run();
  };
  return () => {
    if (open) return;
    open = true;
    begin.run();
    setImmediate(end);
  };
}

/** A prepared lookup by the identifier at the end of a request target. */
export function createLookup(database: DatabaseSync): (target: string) => StoredRow | undefined {
  const statement: StatementSync = database.prepare('SELECT rev, doc, updated_at FROM t WHERE id = ?');
  statement.setReturnArrays(true);
  const enterTurn = createTurnReader(database);
  return (target) => {
    enterTurn();
    return statement.get(target.slice(pathBytes)) as unknown as StoredRow | undefined;
  };
}

/** `Last-Modified` text, remembered by the second. */
export function createDateText(): (atMs: number) => string {
  const known = new Map<number, string>();
  return (atMs) => {
    const second = Math.floor(atMs / 1000);
    const text = known.get(second);
    if (text !== undefined) return text;
    if (known.size >= datesMax) known.clear();
    const made = new Date(second * 1000).toUTCString();
    known.set(second, made);
    return made;
  };
}

/** The validators and caching fields of a representation, as a flat list of names and values. */
export function validatorFields(rev: number, lastModified: string): string[] {
  return [
    'ETag',
    `"${rev}"`,
    'Last-Modified',
    lastModified,
    'Cache-Control',
    'no-cache',
    'Vary',
    'Accept, Accept-Encoding, Authorization, X-API-Key, Cookie',
    'API-Version',
    '1',
  ];
}
