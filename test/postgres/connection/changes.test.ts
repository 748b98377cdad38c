import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, test } from 'node:test';
import { Changes, type Following, lostNumber } from '../../../src/store/postgres/changes.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type { Connection, Rows } from '../../../src/store/postgres/connection/connection.ts';
import { createConnection } from '../../../src/store/postgres/connection/connection.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { until } from '../../harness/until.ts';
import { Wire } from './wire.ts';

const numbers = new Map([
  ['products', 1],
  ['notes', 2],
]);
/** Longer than any test takes: what arrives came by the other ways. */
const neverMs = 600_000;

let server: TestDatabase;
let database: Connection;
before(async () => {
  server = await emptyDatabase();
  database = createConnection({
    address: addressOf(server.url),
    name: 'comity test',
    connectTimeoutMs: 10_000,
    timeoutMs: 10_000,
  });
});
after(async () => {
  await database.close();
  await server.dispose();
});

/** The counters of a schema, and what another process would do to them. */
async function makeSchema(schema: string): Promise<{
  counters: () => Promise<Rows>;
  commit: (rev: number, tables: readonly number[], options?: { readonly silently: boolean }) => Promise<void>;
  notify: (payload: string) => Promise<void>;
  rewind: (rev: number) => Promise<void>;
}> {
  const sql = (text: string, ...values: (string | number | readonly number[])[]) => ({ sql: text, values });
  const table = `"${schema}".comity_counters`;
  await database.send([
    sql(`CREATE SCHEMA "${schema}"`),
    sql(`CREATE TABLE ${table} (n int PRIMARY KEY, rev bigint)`),
    sql(`INSERT INTO ${table} VALUES (0, 0), (1, 0), (2, 0), (3, 0)`),
  ]);
  const notify = (payload: string) => sql('SELECT pg_notify($1, $2)', `comity_${schema}`, payload);
  return {
    counters: async () => (await database.send([sql(`SELECT n, rev FROM ${table}`)]))[0]?.rows ?? [],
    async commit(rev, tables, { silently } = { silently: false }) {
      await database.send([
        sql('BEGIN'),
        sql(`UPDATE ${table} SET rev = $1::bigint WHERE n = 0 OR n = ANY ($2::int[])`, rev, tables),
        ...(silently ? [] : [notify(`${rev}:${tables.join(',')}`)]),
        sql('COMMIT'),
      ]);
    },
    async notify(payload) {
      await database.send([notify(payload)]);
    },
    async rewind(rev) {
      await database.send([sql(`UPDATE ${table} SET rev = least(rev, $1::bigint)`, rev)]);
    },
  };
}

type Followed = {
  readonly changes: Changes;
  /** What `onChanged` was called with, in order. */
  readonly calls: readonly (readonly string[])[];
  readonly observed: readonly Following['how'][];
  /** How often `onLost` was called. */
  readonly losses: () => number;
  /** Resolves once `onChanged` was called so often; and once so much was observed. */
  readonly called: (times: number) => Promise<void>;
  readonly observes: (times: number) => Promise<void>;
};

function follow(
  context: { after(end: () => Promise<void>): void },
  schema: string,
  counters: (known: readonly number[]) => Promise<Rows>,
  options: { readonly url?: string; readonly pollMs?: number; readonly connectTimeoutMs?: number } = {},
): Followed {
  const happened = new EventEmitter();
  const calls: string[][] = [];
  const observed: Following['how'][] = [];
  let losses = 0;
  const changes = new Changes({
    address: addressOf(options.url ?? server.url),
    schema,
    pollMs: options.pollMs ?? neverMs,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    numbers,
    onChanged(tables) {
      calls.push([...tables].sort());
      happened.emit('any');
    },
    onLost() {
      losses += 1;
    },
    readCounters: counters,
    observe({ how }) {
      observed.push(how);
      happened.emit('any');
    },
  });
  context.after(() => changes.close());
  return {
    changes,
    calls,
    observed,
    losses: () => losses,
    called: async (times) => {
      while (calls.length < times) await once(happened, 'any');
    },
    observes: async (times) => {
      while (observed.length < times) await once(happened, 'any');
    },
  };
}

test('what others commit is heard by notification, once for all tables of it', async (t) => {
  const { counters, commit } = await makeSchema('heard');
  const { changes, calls, called, observed, observes } = follow(t, 'heard', counters);
  await changes.ready;
  await observes(1);
  assert.deepEqual(observed, ['notify']);
  assert.equal(changes.listening, true);
  await commit(1, [1, 2]);
  await called(1);
  await commit(2, [2]);
  await called(2);
  assert.deepEqual(calls, [['notes', 'products'], ['notes']]);
});

test('what stands when a process begins counts as changed', async (t) => {
  const { counters, commit } = await makeSchema('stood');
  await commit(7, [2]);
  const { calls, called } = follow(t, 'stood', counters);
  await called(1);
  assert.deepEqual(calls, [['notes']]);
});

test('a commit of this process is told at once, and once, though it is notified and counted too', async (t) => {
  const { counters, commit } = await makeSchema('own');
  const { changes, calls, called, observes } = follow(t, 'own', counters);
  await observes(1);
  changes.note(1, 5);
  assert.deepEqual(calls, [['products']]);
  await commit(5, [1]);
  await changes.poll();
  await commit(6, [2]);
  await called(2);
  assert.deepEqual(calls, [['products'], ['notes']]);
});

test('a table that this process does not have is passed over', async (t) => {
  const { counters, commit } = await makeSchema('foreign');
  const { changes, calls, called, observes } = follow(t, 'foreign', counters);
  await observes(1);
  changes.note(3, 1);
  await commit(2, [3]);
  await commit(3, [1, 3]);
  await called(1);
  assert.deepEqual(calls, [['products']]);
});

test('payloads that no committer wrote are passed over', async (t) => {
  const { counters, notify } = await makeSchema('strict');
  const { calls, called, observes } = follow(t, 'strict', counters);
  await observes(1);
  const bad = [
    '',
    ':',
    '1',
    '1:',
    ':1',
    '1:1,',
    '1:,1',
    'x:1',
    '1:x',
    '01:1',
    '1: 1',
    '1:1.5',
    '-1:1',
    '0:1',
    '1e3:1',
  ];
  for (const payload of [...bad, '9007199254740993:1', '1:1:1', '1:*', 'hello deadbeef'])
    await notify(payload);
  await notify('4:2');
  await called(1);
  assert.deepEqual(calls, [['notes']]);
});

test('a change that nobody notified is found by looking', async (t) => {
  const { counters, commit } = await makeSchema('looked');
  const { calls, called, observes } = follow(t, 'looked', counters, { pollMs: 20 });
  await observes(1);
  await commit(1, [1], { silently: true });
  await called(1);
  await commit(2, [1], { silently: true });
  await called(2);
  assert.deepEqual(calls, [['products'], ['products']]);
});

test('a look that fails is made good by the next', async (t) => {
  const { counters, commit } = await makeSchema('failing');
  let fails = true;
  const { calls, called, changes } = follow(
    t,
    'failing',
    () => (fails ? Promise.reject(new Error('not now')) : counters()),
    { pollMs: 20 },
  );
  await commit(1, [1], { silently: true });
  await changes.poll();
  assert.deepEqual(calls, []);
  fails = false;
  await called(1);
  await changes.ready;
  assert.deepEqual(calls, [['products']]);
});

test('a notification with a revision that never was hides no later change for longer than a look takes', async (t) => {
  const { counters, commit, notify } = await makeSchema('forged');
  const { changes, calls, called, observes } = follow(t, 'forged', counters);
  await observes(1);
  await notify('9007199254740991:1');
  await called(1);
  await commit(1, [1]);
  await changes.poll();
  assert.deepEqual(calls, [['products'], ['notes', 'products']]);
  assert.equal(changes.newestRev, 1);
  await commit(2, [1]);
  await called(3);
  assert.deepEqual(calls[2], ['products']);
});

test('a store that lost revisions counts as changed in every table', async (t) => {
  const { counters, commit, rewind } = await makeSchema('rewound');
  const { changes, calls, called, observes, losses } = follow(t, 'rewound', counters);
  await observes(1);
  await commit(10, [1]);
  await called(1);
  await rewind(4);
  await changes.poll();
  assert.deepEqual(calls[1], ['notes', 'products']);
  assert.equal(losses(), 1);
  await changes.poll();
  assert.equal(calls.length, 2);
  assert.equal(losses(), 1);
  await commit(5, [1]);
  await called(3);
  assert.deepEqual(calls[2], ['products']);
});

/** Revisions that another server's counter was raised over, when it took over without the units from 5 on. */
const raisedOver = { before: 4, after: 2000 };

async function countersAfter(counters: () => Promise<Rows>, known: readonly number[]): Promise<Rows> {
  const isLost = known.some((rev) => raisedOver.before < rev && rev <= raisedOver.after);
  return isLost ? [...(await counters()), [lostNumber, 0]] : counters();
}

for (const heardBy of ['notification', 'a commit of this process'] as const) {
  test(`units that were lost while no look succeeded are noticed, though a later one was heard of by ${heardBy}`, async (t) => {
    const schema = `missed ${heardBy}`;
    const { counters, commit, rewind } = await makeSchema(schema);
    let fails = false;
    const { changes, called, observes, losses } = follow(t, schema, (known) =>
      fails ? Promise.reject(new Error('not now')) : countersAfter(counters, known),
    );
    await observes(1);
    for (const rev of [4, 10]) {
      await commit(rev, [1], { silently: true });
      await changes.poll();
    }
    fails = true;
    await rewind(4);
    const later = raisedOver.after + 1;
    await commit(later, [1], { silently: heardBy !== 'notification' });
    if (heardBy !== 'notification') changes.note(1, later);
    await called(3);
    await changes.poll();
    assert.equal(losses(), 0);
    fails = false;
    await changes.poll();
    assert.equal(losses(), 1);
    assert.equal(changes.known('products'), later);
    await changes.poll();
    assert.equal(losses(), 1);
  });
}

test('a process that heard of nothing but what was kept, and of later units, has lost nothing', async (t) => {
  const { counters, commit } = await makeSchema('kept');
  const { changes, observes, losses } = follow(t, 'kept', (known) => countersAfter(counters, known));
  await observes(1);
  await commit(4, [1]);
  await changes.poll();
  await commit(raisedOver.after + 1, [1]);
  await changes.poll();
  await changes.poll();
  assert.equal(losses(), 0);
});

test('what is committed while a look finds out that units are lost is not forgotten', async (t) => {
  const { counters, commit, rewind } = await makeSchema('meanwhile');
  const held = Promise.withResolvers<void>();
  let holds = false;
  let isRead = false;
  const { changes, observes, losses } = follow(t, 'meanwhile', async (known) => {
    const rows = await countersAfter(counters, known);
    isRead = holds;
    if (holds) await held.promise;
    return rows;
  });
  await observes(1);
  await commit(10, [1], { silently: true });
  await changes.poll();
  await rewind(4);
  holds = true;
  const looking = changes.poll();
  await until(() => isRead);
  const later = raisedOver.after + 1;
  await commit(later, [1], { silently: true });
  changes.note(1, later);
  held.resolve();
  await looking;
  assert.equal(losses(), 1);
  assert.equal(changes.known('products'), later);
  assert.equal(changes.newestRev, later);
});

test('asked to look while it looks, it looks once more', async (t) => {
  const { counters } = await makeSchema('twice');
  let looks = 0;
  const first = Promise.withResolvers<void>();
  const { changes, observes } = follow(t, 'twice', async () => {
    looks += 1;
    if (looks === 1) await first.promise;
    return counters();
  });
  await observes(1);
  const asked = [changes.poll(), changes.poll(), changes.poll()];
  first.resolve();
  await Promise.all(asked);
  assert.equal(looks, 2);
});

test('what was committed while the listening connection was lost is found when it is made anew', async (t) => {
  const { counters, commit } = await makeSchema('cut');
  const wire = await Wire.before(server.url, t);
  const { calls, called, changes, observed, observes } = follow(t, 'cut', counters, { url: wire.url });
  await observes(1);
  wire.refusing = true;
  wire.cut();
  await observes(2);
  assert.equal(changes.listening, false);
  await commit(1, [1]);
  assert.deepEqual(calls, []);
  wire.refusing = false;
  await observes(3);
  await called(1);
  // Every table: whether the server is the one that it was cannot be known.
  assert.deepEqual(calls, [['notes', 'products']]);
  assert.deepEqual(observed, ['notify', 'poll', 'notify']);
  await commit(2, [2]);
  await called(2);
  assert.deepEqual(calls[1], ['notes']);
});

test('where notifications do not arrive, changes are followed by looking, and that is told', async (t) => {
  const { counters, commit } = await makeSchema('deaf');
  const wire = await Wire.before(server.url, t);
  wire.withoutNotifications = true;
  const { calls, called, changes, observed, observes } = follow(t, 'deaf', counters, {
    url: wire.url,
    pollMs: 50,
  });
  await observes(1);
  assert.deepEqual(observed, ['poll']);
  assert.equal(changes.listening, false);
  await commit(1, [1]);
  await called(1);
  assert.deepEqual(calls, [['products']]);
  wire.withoutNotifications = false;
  wire.cut();
  await observes(2);
  assert.deepEqual(observed, ['poll', 'notify']);
});
