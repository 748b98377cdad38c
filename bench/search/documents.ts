/** The documents that the searches run over, of about 400 octets, and their rows in either store. */
import pg from 'pg';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { searchTextOf } from '../../src/model/collection.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { NextRow } from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import { seedTable } from '../../test/harness/seed-table.ts';
import { productCreatedMs, productId, productPrice } from '../product.ts';
import { config } from './comity.config.ts';

/** Documents that each of the rare words occurs in, at every size. */
export const perTopic = 20;
const fillers = 30;
const vocabulary = 20_000;

const topicDigits = 6;

/** Of equal length, so that a prefix finds as many documents at every size. */
export function topicWord(topic: number): string {
  return `topic${String(topic).padStart(topicDigits, '0')}`;
}

export function topicsOf(rows: number): number {
  return Math.max(1, Math.floor(rows / perTopic));
}

/** One word for all, one for half, one for 20 documents, and 30 others, of which low numbers are frequent. */
function reportOf(index: number, rows: number): { title: string; body: string; price: number } {
  const words: string[] = ['common', index % 2 === 0 ? 'even' : 'odd'];
  let seed = (index * 2_654_435_761) >>> 0;
  for (let at = 0; at < fillers; at += 1) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    words.push(`word${Math.floor(vocabulary * (seed / 2 ** 32) ** 3)}`);
  }
  return {
    title: `Report ${topicWord(index % topicsOf(rows))}`,
    body: words.join(' '),
    price: productPrice(index),
  };
}

const configuration = resolveConfiguration(config);

/** @param isSearched false leaves the words to the program */
function* rowsOf(
  rows: number,
  isSearched: boolean,
): Generator<{ readonly id: string; readonly row: NextRow }> {
  const reports = configuration.collections.get('reports');
  if (reports === undefined) throw new Error('the configuration has no reports');
  for (let index = 0; index < rows; index += 1) {
    const id = productId(index);
    const createdAt = productCreatedMs(index);
    const at = new Date(createdAt).toISOString();
    const report = reportOf(index, rows);
    const doc = JSON.stringify({ id, ...report, createdAt: at, updatedAt: at });
    const search = isSearched ? searchTextOf(reports, report) : null;
    const times = { createdAt, updatedAt: createdAt, deletedAt: null };
    yield { id, row: { doc, owner: null, ...times, search, references: [] } };
  }
}

export function seedReports(folder: string, rows: number, isSearched: boolean): void {
  seedTable(folder, storeTables(configuration), 'reports', rowsOf(rows, isSearched));
}

/** One transaction took more than the default of 5 s near the end of 1,000,000 documents, on a busy machine. */
const seedTimeoutMs = 60_000;

/** Units that are committed at the same time, hence in few transactions. */
const unitsAtOnce = 1000;

export async function seedReportsPostgres(url: string, schema: string, rows: number): Promise<void> {
  const tables = storeTables(configuration);
  const store = await openPostgresStore({ url, schema, tables, databaseTimeoutMs: seedTimeoutMs });
  const client = new pg.Client(url);
  try {
    await client.connect();
    // After the rows, the index of words of 1,000,000 documents is made in 76 s, and with them in 10 minutes.
    const found = await client.query<{ name: string; definition: string }>(
      `SELECT quote_ident(schemaname) || '.' || quote_ident(indexname) AS name, indexdef AS definition
       FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%USING gin%'`,
      [schema],
    );
    for (const { name } of found.rows) await client.query(`DROP INDEX ${name}`);
    let pending: Promise<unknown>[] = [];
    for (const { id, row } of rowsOf(rows, true)) {
      const change = { table: 'reports', id, expect: { absent: true }, next: row } as const;
      pending.push(store.commit({ changes: [change], events: [] }));
      if (pending.length < unitsAtOnce) continue;
      await Promise.all(pending);
      pending = [];
    }
    await Promise.all(pending);
    await client.query(`SET maintenance_work_mem = '1GB'`);
    for (const { definition } of found.rows) await client.query(definition);
  } finally {
    await client.end();
    await store.close();
  }
}
