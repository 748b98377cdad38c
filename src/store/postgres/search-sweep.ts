/**
 * Makes search texts of rows that processes with an earlier declaration write while they still run beside this one. Every process looks from
 * time to time; an index lists such rows, so that a look costs nothing where there are none.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../quote-name.ts';
import { pendingSql } from './compile/words.ts';
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

export type SearchSweep = { stop(): Promise<void> };

export function startSearchSweep(options: SweepOptions): SearchSweep {
  const layouts = options.layouts.filter(({ table }) => table.words !== undefined);
  if (layouts.length === 0) return { stop: async () => undefined };
  const stopping = new AbortController();
  const { signal } = stopping;
  const sweeping = (async () => {
    while (!signal.aborted) {
      await pause(options.everyMs, undefined, { signal, ref: false }).catch(ignore);
      for (const layout of layouts) {
        if (signal.aborted) return;
        await sweep(options, layout).catch((error: unknown) => {
          if (!signal.aborted) options.observe({ kind: 'store-failed', what: 'search texts', error });
        });
      }
    }
  })();
  return {
    stop() {
      stopping.abort();
      return sweeping;
    },
  };
}

async function sweep(
  { address, schema, connectTimeoutMs, read }: SweepOptions,
  layout: Layout,
): Promise<void> {
  const { name, words } = layout.table;
  if (words === undefined) return;
  const looked = `SELECT EXISTS (SELECT FROM ${layout.name} WHERE ${pendingSql(words.mark)})`;
  const [row] = await read.send({ sql: looked, values: [] });
  if (row?.[0] !== true) return;
  const session = await openSession(address, 'comity search', connectTimeoutMs);
  try {
    await fillSearch(session, layout);
    // Lists of searches change: so does their version.
    const counters = `${quoteName(schema)}.comity_counters`;
    await session.rows(
      `WITH next AS (UPDATE ${counters} SET rev = rev + 1 WHERE n = 0 RETURNING rev)
       UPDATE ${counters} AS c SET rev = next.rev FROM next WHERE c.name = $1`,
      [name],
    );
  } finally {
    await session.end();
  }
}

function ignore(): void {
  // The pause ends early when the store closes.
}
