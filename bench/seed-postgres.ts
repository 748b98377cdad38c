/**
 * Stores benchmark rows in a schema of Comity through its own store, so that tables, indexes and counters are those that
 * it makes itself.
 */
import { resolveConfiguration } from '../src/config/configuration.ts';
import { searchText } from '../src/model/collection.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import type { Change, Store } from '../src/store/store.ts';
import { storeTables } from '../src/store-tables.ts';
import { apiKeyChange } from './api-key.ts';
import { config } from './comity.config.ts';
import { categoryId, productCreatedMs, productDocument, productId } from './product.ts';

/** Units that are committed at the same time, hence in few transactions. */
const unitsAtOnce = 1000;

/** The same rows that `bench/seed-sqlite.ts` stores. */
export async function seedPostgres(url: string, schema: string, rows: number): Promise<void> {
  const configuration = resolveConfiguration(config);
  const store = await openPostgresStore({ url, schema, tables: storeTables(configuration) });
  try {
    const at = new Date(0).toISOString();
    const category = JSON.stringify({ id: categoryId, name: 'Kitchen', createdAt: at, updatedAt: at });
    await add(store, [change('categories', categoryId, category, 0, 'kitchen\n', [])]);
    const searchFields = configuration.collections.get('products')?.searchFields ?? [];
    for (let first = 0; first < rows; first += unitsAtOnce) {
      const indexes = Array.from(
        { length: Math.min(unitsAtOnce, rows - first) },
        (_, place) => first + place,
      );
      await add(
        store,
        indexes.flatMap((index) => [productChange(index, searchFields), apiKeyChange(index)]),
      );
    }
  } finally {
    await store.close();
  }
}

/** The creation of the product with this index. */
export function productChange(index: number, searchFields: readonly string[]): Change {
  const doc = productDocument(index);
  const search = searchText(searchFields, JSON.parse(doc) as Record<string, unknown>);
  const references = [{ field: 'categoryId', id: categoryId }];
  return change('products', productId(index), doc, productCreatedMs(index), search, references);
}

function change(
  table: string,
  id: string,
  doc: string,
  at: number,
  search: string | null,
  references: readonly { readonly field: string; readonly id: string }[],
): Change {
  const times = { createdAt: at, updatedAt: at, deletedAt: null };
  return { table, id, expect: { absent: true }, next: { doc, owner: null, ...times, search, references } };
}

async function add(store: Store, changes: readonly Change[]): Promise<void> {
  await Promise.all(
    changes.map(async (each) => {
      const { outcome } = await store.commit({ changes: [each], events: [] });
      if (outcome !== 'committed') throw new Error(`a row of the benchmark was not stored: ${outcome}`);
    }),
  );
}
