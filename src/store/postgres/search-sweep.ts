/**
 * Two tasks for searches that every process repeats. It writes the search texts of rows that processes with an earlier declaration store while
 * they still run beside this one; an index lists such rows, so that a look costs nothing where there are none. Only processes whose
 * declaration the store records do so, or those of two would rewrite each other's texts. And it reads from the statistics of the server which words many documents have: the index need not be asked for these beside a rarer word.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { indexedText, type SearchIndex } from '../../model/search/search-index.ts';
import type { Observe } from '../../observe/observation.ts';
import { pendingInIndex, pendingSql } from './compile/expressions.ts';
import { isRecordedSql } from './compile/page-statement.ts';
import type { Address } from './connection/address.ts';
import type { ReadLane } from './connection/lanes.ts';
import { unawaited } from './connection/session.ts';
import type { Layout } from './schema/schema-layout.ts';
import { arrayLiteral, openSession, type Session } from './schema/session.ts';

type SweepOptions = {
  readonly address: Address;
  /** Not quoted. */
  readonly schema: string;
  readonly connectTimeoutMs: number;
  readonly layouts: readonly Layout[];
  readonly read: Pick<ReadLane, 'send'>;
  readonly everyMs: number;
  readonly observe: Observe;
};

export type SearchSweep = {
  /** Words that many documents of the table have, as far as the server has said. */
  frequentWords(table: string): ReadonlySet<string>;
  /** Looks for texts to make without waiting for the next turn. */
  readonly soon: () => void;
  stop(): Promise<void>;
};

/** The part of all documents from which on their word is frequent. The others of a search find at most three times as many without it. */
const frequentFrom = 0.3;

/** Limit of the frequent words that a process keeps for a table. */
const frequentWordsMax = 256;

/** Pause between two turns that searches ask for. */
const leastPauseMs = 250;

const noWords: ReadonlySet<string> = new Set();

export function startSearchSweep(options: SweepOptions): SearchSweep {
  const layouts = options.layouts.filter(({ table }) => table.words !== undefined);
  if (layouts.length === 0)
    return { frequentWords: () => noWords, soon: () => undefined, stop: async () => undefined };
  const frequent = new Map(layouts.map(({ table }) => [table.name, noWords]));
  const stopping = new AbortController();
  const { signal } = stopping;
  let waking = new AbortController();
  const sweeping = (async () => {
    while (!signal.aborted) {
      const leastMs = Math.min(leastPauseMs, options.everyMs);
      await pause(leastMs, undefined, { signal, ref: false }).catch(ignore);
      const woken = AbortSignal.any([signal, waking.signal]);
      await pause(options.everyMs - leastMs, undefined, { signal: woken, ref: false }).catch(ignore);
      waking = new AbortController();
      for (const layout of layouts) {
        if (signal.aborted) return;
        try {
          await sweep(options, layout, signal);
          frequent.set(layout.table.name, await readFrequentWords(options, layout));
        } catch (error) {
          if (!signal.aborted) options.observe({ kind: 'store-failed', what: 'search texts', error });
        }
      }
    }
  })();
  return {
    frequentWords: (table) => frequent.get(table) ?? noWords,
    soon: () => waking.abort(),
    stop() {
      stopping.abort();
      return sweeping;
    },
  };
}

async function sweep(
  { address, schema, connectTimeoutMs, read }: SweepOptions,
  layout: Layout,
  signal: AbortSignal,
): Promise<void> {
  const { search, table } = layout;
  if (search === undefined || table.words === undefined) return;
  const looked = `SELECT ${isRecordedSql(search.pending, schema)} AND EXISTS (SELECT FROM ${layout.name} WHERE ${pendingInIndex(table.words.mark, schema)})`;
  const [row] = await read.send({ sql: looked, values: [] });
  if (row?.[0] !== true) return;
  const session = await openSession(address, 'comity search', connectTimeoutMs);
  const end = (): Promise<void> => session.end();
  // What is under way has a second; the rest is left to the next process.
  signal.addEventListener('abort', end);
  try {
    if (!signal.aborted)
      await fillSearch(session, layout, { isRecorded: isRecordedSql(search.pending, schema) });
  } finally {
    signal.removeEventListener('abort', end);
    await end();
  }
}

/** Empty before the server has analysed the index. */
async function readFrequentWords(
  { schema, read }: Pick<SweepOptions, 'schema' | 'read'>,
  { search }: Layout,
): Promise<ReadonlySet<string>> {
  if (search === undefined) return noWords;
  // Words have no spaces. The frequencies end with three of another kind, which have no word.
  const sql = `SELECT string_agg(word, ' ') FROM (
      SELECT word FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) AS listed (word, part)
      WHERE schemaname = $1::name AND tablename = $2::name AND part >= ${frequentFrom} AND word IS NOT NULL
      ORDER BY part DESC LIMIT ${frequentWordsMax}) frequent`;
  const [row] = await read.send({ sql, values: [schema, search.words.name] });
  const words = row?.[0];
  return typeof words === 'string' ? new Set(words.split(' ')) : noWords;
}

function ignore(): void {
  // The pause ends early when the store closes.
}

/*
 * Makes the search texts of rows that the declaration of their table did not make: written under an earlier declaration, or by a process
 * that still has it. It works in small transactions beside other writers, never waits for a locked row, and keeps no state of its own: an
 * index lists what is left, so an interrupted run continues.
 */

/** Rows of one transaction, and octets of documents after which it ends. */
const rowsPerBatch = 200;
const octetsPerBatch = 4_194_304;
/** Pause after a batch whose rows others had locked. */
const lockedPauseMs = 50;

/** @param isRecorded a condition in SQL without which it ends @returns the number of rows made */
export async function fillSearch(
  session: Session,
  { name, table: { words } }: Pick<Layout, 'name' | 'table'>,
  { isRecorded = 'true' }: { readonly isRecorded?: string } = {},
): Promise<number> {
  if (words === undefined) return 0;
  let made = 0;
  for (;;) {
    const read = await pendingRows(session, name, words, isRecorded);
    if (read.length === 0) return made;
    const written = await write(session, name, words, read);
    made += written;
    if (written === 0) await pause(lockedPauseMs);
  }
}

type PendingRow = { readonly id: string; readonly rev: number; readonly doc: string };

async function pendingRows(
  session: Session,
  name: string,
  { mark }: SearchIndex,
  isRecorded: string,
): Promise<readonly PendingRow[]> {
  const listed = await session.rows(
    `SELECT id, octet_length(doc) FROM ${name} WHERE ${pendingSql(mark)} AND ${isRecorded} LIMIT ${rowsPerBatch}`,
  );
  let octets = 0;
  const ids: string[] = [];
  for (const [id, length] of listed) {
    ids.push(String(id));
    octets += Number(length);
    if (octets > octetsPerBatch) break;
  }
  if (ids.length === 0) return [];
  const rows = await session.rows(`SELECT id, rev, doc FROM ${name} WHERE id = ANY ($1::text[])`, [
    arrayLiteral(ids),
  ]);
  return rows.map(([id, rev, doc]) => ({ id: String(id), rev: Number(rev), doc: String(doc) }));
}

/** The revision stays, because the document is the same; a row that changed meanwhile is left. */
async function write(
  session: Session,
  name: string,
  words: SearchIndex,
  rows: readonly PendingRow[],
): Promise<number> {
  const texts = rows.map(({ doc }) =>
    indexedText(words, JSON.parse(doc) as Readonly<Record<string, unknown>>),
  );
  const changed = await session.rows(
    `UPDATE ${name} AS t SET search = free.search FROM (
       SELECT r.ctid AS place, made.search FROM unnest($1::text[], $2::bigint[], $3::text[]) AS made (id, rev, search)
       JOIN ${name} AS r ON r.id = made.id AND r.rev = made.rev FOR UPDATE OF r SKIP LOCKED
     ) AS free, ${unawaited} WHERE t.ctid = free.place RETURNING 1`,
    [arrayLiteral(rows.map(({ id }) => id)), arrayLiteral(rows.map(({ rev }) => rev)), arrayLiteral(texts)],
  );
  return changed.length;
}
