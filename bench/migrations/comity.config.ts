/** The configuration of the benchmarks with a field more in products, and the migration that fills it. */
import { collection, defineConfig, Type } from 'comity';
import { config as before } from '../comity.config.ts';

const products = collection({
  schema: Type.Object({ ...before.collections.products.schema.properties, cents: Type.Integer() }),
  references: { categoryId: { collection: 'categories', countAs: 'productCount' } },
  unique: ['sku'],
  indexes: ['price'],
  access: { read: 'public' },
});

export const config = defineConfig({
  collections: { categories: before.collections.categories, products },
  migrations: [
    {
      id: '2-cents',
      collection: 'products',
      up: (document) => ({ ...document, cents: Math.round(100 * Number(document.price)) }),
    },
  ],
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
