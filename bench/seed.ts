/**
 * Stores benchmark rows in a data folder of Comity through its own store, in large units, since a million rows over HTTP
 * would take longer than the measurements.
 */
import { resolveConfiguration } from '../src/config/configuration.ts';
import { tableOf } from '../src/config/tables.ts';
import { searchText } from '../src/model/collection.ts';
import { openSqliteStore } from '../src/store/sqlite/open.ts';
import type { Change } from '../src/store/store.ts';
import { config } from './comity.config.ts';
import { categoryId, productCreatedMs, productDocument, productId } from './product.ts';

const rowsPerUnit = 2000;

/**
 * Puts `rows` products (`productDocument(0)` to `productDocument(rows - 1)`, with their identifiers) and the category
 * `categoryId` of `bench/product.ts` into the store in `dataFolder`, which is new and empty.
 */
export async function seed(dataFolder: string, rows: number): Promise<void> {
  const { collections } = resolveConfiguration(config);
  const products = collections.get('products');
  if (products === undefined) throw new Error('the benchmark configuration has no products');
  const tables = [...collections.values()].map(tableOf);
  const store = await openSqliteStore({ folder: dataFolder, tables });
  const category = { id: categoryId, name: 'Kitchen', createdAt: iso(0), updatedAt: iso(0) };
  const commit = async (changes: readonly Change[]) => {
    const { outcome } = await store.commit({ changes, events: [] });
    if (outcome !== 'committed') throw new Error(`seeding ended with ${outcome}`);
  };
  await commit([change('categories', categoryId, JSON.stringify(category), 0, null)]);
  for (let from = 0; from < rows; from += rowsPerUnit) {
    const changes: Change[] = [];
    for (let index = from; index < Math.min(rows, from + rowsPerUnit); index += 1) {
      const doc = productDocument(index);
      const search = searchText(products.searchFields, JSON.parse(doc) as Record<string, unknown>);
      changes.push(change('products', productId(index), doc, productCreatedMs(index), search));
    }
    await commit(changes);
  }
  await store.close();
}

function change(table: string, id: string, doc: string, at: number, search: string | null): Change {
  const references = table === 'products' ? [{ field: 'categoryId', id: categoryId }] : [];
  const next = { doc, owner: null, createdAt: at, updatedAt: at, deletedAt: null, search, references };
  return { table, id, expect: { absent: true }, next };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
