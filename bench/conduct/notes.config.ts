/** The collection that the peers have as well: notes with a title, open to everyone who reads. */
import { collection, defineConfig, Type } from 'comity';

const notes = collection({
  schema: Type.Object({
    title: Type.String({ minLength: 1, maxLength: 200 }),
    done: Type.Optional(Type.Boolean()),
  }),
  access: { read: 'public', create: 'public', update: 'public', delete: 'public' },
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default defineConfig({ collections: { notes } });
