/** Documents with one file each, for measurements. */
import { collection, defineConfig, File, MiB, Type } from 'comity';

const config = defineConfig({
  collections: {
    media: collection({
      schema: Type.Object({ title: Type.String(), file: Type.Optional(File({ bytesMax: 4096 * MiB })) }),
    }),
  },
});

// biome-ignore lint/style/noDefaultExport: a configuration file is read by its default export
export default config;
