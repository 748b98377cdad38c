/** Programs of one configuration on one of the stores, each over data of its own, which end with the suite that asked for them. */
import { after } from 'node:test';
import type { Settings } from '../../src/config/settings.ts';
import type { EngineName } from './engine-names.ts';
import { databaseOfProgram } from './program-database.ts';
import { type RunningServer, startServer } from './running-server.ts';

/**
 * To be called in the body of a suite.
 * @param config path of the configuration
 */
export function serversOn(
  engine: EngineName,
  config: string,
): (env?: Record<string, string>, bounds?: Partial<Settings>) => Promise<RunningServer> {
  const ends: (() => Promise<void>)[] = [];
  after(async () => {
    for (const end of ends) await end();
  });
  return async (env = {}, bounds = {}) => {
    const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
    const url = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
    const started = await startServer({ config, env: { ...env, ...url }, bounds });
    ends.push(async () => {
      await started.stop();
      await database?.dispose();
    });
    return started;
  };
}
