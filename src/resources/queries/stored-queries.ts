/**
 * Stored queries (§4.9.3; RFC 10008 §2.3): the text of a QUERY under a token, so that GET repeats it. The token is a MAC of
 * the query: it cannot be guessed, says nothing about the query, and is the same for the same query, so
 * asking again stores nothing. It grants nothing: whoever uses it sees what it may see.
 */
import { keptRow } from '../../store/kept-row.ts';
import type { Store } from '../../store/store.ts';

export const queriesTable = 'stored_queries';

export type StoredQuery = {
  readonly token: string;
  readonly collection: string;
  readonly mediaType: string;
  readonly text: string;
};

export type StoredQueries = {
  tokenOf(collection: string, mediaType: string, text: string): string;
  /** Makes the token usable for at least half of its lifetime from now. Returns at once when it is. */
  keep(query: StoredQuery, now: number): Promise<void> | undefined;
  find(token: string): Promise<StoredQuery | undefined>;
};

export type StoredQueriesOptions = {
  readonly store: Store;
  readonly mac: (text: string) => string;
  readonly lifetimeSeconds: number;
  /** Tokens remembered as stored; one beyond it costs a commit again. */
  readonly rememberedMax: number;
};

export function createStoredQueries(options: StoredQueriesOptions): StoredQueries {
  const { store, mac } = options;
  const renewAfterMs = (options.lifetimeSeconds * 1000) / 2;
  const storedAt = new Map<string, number>();

  async function write(query: StoredQuery, now: number): Promise<void> {
    const row = await store.read(queriesTable, query.token);
    if (row === undefined || row.updatedAt + renewAfterMs < now) {
      const next = keptRow(JSON.stringify(query), null, row?.createdAt ?? now, now);
      const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
      // Superseded means that another request stored the same query in this moment.
      await store.commit({ changes: [{ table: queriesTable, id: query.token, expect, next }], events: [] });
    }
    if (storedAt.size >= options.rememberedMax) storedAt.clear();
    storedAt.set(query.token, row === undefined ? now : Math.max(row.updatedAt, now - renewAfterMs));
  }

  return {
    tokenOf: (collection, mediaType, text) => mac(`query\n${collection}\n${mediaType}\n${text}`),
    keep(query, now) {
      const at = storedAt.get(query.token);
      return at !== undefined && now - at < renewAfterMs ? undefined : write(query, now);
    },
    async find(token) {
      const row = await store.read(queriesTable, token);
      return row === undefined ? undefined : (JSON.parse(row.doc) as StoredQuery);
    },
  };
}
