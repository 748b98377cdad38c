/**
 * Rights that are lost in one process while another holds who waits for events (§6.16), on one PostgreSQL: what was committed after the loss was
 * answered does not reach it.
 */
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { loseRights, losses } from '../../wire/resources/lost-rights-scene.ts';

const config = fileURLToPath(new URL('../../wire/fixtures/lost-rights.config.ts', import.meta.url));
const rounds = 5;

const programs: ServerProcess[] = [];

before(async () => {
  const database = await databaseOfProgram(config);
  after(() => database.dispose());
  const env = {
    COMITY_CONFIG: config,
    COMITY_DATABASE_URL: database.url,
    COMITY_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    COMITY_LOGIN_ATTEMPTS: '0',
  };
  for (let at = 0; at < 2; at += 1) programs.push(await spawnServer({ env }));
});

after(async () => {
  for (const program of programs) await program.stop();
});

for (const [at, loss] of losses.entries())
  test(`sends a caller that waits at another process nothing that is written after ${loss.name}`, async () => {
    const [writing, waiting] = programs;
    if (writing === undefined || waiting === undefined) throw new Error('two programs run');
    for (let round = 0; round < rounds; round += 1)
      await loseRights({ writing, waiting }, loss, `n${at}-${round}`);
  });
