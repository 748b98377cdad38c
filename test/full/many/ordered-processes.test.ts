/** The order by key with two processes on one database: each takes writes and handles events, and one of them ends in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { allOf } from '../../wire/received/messages.ts';

const config = fileURLToPath(new URL('../../wire/logic/fixtures/subscribers.config.ts', import.meta.url));
const count = 12;

test('events of one key keep their order across two processes, retries and a kill', async () => {
  const database = await databaseOfProgram(config);
  const folder = temporaryFolder();
  const env = { COMITY_DATABASE_URL: database.url };
  const start = () => spawnServer({ config, env, folder });
  const servers: ServerProcess[] = [await start(), await start()];
  const [first = assert.fail(), second = assert.fail()] = servers;
  const write = async (server: ServerProcess, from: number, end: number): Promise<void> => {
    for (let at = from; at < end; at += 1) {
      const name = at % 4 === 1 ? 'fails' : 'step';
      for (const queue of ['red', 'blue']) {
        const into = servers.length === 2 && at % 2 === 1 ? second : server;
        const json = { title: `${name} ${at}`, queue };
        assert.equal((await into.send('POST', '/api/v1/tickets', { json })).status, 201);
      }
    }
  };
  try {
    await write(first, 0, count / 2);
    await second.kill();
    servers.pop();
    await write(first, count / 2, count);
    for (const queue of ['red', 'blue']) {
      const steps = () => allOf(first, `steps?queue=${queue}`);
      await until(async () => (await steps()).length === count, `all of ${queue} are done`, 60_000);
      assert.deepEqual(
        (await steps()).map(({ title }) => Number(String(title).split(' ')[1])),
        Array.from({ length: count }, (_, at) => at),
      );
    }
    await first.stop();
  } finally {
    for (const server of servers) await server.kill();
    await database.dispose();
  }
});
