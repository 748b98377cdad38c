/** Repetitions that come at once, to two processes on one database and to the one that has an embedded store (§4.14.4, §6.3). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { allOf, bankMessage, ledgerConfig, ledgerEnvironment, type Message, sendToBank } from './messages.ts';

const copies = 30;

async function becomesProcessed(program: RunningServer, message: Message): Promise<void> {
  // A process that has just begun takes over lanes of the other, which takes some seconds.
  await until(async () => {
    const found = await allOf(program, `received?dedupeKey=${message.id}`);
    assert.equal(found.length, 1, 'a repetition was kept');
    return found[0]?.status === 'processed';
  }, 'the message is handled');
}

async function showOnce(programs: readonly RunningServer[]): Promise<void> {
  const messages = [bankMessage({ amount: 5 }), bankMessage({ amount: 7 })];
  const answers = await Promise.all(
    messages.flatMap((message) =>
      Array.from({ length: copies }, (_, at) =>
        sendToBank(programs[at % programs.length] ?? assert.fail(), message),
      ),
    ),
  );
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]));
  const [first = assert.fail()] = programs;
  for (const message of messages) await becomesProcessed(first, message);
  assert.equal((await allOf(first, 'received')).length, messages.length);
  assert.equal((await allOf(first, 'entries')).length, messages.length);
  assert.equal((await first.send('GET', '/api/v1/sums/all')).json().amount, 12);
}

describe('thirty copies of a message at once', { concurrency: 2 }, () => {
  test('are one message, handled once, with an embedded store', async () => {
    const program = await startServer({ env: ledgerEnvironment, config: ledgerConfig });
    try {
      await showOnce([program]);
    } finally {
      await program.stop();
    }
  });

  test('are one message, handled once, by two processes on PostgreSQL', async () => {
    const database = await databaseOfProgram(ledgerConfig);
    const folder = temporaryFolder();
    const env = { ...ledgerEnvironment, COMITY_DATABASE_URL: database.url };
    const start = () => startServer({ env, config: ledgerConfig, folder });
    const programs = [await start(), await start()];
    try {
      await showOnce(programs);
    } finally {
      await Promise.all(programs.map((program) => program.stop()));
      await database.dispose();
    }
  });
});
