/**
 * A process that commits products and their events to a store on PostgreSQL, `size` in each batch, until its time is over: what a program of
 * Comity writes, without HTTP. Arguments: url, schema. Each message `{ size, ms, from }` is answered with what it took.
 */
import { resolveConfiguration } from '../src/config/configuration.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { storeTables } from '../src/store-tables.ts';
import { config } from './comity.config.ts';
import { productChange } from './seed-postgres.ts';

export type CommitOrder = { readonly size: number; readonly ms: number; readonly from: number };
export type Committed = { readonly batches: number; readonly tookMs: number };

const [, , url = '', schema = ''] = process.argv;
const configuration = resolveConfiguration(config);
const searchFields = configuration.collections.get('products')?.searchFields ?? [];
const store = await openPostgresStore({ url, schema, tables: storeTables(configuration) });

process.on('message', async ({ size, ms, from }: CommitOrder) => {
  const begunMs = performance.now();
  let batches = 0;
  for (let tookMs = 0; tookMs < ms; tookMs = performance.now() - begunMs) {
    const first = from + batches * size;
    await Promise.all(Array.from({ length: size }, (_, place) => create(first + place)));
    batches += 1;
  }
  process.send?.({ batches, tookMs: performance.now() - begunMs } satisfies Committed);
});
process.once('disconnect', () => store.close());
process.send?.('ready');

async function create(index: number): Promise<void> {
  const change = productChange(index, searchFields);
  const event = {
    id: `evt_${change.id}`,
    type: 'products.created',
    collection: 'products',
    owner: null,
    doc: `{"id":"evt_${change.id}","type":"products.created","data":{"object":${change.next?.doc}}}`,
    createdAt: change.next?.createdAt ?? 0,
  };
  const { outcome } = await store.commit({ changes: [change], events: [event] });
  if (outcome !== 'committed') throw new Error(`a product of the benchmark was not stored: ${outcome}`);
}
