/** A database for `comity migrate`, and configurations of one collection that differ in what they index. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { linkPackage, temporaryFolder } from '../harness/temporary-folder.ts';
import { testDatabase } from '../postgres/schema/database.ts';

/** Until the tests of the file are over. */
export async function openWords() {
  const { url, client } = await testDatabase();
  const folder = temporaryFolder();
  linkPackage(folder);
  return {
    url,
    client,
    folder,
    /** Writes a configuration. @param more source text after the schema */
    configuration(name: string, more: string): string {
      const path = join(folder, `${name}.mjs`);
      writeFileSync(
        path,
        `import { collection, defineConfig, Type } from 'comity';
    const schema = Type.Object({ name: Type.String(), rank: Type.Optional(Type.Integer()) });
    export default defineConfig({ collections: { words: collection({ schema${more} }) } });\n`,
      );
      return path;
    },
    environment: (schema: string, config: string): Record<string, string> => ({
      COMITY_DATABASE_URL: url,
      COMITY_DATABASE_SCHEMA: schema,
      COMITY_CONFIG: config,
    }),
  };
}
