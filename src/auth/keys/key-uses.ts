/**
 * When keys were last used (`lastUsedAt`), noted beside the requests and not on their way: uses wait in memory, at most one for each
 * key, and go into the rows of the keys a second later, some hundred at a time. A crash loses what waits.
 *
 * The time stands in the served row, so that lists can show it and be sorted by it. It is written at most once in `keyUseSeconds`
 * for each key, by whichever process sees it used, since each write changes the key's entity tag; no verdict rests on that row.
 * `updatedAt` stays, because the key was not changed. A use whose write loses a race waits for the next unit.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { searchText } from '../../model/collection.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Change, Row, Store } from '../../store/store.ts';
import { keysTable } from '../tables.ts';
import type { Key } from './key-rows.ts';

export type KeyUses = {
  /** Least time between two notes of one key. */
  readonly intervalMs: number;
  /** Keeps the use, soon, in the background; never throws. */
  note(key: string, atMs: number): void;
  /** Writes what waits. */
  close(): Promise<void>;
};

export type KeyUsesOptions = {
  readonly store: Pick<Store, 'read' | 'commit'>;
  readonly observe: Observe;
  readonly keyUseSeconds: number;
  /** Of the collection of keys: whoever writes a row writes its search text. */
  readonly searchFields: readonly string[];
  /** How long a use waits for others to be written with it. */
  readonly delayMs?: number;
};

/** Keys whose use waits; further ones are noted when they are used again. */
const waitingMax = memoryBounds.keyUses.entries;
/** Rows in one unit, and so the most that uses cost a second. */
const rowsPerUnitMax = 250;

export function createKeyUses(options: KeyUsesOptions): KeyUses {
  const { store, observe, searchFields, delayMs = 1000 } = options;
  const intervalMs = options.keyUseSeconds * 1000;
  const waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  async function changeOf([id, atMs]: readonly [string, number]): Promise<Change | undefined> {
    const row = await store.read(keysTable, id);
    return row === undefined ? undefined : useChange(row, atMs, intervalMs, searchFields);
  }

  async function write(): Promise<void> {
    const uses = [...waiting].slice(0, rowsPerUnitMax);
    for (const [id] of uses) waiting.delete(id);
    let changes = (await Promise.all(uses.map(changeOf))).filter((change) => change !== undefined);
    while (changes.length > 0) {
      const commit = await store.commit({ changes, events: [] });
      if (commit.outcome === 'committed') return;
      const lost = changes[commit.change];
      changes = changes.filter((change) => change !== lost);
      for (const [id, atMs] of uses) if (id === lost?.id && !waiting.has(id)) waiting.set(id, atMs);
    }
  }

  function begin(): Promise<void> {
    timer = undefined;
    writing = writing
      .then(write)
      .catch((error) => observe({ kind: 'store-failed', what: 'key uses', error }))
      .then(() => schedule());
    return writing;
  }

  function schedule(): void {
    if (waiting.size === 0 || timer !== undefined || isClosed) return;
    timer = setTimeout(begin, delayMs);
    timer.unref();
  }

  return {
    intervalMs,
    note(key, atMs) {
      if (isClosed || (waiting.size >= waitingMax && !waiting.has(key))) return;
      waiting.set(key, atMs);
      schedule();
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await writing;
      while (waiting.size > 0) await begin();
    },
  };
}

/** Undefined: another process has noted a use of about the same time. */
function useChange(
  row: Row,
  atMs: number,
  intervalMs: number,
  searchFields: readonly string[],
): Change | undefined {
  const { createdAt, updatedAt, ...fields } = JSON.parse(row.doc) as Key;
  if (fields.lastUsedAt !== undefined && atMs - Date.parse(fields.lastUsedAt) < intervalMs) return undefined;
  const used = { ...fields, lastUsedAt: new Date(atMs).toISOString() };
  const next = {
    doc: JSON.stringify({ ...used, createdAt, updatedAt }),
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    deletedAt: null,
    search: searchText(searchFields, used),
    references: [],
  };
  return { table: keysTable, id: row.id, expect: { rev: row.rev }, next };
}
