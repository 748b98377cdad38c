/**
 * Stores messages in a database of Comity before the program starts on it: so many keys that are known, and the newest of their messages in
 * the inbox, as many as a month leaves there. Bodies are short, since ten million of a kilobyte would fill the disk and change nothing: they
 * stand outside of the index that keys are found in.
 */
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { type Received, receivedDocument } from '../../src/model/received.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { keptRow, type Store, type Table } from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from '../../src/webhooks/receiving/received-tables.ts';
import { inBatches, type SeedRow, seedTable } from '../../test/harness/seed-table.ts';
import type { Place } from '../engine.ts';
import { connectFloor, query } from '../floor/postgres/client.ts';
import { productId } from '../product.ts';
import { config } from './comity.config.ts';
import { dedupeKey, messageType, seededKey } from './messages.ts';

const inboxRowsMax = 100_000;
const rowsPerStatement = 20_000;
const sender = 'standard';
/** Milliseconds since the epoch: young enough to be kept. */
const seededAt = Date.now();

/** @param count keys that are known, all of the sender `standard` */
export async function seedKeys(place: Place, count: number): Promise<void> {
  const tables = storeTables(resolveConfiguration(config));
  if (place.store === 'postgres') await seedPostgres(place, tables, count);
  else {
    const add = (name: string, rows: Iterable<SeedRow>) => seedTable(place.folder, tables, name, rows);
    // Every second one and then those between, so that the leaves of the index are as full as they are after a year.
    add(receivedContentsTable, contents(count, 0, 2));
    add(receivedContentsTable, contents(count, 1, 2));
    add(receivedCollection.name, inbox(count));
  }
}

/** Messages of the sender `standard` that are in the inbox with so many keys. */
export function seededInbox(count: number): number {
  return Math.min(count, inboxRowsMax);
}

/** Messages of a sender in the inbox, once the program is stopped. */
export async function countReceived(place: Place, of: string): Promise<number> {
  const store = await openStore(place, storeTables(resolveConfiguration(config)));
  try {
    const field = receivedCollection.fields.get('sender');
    if (field === undefined) throw new Error('messages have no sender');
    return await store.count(receivedCollection.name, { op: 'eq', field, value: of });
  } finally {
    await store.close();
  }
}

async function openStore(place: Place, tables: readonly Table[]): Promise<Store> {
  if (place.store === 'sqlite') return await openSqliteStore({ folder: place.folder, tables });
  return await openPostgresStore({ url: place.url, schema: place.schema, tables });
}

/** By plain statements, once the store has made its tables. */
async function seedPostgres(
  place: Place & { store: 'postgres' },
  tables: readonly Table[],
  count: number,
): Promise<void> {
  await (await openStore(place, tables)).close();
  const client = await connectFloor(place.url);
  try {
    for (const [table, rows] of [
      [receivedContentsTable, contents(count, 0, 2)],
      [receivedContentsTable, contents(count, 1, 2)],
      [receivedCollection.name, inbox(count)],
    ] as const) {
      const insert = `INSERT INTO ${place.schema}.${table} (id, rev, created_at, updated_at, doc)
        SELECT id, 1, $3::bigint, $3::bigint, doc FROM unnest($1::text[], $2::text[]) AS row (id, doc)`;
      for (const batch of inBatches(rows, rowsPerStatement)) {
        const documents = batch.map(({ row }) => row.doc);
        await query(client, '', insert, [batch.map(({ id }) => id), documents, seededAt]);
      }
      await client.query(`ANALYZE ${place.schema}.${table}`);
    }
  } finally {
    await client.end();
  }
}

function* contents(count: number, first: number, step: number): Generator<SeedRow> {
  for (let index = first; index < count; index += step) {
    const content: ReceivedContent = {
      ...{ id: messageId(index), contentType: 'application/json', contentEncoding: null, headers: {} },
      body: 'e30=',
    };
    const id = contentId(sender, dedupeKey('standard', seededKey(index, count)));
    yield { id, row: keptRow(JSON.stringify(content), null, seededAt, seededAt) };
  }
}

function* inbox(count: number): Generator<SeedRow> {
  const at = new Date(seededAt).toISOString();
  for (let index = count - seededInbox(count); index < count; index += 1) {
    const id = messageId(index);
    const received: Received = {
      ...{ id, sender, dedupeKey: dedupeKey('standard', seededKey(index, count)), type: messageType },
      ...{ receivedAt: at, status: 'processed', attempts: 1, scheduledAttempts: 1, dueAt: null },
      ...{ lastError: null, contentType: 'application/json', contentLength: 2 },
      ...{ createdAt: at, updatedAt: at },
    };
    yield { id, row: keptRow(receivedDocument(received), null, seededAt, seededAt) };
  }
}

function messageId(index: number): string {
  return `rec_${productId(index).toLowerCase()}`;
}
