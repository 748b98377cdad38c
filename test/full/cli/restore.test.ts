/**
 * `comity backup` and `comity restore` between the two stores: a service moves to PostgreSQL and back, and what its clients hold stays
 * good. What an interrupt leaves, with `comity restore` as a process.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import {
  type RunningServer as Server,
  shopConfig as shop,
  startServer,
} from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

/** As in a deployment: one key for both stores. */
const secretKey = { COMITY_SECRET_KEY: '3f'.repeat(32) };

type Answer = { readonly status: number; readonly headers: Headers; readonly body: string };

/** Sends as the administrator. */
async function send(
  server: Server,
  key: string,
  method: string,
  path: string,
  { headers = {}, json }: { readonly headers?: Record<string, string>; readonly json?: unknown } = {},
): Promise<Answer> {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      'X-API-Key': key,
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  return { status: answer.status, headers: answer.headers, body: await answer.text() };
}

/** The next events of the stream after one that the client has seen. */
async function eventsAfter(
  server: Server,
  key: string,
  id: string,
  count: number,
): Promise<readonly string[]> {
  const ended = new AbortController();
  const answer = await fetch(`${server.url}/api/v1/events`, {
    headers: { 'X-API-Key': key, Accept: 'text/event-stream', 'Last-Event-ID': id },
    signal: ended.signal,
  });
  let text = '';
  const ids = (): readonly string[] => [...text.matchAll(/^id: ?(\S+)$/gm)].map(([, found]) => String(found));
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (ids().length >= count) break;
  }
  ended.abort();
  return ids().slice(0, count);
}

async function freshDatabase(context: TestContext): Promise<string> {
  const server = await emptyDatabase();
  context.after(() => server.dispose());
  return server.url;
}

function reportOf(stdout: string): Record<string, unknown> {
  return JSON.parse(stdout) as Record<string, unknown>;
}

const keyed = { headers: { 'Idempotency-Key': 'once-1' }, json: { name: 'Keyed' } };

/** Fills a service as its clients would, and returns what they then hold on to. */
async function useService(server: Server, key: string) {
  const category = await send(server, key, 'POST', '/api/v1/categories', { json: { name: 'Küche 😀' } });
  const { id: categoryId } = JSON.parse(category.body);
  for (let at = 0; at < 30; at += 1) {
    const json = { name: `Thing ${at}`, price: at, categoryId, sku: `s${at}` };
    assert.equal((await send(server, key, 'POST', '/api/v1/products', { json })).status, 201);
  }
  const path = `/api/v1/categories/${categoryId}`;
  const keyedAnswer = await send(server, key, 'POST', '/api/v1/categories', keyed);
  const read = await send(server, key, 'GET', path);
  const page = JSON.parse((await send(server, key, 'GET', '/api/v1/products?sort=price&limit=10')).body);
  const next = `/api/v1/products?sort=price&limit=10&cursor=${encodeURIComponent(page.nextCursor)}`;
  const log = JSON.parse((await send(server, key, 'GET', '/api/v1/events?limit=100')).body);
  const events = log.items.map(({ id }: { id: string }) => id).sort() as string[];
  assert.equal(events.length, 32);
  return { path, read, keyedAnswer, next, nextPage: await send(server, key, 'GET', next), events };
}

type Held = Awaited<ReturnType<typeof useService>>;

/** What clients hold is good on the service as it stands now, which they then change. @returns the change */
async function goOn(server: Server, key: string, held: Held): Promise<Answer> {
  const { path, read } = held;
  const tag = read.headers.get('etag') ?? '';
  const now = await send(server, key, 'GET', path);
  assert.deepEqual([now.status, now.body, now.headers.get('etag')], [200, read.body, tag]);
  assert.equal((await send(server, key, 'GET', path, { headers: { 'If-None-Match': tag } })).status, 304);
  const headers = { 'If-Match': tag, 'Content-Type': 'application/merge-patch+json' };
  const patched = await send(server, key, 'PATCH', path, { headers, json: { name: 'Bad' } });
  assert.equal(patched.status, 200);
  assert.notEqual(patched.headers.get('etag'), tag);
  assert.equal((await send(server, key, 'PATCH', path, { headers, json: { name: 'Bath' } })).status, 412);
  assert.equal((await send(server, key, 'GET', held.next)).body, held.nextPage.body);
  const again = await send(server, key, 'POST', '/api/v1/categories', keyed);
  assert.deepEqual([again.status, again.body], [held.keyedAnswer.status, held.keyedAnswer.body]);
  return patched;
}

test('moves a service to PostgreSQL and back: keys, tags, cursors, keyed answers and streams stay good', async (context) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const onFolder = await startServer({ folder: data, env: { ...secretKey, COMITY_ADMIN_KEY: '' } });
  // The key that the first start made is kept in the store, and so moves with it.
  const key = /COMITY_ADMIN_KEY=(\S+)/.exec(onFolder.stdout())?.[1] ?? '';
  const held = await useService(onFolder, key);
  await onFolder.stop();

  const moved = join(folder, 'moved.db');
  assert.equal((await runCommand(['backup', moved, '--data', data])).code, 0);
  const url = await freshDatabase(context);
  const environment = { COMITY_DATABASE_URL: url, COMITY_CONFIG: shop, ...secretKey };
  const restored = await runCommand(['restore', moved, '--no-hold-deliveries', '--json'], environment);
  assert.deepEqual([restored.code, restored.stderr], [0, '']);
  const { into, rows, revision } = reportOf(restored.stdout);
  assert.match(String(into), /^[^@]+:\d+\/comity_test_\w+$/);
  assert.ok(Number(rows) > 64 && Number(revision) >= 32);

  const onDatabase = await startServer({ env: { ...environment, COMITY_ADMIN_KEY: '' } });
  assert.doesNotMatch(onDatabase.stdout(), /administrator key was created/);
  const patched = await goOn(onDatabase, key, held);
  const seen = await eventsAfter(onDatabase, key, String(held.events[20]), 12);
  assert.deepEqual(seen.slice(0, 11), held.events.slice(21));
  const back = join(folder, 'back.db');
  const backedUp = await runCommand(['backup', back, '--json'], environment);
  assert.deepEqual([backedUp.code, backedUp.stderr, reportOf(backedUp.stdout).file], [0, '', back]);
  await onDatabase.stop();

  const copy = join(folder, 'copy');
  // A folder named by hand is meant, whatever the environment says.
  const laptop = await runCommand(['restore', back, '--data', copy], environment);
  assert.deepEqual([laptop.code, laptop.stderr], [0, '']);
  assert.match(
    laptop.stdout,
    /\/copy holds the whole store \(\d+ rows, revision \d+, \d+ ms\)\nIts deliveries and mails are held until "comity release"\.\n$/,
  );
  const onCopy = await startServer({ folder: copy, env: { ...secretKey, COMITY_ADMIN_KEY: '' } });
  const same = await send(onCopy, key, 'GET', held.path);
  assert.deepEqual([same.body, same.headers.get('etag')], [patched.body, patched.headers.get('etag')]);
  assert.deepEqual(await eventsAfter(onCopy, key, String(held.events[31]), 1), seen.slice(11));
  await onCopy.stop();
});

test('leaves an empty schema when it is interrupted', async (context) => {
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  await (await startServer({ folder: data, env: secretKey })).stop();
  const copy = join(folder, 'copy.db');
  await runCommand(['backup', copy, '--data', data]);
  const url = await freshDatabase(context);
  const environment = { COMITY_DATABASE_URL: url, COMITY_CONFIG: shop, ...secretKey };
  // A first start makes the schema and its rows; without the rows it is as a restore finds it.
  await (await startServer({ env: environment })).stop();
  const look = new pg.Client({ connectionString: url });
  const holder = new pg.Client({ connectionString: url });
  for (const client of [look, holder]) {
    client.on('error', () => undefined);
    await client.connect();
  }
  const made = ['server_secrets', 'signing_keys', 'endpoint_generation', 'webhook_keys', 'sender_secrets'];
  for (const table of [...made, 'document_migrations']) {
    await look.query(`DELETE FROM comity.${table}`);
  }
  await holder.query('BEGIN; SELECT FROM comity.comity_counters WHERE n = 0 FOR UPDATE');
  const interrupted = spawnCommand(['restore', copy], environment);
  const waiting = `SELECT FROM pg_stat_activity WHERE application_name = 'comity restore' AND wait_event_type = 'Lock' AND datname = current_database()`;
  while ((await look.query(waiting)).rowCount === 0) await nextTurn();
  interrupted.process.kill('SIGINT');
  const { code, stderr } = await interrupted.ended;
  assert.deepEqual([code, stderr], [1, 'comity: interrupted: nothing was restored\n']);
  await holder.query('ROLLBACK');
  assert.equal((await look.query('SELECT FROM comity.server_secrets')).rowCount, 0);
  assert.equal((await runCommand(['restore', copy], environment)).code, 0);
  await look.end();
  await holder.end();
});
