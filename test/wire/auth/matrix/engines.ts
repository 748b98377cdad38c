/** The whole program in this process on either store, behind a real socket, with a clock that can be moved on. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadConfiguration } from '../../../../src/config/load-configuration.ts';
import { loadSettings } from '../../../../src/config/load-settings.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import { compose } from '../../../../src/running.ts';
import { storeTables } from '../../../../src/store-tables.ts';
import type { EngineName } from '../../../harness/engine-names.ts';
import { adminKey } from '../../../harness/exchange.ts';
import { databaseWith, type TestDatabase } from '../../../harness/postgres-database.ts';
import { temporaryFolder } from '../../../harness/temporary-folder.ts';

export type Served = {
  readonly port: number;
  readonly now: () => number;
  moveClock(seconds: number): void;
  /** What failed and was answered for by nobody. */
  readonly failures: readonly string[];
  stop(): Promise<void>;
};

export async function serveOn(
  engine: EngineName,
  configPath: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const folder = temporaryFolder();
  let database: TestDatabase | undefined;
  const tidy = async (): Promise<void> => {
    await database?.dispose();
  };
  const failures: string[] = [];
  let ahead = 0;
  const now = () => Date.now() + ahead;
  try {
    const { configuration } = await loadConfiguration(configPath);
    if (engine === 'PostgreSQL') database = await databaseWith(storeTables(configuration));
    const { settings, providers } = loadSettings(
      {
        COMITY_PORT: '0',
        COMITY_DATA: folder,
        COMITY_ADMIN_KEY: adminKey,
        ...(database === undefined ? {} : { COMITY_DATABASE_URL: database.url }),
        ...environment,
      },
      configuration.settings,
    );
    const running = await compose({
      configuration,
      settings,
      providers,
      senderSecrets: new Map(),
      module: pathToFileURL(resolve(configPath)).href,
      metrics: createMetrics(),
      clock: now,
      observe: (fact) => {
        if (fact.kind === 'failed' || fact.kind === 'store-failed') failures.push(String(fact.error));
      },
    });
    return {
      port: Number(new URL(running.url).port),
      now,
      failures,
      moveClock: (seconds) => {
        ahead += seconds * 1000;
      },
      async stop() {
        await running.stop('the test is over');
        await tidy();
      },
    };
  } catch (error) {
    await tidy();
    throw error;
  }
}
