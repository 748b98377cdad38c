/**
 * Stores benchmark rows in a data folder of Comity through its own schema, since a million rows over HTTP would take
 * longer than the measurements.
 */
import { keySecretsTable } from '../src/accounts/account-tables.ts';
import { resolveConfiguration } from '../src/config/configuration.ts';
import { searchText } from '../src/model/collection.ts';
import { storeTables } from '../src/store-tables.ts';
import { type SeedRow, seedTable } from '../test/harness/seed-table.ts';
import { apiKeyChange } from './api-key.ts';
import { config } from './comity.config.ts';
import { categoryId, productCreatedMs, productDocument, productId } from './product.ts';

/**
 * Puts `rows` products (`productDocument(0)` to `productDocument(rows - 1)`, with their identifiers) and the category
 * `categoryId` of `bench/product.ts`, and as many API keys of `bench/api-key.ts`, into the store in `dataFolder`, which is new and empty.
 */
export function seed(dataFolder: string, rows: number): void {
  const configuration = resolveConfiguration(config);
  const { collections } = configuration;
  const tables = storeTables(configuration);
  const at = new Date(0).toISOString();
  const category = JSON.stringify({ id: categoryId, name: 'Kitchen', createdAt: at, updatedAt: at });
  seedTable(dataFolder, tables, 'categories', [row(categoryId, category, 0, 'kitchen\n')]);
  seedTable(dataFolder, tables, 'products', products(rows, collections.get('products')?.searchFields ?? []));
  seedTable(dataFolder, tables, keySecretsTable, apiKeys(rows));
}

function* products(rows: number, searchFields: readonly string[]): Generator<SeedRow> {
  for (let index = 0; index < rows; index += 1) {
    const doc = productDocument(index);
    const search = searchText(searchFields, JSON.parse(doc) as Record<string, unknown>);
    yield row(productId(index), doc, productCreatedMs(index), search);
  }
}

/** In the order of their ids, which is quicker to store. */
function apiKeys(count: number): readonly SeedRow[] {
  const rows: SeedRow[] = [];
  for (let index = 0; index < count; index += 1) {
    const { id, next } = apiKeyChange(index);
    if (next !== null) rows.push({ id, row: next });
  }
  return rows.sort((one, other) => (one.id < other.id ? -1 : 1));
}

function row(id: string, doc: string, at: number, search: string | null): SeedRow {
  return { id, row: { doc, owner: null, createdAt: at, updatedAt: at, deletedAt: null, search } };
}
