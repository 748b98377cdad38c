/**
 * Records when keys were last used (`lastUsedAt`), outside of requests: uses are queued in memory, at most one for each key, and
 * written a second later, some hundred in one unit. A crash loses the queue. The time is part of the served row, so that lists show and
 * sort by it. Each key's is written at most once in `keyUseSeconds` by all processes together, because every write changes the key's
 * entity tag; no verdict rests on that row. `updatedAt` does not change. A use whose write loses a race waits for the next unit.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { searchText } from '../../model/collection.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, Row } from '../../store/store.ts';
import { keysCollection } from '../account-collections.ts';
import { keysTable } from '../account-tables.ts';
import type { Key } from './key-rows.ts';

export type KeyUses = {
  /** Minimum time between two writes for one key. */
  readonly intervalMs: number;
  note(key: string, atMs: number): void;
  close(): Promise<void>;
};

/** Keys whose use may be queued; further ones are recorded at a later use. */
const waitingMax = memoryBounds.keyUses.entries;
/** Rows in one unit, and so the maximum a second. */
const rowsPerUnitMax = 250;

export function createKeyUses({ store, observe, settings }: Services, delayMs = 1000): KeyUses {
  const intervalMs = settings.keyUseSeconds * 1000;
  const waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;

  async function changeOf([id, atMs]: readonly [string, number]): Promise<Change | undefined> {
    const row = await store.read(keysTable, id);
    return row === undefined ? undefined : useChange(row, atMs, intervalMs);
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

/** Returns undefined if another process recorded a use at about the same time. */
function useChange(row: Row, atMs: number, intervalMs: number): Change | undefined {
  const { createdAt, updatedAt, ...fields } = JSON.parse(row.doc) as Key;
  if (fields.lastUsedAt !== undefined && atMs - Date.parse(fields.lastUsedAt) < intervalMs) return undefined;
  const used = { ...fields, lastUsedAt: new Date(atMs).toISOString() };
  const next = {
    doc: JSON.stringify({ ...used, createdAt, updatedAt }),
    owner: row.owner,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    deletedAt: null,
    search: searchText(keysCollection.searchFields, used),
    references: [],
  };
  return { table: keysTable, id: row.id, expect: { rev: row.rev }, next };
}
