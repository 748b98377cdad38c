/**
 * Two tasks for searches that every process repeats. It writes the search texts of rows that processes with an earlier declaration store while
 * they still run beside this one; an index lists such rows, so that a look costs nothing where there are none. Only processes whose
 * declaration the store records do so, or those of two would rewrite each other's texts. And it reads from the statistics of the server which words many documents have: the index need not be asked for these beside a rarer word.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Observe } from '../../observe/observation.ts';
import { isRecordedSql } from './compile/page-statement.ts';
import { pendingInIndex } from './compile/words.ts';
import type { Address } from './connection/address.ts';
import type { ReadLane } from './connection/read-lane.ts';
import { fillSearch } from './schema/fill-search.ts';
import type { Layout } from './schema/schema-layout.ts';
import { openSession } from './schema/session.ts';

export type SweepOptions = {
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
