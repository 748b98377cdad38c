/** Rights that are lost while events are waited for (§6.16): on both stores, what follows the loss does not reach who waits. */
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { loseRights, losses } from './lost-rights-scene.ts';

const config = fileURLToPath(new URL('../fixtures/lost-rights.config.ts', import.meta.url));

for (const engine of engineNames) {
  describe(engine, () => {
    let program: RunningServer;

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const url = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      program = await startServer({ config, env: { ...url, COMITY_LOGIN_ATTEMPTS: '0' } });
      if (database !== undefined) after(() => database.dispose());
    });

    after(() => program.stop());

    for (const [at, loss] of losses.entries())
      test(`sends a caller that waits nothing that is written after ${loss.name}`, async () => {
        await loseRights({ writing: program, waiting: program }, loss, `n${at}`);
      });
  });
}
