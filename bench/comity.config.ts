/**
 * The configuration that the benchmarks serve: the shop's products and categories with public read, and the two indexes
 * that the floor programs have too.
 */
import { collection, defineConfig, Type } from 'comity';

const categories = collection({
  schema: Type.Object({ name: Type.String({ minLength: 1, maxLength: 200 }) }),
  access: { read: 'public' },
});

const products = collection({
  schema: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200 }),
    price: Type.Number({ minimum: 0 }),
    categoryId: Type.String(),
    sku: Type.Optional(Type.String()),
    tags: Type.Optional(Type.Array(Type.String())),
    stock: Type.Optional(Type.Integer()),
  }),
  references: { categoryId: { collection: 'categories', countAs: 'productCount' } },
  unique: ['sku'],
  indexes: ['price'],
  access: { read: 'public' },
});

export const config = defineConfig({ collections: { categories, products } });

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
