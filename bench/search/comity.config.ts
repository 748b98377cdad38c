/** Documents with an index of words, and the same without one, whose list is what searches are compared with. */
import { collection, defineConfig, Type } from 'comity';

const reports = collection({
  schema: Type.Object({ title: Type.String(), body: Type.String(), price: Type.Number() }),
  indexes: ['price'],
  search: { fields: ['title', 'body'], language: 'english' },
  access: { read: 'public' },
});

export const config = defineConfig({ collections: { reports } });

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
