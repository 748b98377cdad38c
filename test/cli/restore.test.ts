/** What `comity backup` and `comity restore` refuse, in one line; test/full/cli/restore.test.ts has a service that moves, and an interrupt. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { emptyDatabase } from '../harness/postgres-database.ts';
import { shopConfig as shop, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

/** As in a deployment: one key for both stores. */
const secretKey = { COMITY_SECRET_KEY: '3f'.repeat(32) };

async function freshDatabase(context: TestContext): Promise<string> {
  const server = await emptyDatabase();
  context.after(() => server.dispose());
  return server.url;
}

test('refuses a database or a folder that holds a store already, in one line', async (context) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  await (await startServer({ folder: data, env: secretKey })).stop();
  const copy = join(folder, 'copy.db');
  await runCommand(['backup', copy, '--data', data]);
  const url = await freshDatabase(context);
  const environment = { COMITY_DATABASE_URL: url, COMITY_CONFIG: shop, ...secretKey };
  assert.equal((await runCommand(['restore', copy], environment)).code, 0);
  const twice = await runCommand(['restore', copy], environment);
  assert.deepEqual([twice.code, twice.stdout], [1, '']);
  assert.match(
    twice.stderr,
    /^comity: the schema "comity" of [^@\n]* holds rows already \(server_secrets, signing_keys, endpoint_generation, webhook_keys, sender_secrets, work_hold, document_migrations\); [^\n]*\n$/,
  );
  const there = await runCommand(['restore', copy, '--data', data], { COMITY_CONFIG: shop });
  assert.deepEqual(
    [there.code, there.stderr],
    [
      1,
      `comity: the folder ${data} already holds a store (comity.db); name an empty folder with --data or COMITY_DATA\n`,
    ],
  );
});

test('refuses a file that is none, and leaves no folder behind', async () => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const missing = join(folder, 'missing.db');
  const { code, stderr } = await runCommand(['restore', missing, '--data', data], { COMITY_CONFIG: shop });
  assert.equal(code, 1);
  assert.match(stderr, /^comity: cannot read [^\n]*missing\.db: ENOENT[^\n]*\n$/);
  assert.ok(!existsSync(data));
  const backup = await runCommand(['restore', shop, '--data', data], { COMITY_CONFIG: shop });
  assert.equal(backup.stderr, `comity: ${shop} is not a file that "comity backup" wrote\n`);
});

test('says what is wrong with a database in one line that holds no password', async (context) => {
  const url = await freshDatabase(context);
  const folder = temporaryFolder();
  const to = join(folder, 'copy.db');
  const none = await runCommand(['backup', to], { COMITY_DATABASE_URL: url });
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^comity: there is no store in the schema "comity" of [^@\n]*\n$/);
  const wrong = new URL(url);
  wrong.username = 'nobody_at_all';
  wrong.password = 'hunter2';
  const refused = await runCommand(['backup', to], { COMITY_DATABASE_URL: wrong.href });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^comity: PostgreSQL at [^@\n]* cannot be used: [^\n]*\n$/);
  assert.doesNotMatch(refused.stderr, /hunter2/);
  assert.deepEqual(readdirSync(folder), []);
});
