/** Who else serves from a schema: rows of processes, and what is told of those that differ. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Observation } from '../../../src/observe/observation.ts';
import type { Call, Rows } from '../../../src/store/postgres/connection/session.ts';
import { type Peers, startPeers } from '../../../src/store/postgres/peers.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { until } from '../../harness/until.ts';

let server: TestDatabase;
let client: pg.Client;
const table = 'comity.comity_processes';
/** Longer than a test: looks are taken by hand. */
const everyMs = 60_000;

before(async () => {
  server = await emptyDatabase();
  const store = await openPostgresStore({ url: server.url, tables: [] });
  await store.close();
  client = new pg.Client(server.url);
  await client.connect();
});

after(async () => {
  await client.end();
  await server.dispose();
});

async function send({ sql, values }: Call): Promise<Rows> {
  return (await client.query({ text: sql, values: [...values], rowMode: 'array' })).rows;
}

type Process = { readonly peers: Peers; readonly told: string[]; readonly facts: Observation[] };

async function start(
  process: string,
  facts: Readonly<Record<string, string>>,
  sends = send,
  clock = Date.now,
): Promise<Process> {
  const told: string[] = [];
  const all: Observation[] = [];
  const observe = (fact: Observation): void => {
    all.push(fact);
    if (fact.kind === 'processes-differ') told.push(fact.what);
  };
  const peers = startPeers({
    send: sends,
    schema: 'comity',
    process,
    facts,
    everyMs,
    clock,
    observe,
  });
  await peers.look();
  return { peers, told, facts: all };
}

async function processes(): Promise<readonly string[]> {
  return (await client.query(`SELECT process FROM ${table} ORDER BY process`)).rows.map((row) => row.process);
}

const facts = { program: '1', collections: 'a', settings: 'b' };

test('keeps a row for each process while it lives, and takes it away when it stops', async () => {
  const one = await start('one', facts);
  const other = await start('other', facts);
  assert.deepEqual(await processes(), ['one', 'other']);
  await one.peers.look();
  assert.deepEqual([...one.told, ...other.told], []);
  await one.peers.stop();
  assert.deepEqual(await processes(), ['other']);
  await other.peers.stop();
  assert.deepEqual(await processes(), []);
});

test('tells once of each difference, by name', async () => {
  const one = await start('one', facts);
  const other = await start('other', { ...facts, collections: 'x', program: '2' });
  assert.deepEqual(other.told, ['other collections', 'another version of the program']);
  for (let look = 0; look < 3; look += 1) await one.peers.look();
  assert.deepEqual(one.told, ['other collections', 'another version of the program']);
  const third = await start('third', { ...facts, settings: 'y' });
  await one.peers.look();
  assert.deepEqual(one.told.slice(2), ['other settings that must agree']);
  for (const { peers } of [one, other, third]) await peers.stop();
});

test('tells nothing of a process that is gone, and removes a row that nobody renewed for a minute', async () => {
  const gone = JSON.stringify({ ...facts, collections: 'x' });
  const ago = (ms: number) => `(extract(epoch FROM now()) * 1000)::bigint - ${ms}`;
  const silentMs = 3 * everyMs + 1000;
  await client.query(
    `INSERT INTO ${table} VALUES ('silent', ${ago(silentMs)}, $1), ('recent', ${ago(50_000)}, $2)`,
    [gone, JSON.stringify(facts)],
  );
  const one = await start('one', facts);
  assert.deepEqual(one.told, []);
  await one.peers.look();
  assert.deepEqual(await processes(), ['one', 'recent']);
  await one.peers.stop();
  await client.query(`DELETE FROM ${table}`);
});

test('reports a clock that differs by more than three seconds until it is set, and only then', async () => {
  let secondsAhead = 0;
  const clock = () => Date.now() + 1000 * secondsAhead;
  const one = await start('one', facts);
  const other = await start('other', facts, send, clock);
  const lookTwice = async () => {
    // One measures, the next writes and compares.
    for (let look = 0; look < 2; look += 1) for (const { peers } of [other, one]) await peers.look();
    return [one, other].map(({ facts }) => facts.splice(0).map(aheadOf));
  };
  assert.deepEqual(await lookTwice(), [[], []]);
  for (const [ahead, seenByOne, seenByOther] of [
    [2.4, [], []],
    [3.6, [1], [-1]],
    [3.6, [], []],
    [0, [0], [0]],
    [-7200, [-1], [1]],
  ] as const) {
    secondsAhead = ahead;
    assert.deepEqual(await lookTwice(), [seenByOne, seenByOther], `${ahead} s ahead`);
  }
  for (const { peers } of [one, other]) await peers.stop();
});

/** The sign: a busy machine measures up to half a second wrong. */
function aheadOf(fact: Observation): number | string {
  return fact.kind === 'clocks-differ' ? Math.sign(fact.otherAheadMs) : fact.kind;
}

test('a look that fails is observed once, and stopping without a database ends', async () => {
  let works = false;
  const one = await start('one', facts, (call) =>
    works ? send(call) : Promise.reject(new Error('the test cut the connection')),
  );
  await one.peers.look();
  assert.deepEqual(
    one.facts.map(({ kind }) => kind),
    ['store-failed'],
  );
  works = true;
  await one.peers.look();
  assert.deepEqual(await processes(), ['one']);
  works = false;
  await one.peers.stop();
  await client.query(`DELETE FROM ${table}`);
});

test('many processes look at the same time without waiting for each other', async () => {
  await client.query(`INSERT INTO ${table} SELECT 'old' || n, 0, '{}' FROM generate_series(1, 50) n`);
  const clients = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const own = new pg.Client(server.url);
      await own.connect();
      return own;
    }),
  );
  const all = await Promise.all(
    clients.map((own, at) =>
      start(`p${at}`, facts, async ({ sql, values }) => {
        return (await own.query({ text: sql, values: [...values], rowMode: 'array' })).rows;
      }),
    ),
  );
  for (let look = 0; look < 10; look += 1) await Promise.all(all.map(({ peers }) => peers.look()));
  assert.deepEqual(
    all.flatMap((process) => process.facts),
    [],
    'no deadlock',
  );
  assert.equal((await processes()).length, 8);
  for (const { peers } of all) await peers.stop();
  for (const own of clients) await own.end();
});

test('counts a process as ended when it stopped, and when it gave no sign of life for three times', async (t) => {
  // A sign of life of its own accord would undo the time that the test takes away.
  t.mock.timers.enable({ apis: ['setInterval'] });
  const watcher = await start('watcher', {});
  const other = await start('other', {});
  assert.deepEqual(
    [await watcher.peers.hasEnded('other'), await watcher.peers.hasEnded('watcher')],
    [false, false],
  );
  await client.query(`UPDATE ${table} SET seen_at = seen_at - ${3 * everyMs + 1} WHERE process = 'other'`);
  assert.equal(await watcher.peers.hasEnded('other'), true);
  await other.peers.look();
  assert.equal(await watcher.peers.hasEnded('other'), false);
  await other.peers.stop();
  assert.equal(await watcher.peers.hasEnded('other'), true);
  await watcher.peers.stop();
});

test('a store is open once its process counts as alive, so that no other takes over what it claims', async (t) => {
  const url = server.url;
  await client.query(`BEGIN; LOCK TABLE ${table} IN EXCLUSIVE MODE`);
  let isOpen = false;
  const opening = openPostgresStore({ url, tables: [] }).then((store) => {
    isOpen = true;
    return store;
  });
  t.after(async () => (await opening).close());
  const looker = new pg.Client(url);
  await looker.connect();
  t.after(() => looker.end());
  const isWaiting = async (): Promise<boolean> => {
    const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = '${table}'::regclass`;
    return (await looker.query(waiting)).rows.length > 0;
  };
  await until(isWaiting, 'the first heartbeat waits');
  // What the opening needs besides is there by now, or soon.
  await delay(200);
  assert.equal(isOpen, false);
  await client.query('ROLLBACK');
  const store = await opening;
  const other = await start('other', {});
  assert.equal(await other.peers.hasEnded(store.processId), false);
  await other.peers.stop();
});
