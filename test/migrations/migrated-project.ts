/** A project whose documents are migrated, on each store: configurations in a folder, documents by `comity seed`, and commands. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration } from '../../src/cli/read-configuration.ts';
import { byId } from '../../src/model/filter.ts';
import { openLookingStore } from '../../src/open-store.ts';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { engineNames } from '../harness/engine-names.ts';
import { linkPackage, temporaryFolder } from '../harness/temporary-folder.ts';
import { testDatabase } from '../postgres/schema/database.ts';

export type Project = {
  readonly folder: string;
  /** Writes a configuration. @param source the argument of defineConfig */
  configure(name: string, source: string): string;
  environment(config: string): Record<string, string>;
  run(config: string, ...args: readonly string[]): Promise<Outcome>;
  /** Writes documents as `comity seed` does. */
  seed(config: string, collection: string, documents: readonly object[]): Promise<void>;
  /** All documents of a collection, in order of id. */
  documents(config: string, collection: string): Promise<Record<string, unknown>[]>;
};

/** Until the tests of the file are over. */
export async function openProjects(): Promise<readonly (readonly [engine: string, open: () => Project])[]> {
  const url = engineNames.includes('PostgreSQL') ? (await testDatabase()).url : '';
  let schemas = 0;
  return engineNames.map((engine) => [
    engine,
    () => {
      schemas += 1;
      return projectOn(
        engine === 'SQLite'
          ? {}
          : { COMITY_DATABASE_URL: url, COMITY_DATABASE_SCHEMA: `migrated_${schemas}` },
      );
    },
  ]);
}

function projectOn(database: Readonly<Record<string, string>>): Project {
  const folder = temporaryFolder();
  linkPackage(folder);
  const environment = (config: string): Record<string, string> => ({
    ...database,
    COMITY_CONFIG: config,
    COMITY_DATA: join(folder, 'data'),
    COMITY_PORT: '0',
    COMITY_LOG_LEVEL: 'warn',
  });
  const run = (config: string, ...args: readonly string[]): Promise<Outcome> =>
    runCommand(args, environment(config));
  return {
    folder,
    environment,
    run,
    configure(name, source) {
      const path = join(folder, `${name}.mjs`);
      writeFileSync(
        path,
        `import { collection, defineConfig, Type } from 'comity';\nexport default defineConfig(${source});\n`,
      );
      return path;
    },
    async seed(config, collection, documents) {
      const file = join(folder, 'seed.ndjson');
      const lines = documents.map((fields) => JSON.stringify({ collection, owner: 'usr_1', fields }));
      writeFileSync(file, `${lines.join('\n')}\n`);
      const { code, stderr } = await run(config, 'seed', file);
      if (code !== 0) throw new Error(`${stderr}\n${readFileSync(file, 'utf8').slice(0, 500)}`);
    },
    async documents(config, collection) {
      const { configuration, settings } = await readConfiguration(environment(config), {});
      const store = await openLookingStore(configuration, settings, () => undefined);
      if (store === undefined) return [];
      try {
        const plan = store.plan({ table: collection, filter: { op: 'always' }, sort: byId, limit: 10_000 });
        const { docs } = await plan.page({ from: 'start' });
        return docs.map((doc) => JSON.parse(doc) as Record<string, unknown>);
      } finally {
        await store.close();
      }
    },
  };
}
