/** Handing on over an embedded store, on a clock that the test moves: what it begins, what it leaves, and what it keeps in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeclaredSender } from '../../../src/config/senders.ts';
import { keptRow } from '../../../src/store/store.ts';
import {
  receivedContentsTable,
  senderSecretsTable,
} from '../../../src/webhooks/receiving/received-tables.ts';
import { attemptsOf, done, failed, message, put, rewrite, sender, standing, table } from './fixture.ts';
import {
  after,
  arrive,
  type Begun,
  embedded,
  type SceneOptions,
  scene,
  start,
  statusIs,
  stuck,
} from './scene.ts';

test('hands on what is due at its start and what comes, in the order of receipt and once each', async () => {
  const played = await scene(after(5), { senders: [sender('billing', { inFlightMax: 1 })] });
  await arrive(played, 30);
  await played.pass(1000);
  assert.equal(played.begun.length, 0);
  await played.engine.start();
  await played.pass(1000);
  await arrive(played, 5, 'billing', 'rec_later');
  await played.pass(1000);
  const ids = played.begun.map(({ id }) => id);
  assert.equal(ids.length, 35);
  assert.deepEqual(ids, ids.toSorted());
  for (const [index, { at }] of played.begun.slice(1).entries()) {
    assert.ok(at - (played.begun[index]?.at ?? 0) >= 5, 'one begins before the one before it has ended');
  }
  assert.equal((await standing(embedded, 'rec_later_00004'))?.status, 'processed');
  assert.deepEqual(played.engine.counts(), { inFlight: 0, waiting: 0, paused: 0 });
  const lags = played.observed.map((each) => (each.kind === 'received-handed-on' ? each.lagMs : -1));
  assert.deepEqual([lags[0], lags[30]], [1005, 5]);
  await played.close();
});

test('hands on at once what was received under a clock that was ahead', async () => {
  const played = await scene(async () => done);
  const now = played.time.clock();
  await put(played.store, message('rec_ahead', now + 72 * 3_600_000));
  await played.engine.start();
  await played.pass(1000);
  assert.deepEqual(
    played.begun.map(({ id, at }) => [id, at - now]),
    [['rec_ahead', 0]],
  );
  assert.equal((await standing(embedded, 'rec_ahead'))?.status, 'processed');
  assert.ok(played.observed.some(({ kind }) => kind === 'work-rescheduled'));
  await played.close();
});

test('tries again by the schedule to the millisecond, and then leaves a dead letter', async () => {
  const played = await scene(async () => failed('thrown'));
  await arrive(played, 1);
  const began = played.time.clock();
  await played.engine.start();
  await played.pass(120_000);
  assert.deepEqual(
    played.begun.map(({ at, attempt }) => [at - began, attempt]),
    [
      [0, 1],
      [5000, 2],
      [35_000, 3],
    ],
  );
  const now = await standing(embedded, 'rec_billing_00000');
  assert.deepEqual([now?.status, now?.dueAt, now?.attempts, now?.lastError], ['failed', null, 3, 'thrown']);
  assert.deepEqual(
    (await attemptsOf(embedded, 'rec_billing_00000')).map(({ number, trigger }) => [number, trigger]),
    [1, 2, 3].map((number) => [number, 'automatic']),
  );
  const told = played.observed.filter(({ kind }) => kind === 'received-handed-on');
  assert.deepEqual(
    told.map((each) => each.kind === 'received-handed-on' && [each.again, each.failure, each.lagMs]),
    [
      [true, 'thrown', 0],
      [true, 'thrown', 5000],
      [false, 'thrown', 35_000],
    ],
  );
  await played.close();
});

test('reports each failure of a function with its next attempt, and none of forwarding', async () => {
  const url = new URL('http://receiver.example');
  const forward = { kind: 'forward', url, scheme: 'standard', secretVariable: 'FORWARD' } as const;
  const senders = [
    sender('billing', { schedule: [5] }),
    sender('post', { schedule: [5], handOn: forward as DeclaredSender['handOn'] }),
  ];
  const played = await scene(
    async () => ({ ...failed('thrown'), message: 'x'.repeat(900), frames: 'at f' }),
    {
      senders,
    },
  );
  const began = played.time.clock();
  await arrive(played, 1);
  await arrive(played, 1, 'post');
  await played.engine.start();
  await played.pass(20_000);
  const facts = { kind: 'function-failed', sender: 'billing', message: 'rec_billing_00000' } as const;
  const reason = 'x'.repeat(500);
  assert.deepEqual(
    played.observed.filter(({ kind }) => kind === 'function-failed'),
    [new Date(began + 5000).toISOString(), null].map((nextAt, index) => ({
      ...{ ...facts, attempt: index + 1, failure: 'thrown', reason, nextAt, frames: 'at f' },
    })),
  );
  assert.equal(played.begun.length, 4);
  await played.close();
});

test('lets those behind go on where one waits for its next attempt', async () => {
  const played = await scene(
    after(1, ({ received, attempt }) =>
      received.id.endsWith('00000') && attempt === 1 ? failed('thrown') : done,
    ),
    { senders: [sender('billing', { inFlightMax: 1 })] },
  );
  await arrive(played, 3);
  await played.engine.start();
  await played.pass(10_000);
  assert.deepEqual(
    played.begun.map(({ id }) => id.at(-1)),
    ['0', '1', '2', '0'],
  );
  await played.close();
});

test('fails at once what will never do, without pausing the sender', async () => {
  const played = await scene(async () => failed('unprocessable', { permanent: true }));
  await arrive(played, 25);
  await played.engine.start();
  await played.pass(1000);
  assert.equal(played.begun.length, 25);
  assert.equal((await standing(embedded, 'rec_billing_00024'))?.status, 'failed');
  assert.ok(played.observed.every(({ kind }) => kind !== 'sender-paused'));
  await played.close();
});

test('fails a message whose body is gone, without handing it on', async () => {
  const played = await scene(async () => done);
  await arrive(played, 1);
  const id = 'billing/key-rec_billing_00000';
  const row = await embedded.read(receivedContentsTable, id);
  const change = { table: receivedContentsTable, id, expect: { rev: row?.rev ?? 0 } };
  const other = keptRow(row?.doc.replace('rec_billing_00000', 'rec_other') ?? '', null, 0, 0);
  await embedded.commit({ changes: [{ ...change, next: other }], events: [] });
  await played.engine.start();
  await played.pass(100);
  assert.equal(played.begun.length, 0);
  const now = await standing(embedded, 'rec_billing_00000');
  assert.deepEqual([now?.status, now?.lastError], ['failed', 'content-gone']);
  await played.close();
});

test('hands on the messages of others at once while those of one sender hang', async () => {
  const senders = ['stuck', 'idle', 'billing'].map((name) => sender(name, { inFlightMax: 50 }));
  const played = await scene(
    (claimed, time, signal) =>
      claimed.sender.name === 'stuck' ? stuck(claimed, time, signal) : after(10)(claimed, time),
    { senders, settings: { handOnInFlightMax: 12 } },
  );
  await arrive(played, 200, 'stuck');
  await played.engine.start();
  await played.pass(5000);
  assert.equal(played.engine.counts().inFlight, 8);
  await arrive(played, 20, 'billing');
  await played.pass(101);
  assert.equal(played.begun.filter(({ id }) => id.startsWith('rec_billing')).length, 20);
  await played.close();
  assert.equal((await standing(embedded, 'rec_stuck_00000'))?.attempts, 0);
});

test('drains a backlog of 5,000 with few of them in memory', async () => {
  const played = await scene(async () => done, { settings: { senderInFlightDefault: 40 } });
  await arrive(played, 5000);
  let most = 0;
  const handed = new Set<string>();
  const { counts } = played.engine;
  played.begun.push = (...some: Begun[]) => {
    for (const { id } of some) handed.add(id);
    const { inFlight, waiting } = counts.call(played.engine);
    most = Math.max(most, inFlight + waiting);
    return 0;
  };
  await played.engine.start();
  await played.pass(10_000);
  assert.equal(handed.size, 5000);
  assert.ok(most <= 120, `${most} messages in memory`);
  assert.equal(await embedded.count(table, statusIs('processed')), 5000);
  assert.ok(played.looks() < 1000, `${played.looks()} looks`);
  await played.close();
});

test('looks no more often than every few milliseconds while messages pour in for senders that are busy', async () => {
  const senders = ['billing', 'idle'].map((name) => sender(name));
  const played = await scene(stuck, { senders });
  await played.engine.start();
  await played.pass(100);
  const before = played.looks();
  for (let burst = 0; burst < 200; burst += 1) {
    await put(played.store, message(`rec_${burst}`, played.time.clock()));
  }
  await played.pass(100);
  assert.equal(played.engine.counts().inFlight, 8);
  // All came in one moment of the clock: the first is looked for at once, and the rest by one look more for each sender.
  assert.ok(played.looks() - before <= 6, `${played.looks() - before} looks`);
  await played.close();
});

test('pauses a sender whose messages all fail, tries one, and goes on when that is processed', async () => {
  let isBroken = true;
  const played = await scene(async () => (isBroken ? failed('thrown') : done));
  await arrive(played, 100);
  const began = played.time.clock();
  await played.engine.start();
  await played.pass(20_000);
  const first = played.begun.length;
  assert.ok(first >= 10 && first <= 17, `${first} attempts before the pause`);
  const paused = played.observed.find(({ kind }) => kind === 'sender-paused');
  assert.equal(paused?.kind === 'sender-paused' && paused.until, began + 27_000);
  assert.equal(played.engine.counts().paused, 1);
  await played.pass(20_000);
  assert.equal(played.begun.length, first + 1);
  isBroken = false;
  await played.pass(60_000);
  assert.equal(await embedded.count(table, statusIs('processed')), 100);
  await played.close();
});

test('pauses no function of the application: each of its messages has its schedule', async () => {
  const handOn = { kind: 'subscriber', of: 'reopen', timeoutMs: undefined } as const;
  const own = { ...sender('subscriber:reopen', { schedule: [5] }), handOn };
  const played = await scene(async () => failed('thrown'), { senders: [own] });
  await arrive(played, 40, own.name);
  await played.engine.start();
  await played.pass(1000);
  assert.equal(played.begun.length, 40);
  await played.pass(10_000);
  assert.equal(played.begun.length, 80);
  assert.equal(played.engine.counts().paused, 0);
  assert.ok(played.observed.every(({ kind }) => kind !== 'sender-paused'));
  await played.close();
});

test('tries a paused sender at once when somebody replays a message of it', async () => {
  let isBroken = true;
  const played = await scene(async () => (isBroken ? failed('thrown') : done), {
    senders: [sender('billing', { schedule: [3600] })],
  });
  await arrive(played, 10);
  await played.engine.start();
  await played.pass(2000);
  assert.equal(played.engine.counts().paused, 1);
  isBroken = false;
  const dueAt = new Date(played.time.clock()).toISOString();
  await rewrite(played.store, 'rec_billing_00003', { dueAt, scheduledAttempts: 0 });
  await played.pass(50);
  assert.deepEqual(played.engine.counts(), { inFlight: 0, waiting: 0, paused: 0 });
  const log = await attemptsOf(embedded, 'rec_billing_00003');
  assert.deepEqual(
    log.map(({ outcome, trigger }) => `${outcome} ${trigger}`),
    ['failed automatic', 'processed manual'],
  );
  await played.close();
});

test('leaves a sender in peace for as long as its receiver asks', async () => {
  const played = await scene(async (_, time) =>
    time.clock() < started + 60_000 ? failed('status', { notBefore: started + 60_000 }) : done,
  );
  const started = played.time.clock();
  await arrive(played, 4, 'billing', 'rec_first');
  await played.engine.start();
  await played.pass(1000);
  await arrive(played, 4, 'billing', 'rec_then');
  await played.pass(58_000);
  assert.equal(played.begun.length, 4);
  await played.pass(2000);
  assert.deepEqual(new Set(played.begun.slice(4).map(({ at }) => at - started)), new Set([60_000]));
  assert.equal(played.begun.length, 12);
  await played.close();
});

test('does not hand on what was marked after it was read', async () => {
  const played = await scene(after(1000), { senders: [sender('billing', { inFlightMax: 1 })] });
  await arrive(played, 3);
  await played.engine.start();
  await played.pass(10);
  await rewrite(played.store, 'rec_billing_00001', { status: 'processed', dueAt: null });
  await played.pass(5000);
  assert.deepEqual(
    played.begun.map(({ id }) => id.at(-1)),
    ['0', '2'],
  );
  assert.equal((await standing(embedded, 'rec_billing_00001'))?.attempts, 0);
  await played.close();
});

test('runs a handler again at once where others than its like changed what it read, at most five times', async () => {
  const id = 'nobody';
  const stale = {
    ...{ table: senderSecretsTable, id, expect: { rev: 1 } },
    next: keptRow('{}', null, start, start),
  } as const;
  const stales = async () => ({
    ...({ outcome: 'processed', statusCode: null, unit: { changes: [stale], events: [] } } as const),
  });
  const played = await scene(stales, { senders: [sender('billing', { inFlightMax: 1 })] });
  await arrive(played, 1);
  await played.engine.start();
  await played.pass(1000);
  assert.deepEqual(
    played.begun.map(({ attempt }) => attempt),
    [1, 1, 1, 1, 1, 1],
  );
  const log = await attemptsOf(embedded, 'rec_billing_00000');
  assert.deepEqual(
    log.map(({ error }) => error),
    ['superseded'],
  );
  await played.close();
});

test('writes down what was done when the store is back, and does not do it again', async () => {
  const played = await scene(after(10));
  await arrive(played, 3);
  await played.engine.start();
  played.store.fault = 'lost';
  await played.pass(20_000);
  assert.equal(played.begun.length, 3);
  assert.equal(played.engine.counts().inFlight, 3);
  played.store.fault = 'none';
  await played.pass(6000);
  assert.equal(await embedded.count(table, statusIs('processed')), 3);
  assert.equal(played.begun.length, 3);
  await played.close();
});

test('hands on again after a crash what was done and not written down', async () => {
  const crashed = await scene(after(10));
  await arrive(crashed, 3);
  await crashed.engine.start();
  crashed.store.fault = 'lost';
  await crashed.pass(1000);
  await crashed.close();
  const left = await Promise.all([0, 1, 2].map((at) => standing(embedded, `rec_billing_0000${at}`)));
  assert.deepEqual(
    left.map((each) => [each?.status, each?.attempts, each?.dueAt === each?.receivedAt]),
    [0, 1, 2].map(() => ['pending', 0, true]),
  );
  const next = await scene(after(10), { keep: true });
  await next.engine.start();
  await next.pass(100);
  assert.equal(await embedded.count(table, statusIs('processed')), 3);
  await next.close();
});

test('counts nothing of what it gives up when it stops, and waits for what is done in time', async () => {
  const played = await scene((claimed, time, signal) =>
    claimed.received.id.endsWith('0') ? after(300)(claimed, time) : stuck(claimed, time, signal),
  );
  await arrive(played, 2);
  await played.engine.start();
  await played.pass(10);
  const draining = played.engine.drain(1000);
  await arrive(played, 1, 'billing', 'rec_late');
  await played.pass(3000);
  await draining;
  assert.equal((await standing(embedded, 'rec_billing_00000'))?.status, 'processed');
  const left = await standing(embedded, 'rec_billing_00001');
  assert.deepEqual([left?.status, left?.attempts], ['pending', 0]);
  assert.equal(played.begun.length, 2);
  await played.close();
});

test('hands on for the senders of its lanes alone, and takes up others when it gets them', async () => {
  const mine = new Set(['sender/billing']);
  let changed: (() => void) | undefined;
  const held: string[] = [];
  const lanes: NonNullable<SceneOptions['lanes']> = {
    owns: (id) => mine.has(id),
    need: () => undefined,
    hold: (id) => void held.push(id),
    release: (id) => void held.splice(held.indexOf(id), 1),
    onChange: (listener) => {
      changed = listener;
      return () => undefined;
    },
  };
  const senders = ['billing', 'forge'].map((name) => sender(name));
  const played = await scene(after(10), { senders, lanes });
  await arrive(played, 20, 'billing');
  await arrive(played, 2, 'forge');
  await played.engine.start();
  await played.pass(1);
  assert.equal(held.length, 8);
  mine.delete('sender/billing');
  mine.add('sender/forge');
  changed?.();
  await played.pass(1000);
  assert.deepEqual(played.begun.map(({ id }) => id.slice(4, 9)).toSorted(), [
    ...new Array(8).fill('billi'),
    'forge',
    'forge',
  ]);
  assert.deepEqual(held, []);
  await played.close();
});

test('runs handlers that all write one resource until each has, one after the other, and counts one attempt', async () => {
  const at = start;
  const sum = 'sum of all';
  const put = (value: number, expect: { rev: number } | { absent: true }) => ({
    ...{ table: senderSecretsTable, id: sum, expect },
    next: keptRow(JSON.stringify({ value }), null, at, at),
  });
  const adds = async (claimed: { received: { id: string } }, time: { passTo(ms: number): unknown }) => {
    void time;
    const row = await embedded.read(senderSecretsTable, sum);
    const value = row === undefined ? 0 : (JSON.parse(row.doc) as { value: number }).value;
    // Every third takes longer than the others, and would lose to them for ever.
    const turns = claimed.received.id.endsWith('0') ? 20 : 2;
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const change = put(value + 1, row === undefined ? { absent: true } : { rev: row.rev });
    return { outcome: 'processed', statusCode: null, unit: { changes: [change], events: [] } } as const;
  };
  const played = await scene(adds);
  await arrive(played, 40);
  await played.engine.start();
  for (let passes = 0; passes < 200 && played.observed.length < 40; passes += 1) await played.pass(1);
  assert.equal(played.observed.length, 40);
  assert.ok(played.observed.every((fact) => 'outcome' in fact && fact.outcome === 'processed'));
  assert.ok(played.begun.every(({ attempt }) => attempt === 1));
  const row = await embedded.read(senderSecretsTable, sum);
  assert.deepEqual(JSON.parse(row?.doc ?? '{}'), { value: 40 });
  await played.close();
});

test('asks for lanes with the first message that is due, and not before', async () => {
  let asked = 0;
  let come: (() => void) | undefined;
  const lanes: NonNullable<SceneOptions['lanes']> = {
    owns: () => asked > 0,
    need: () => {
      asked += 1;
      come?.();
    },
    hold: () => undefined,
    release: () => undefined,
    onChange: (listener) => {
      come = listener;
      return () => undefined;
    },
  };
  const played = await scene(async () => done, { lanes });
  await played.engine.start();
  played.engine.wake('billing');
  await played.pass(1000);
  assert.equal(asked, 0);
  await arrive(played, 1);
  played.engine.wake('billing');
  await played.pass(1000);
  assert.equal(asked, 1);
  assert.equal(played.begun.length, 1);
  await played.close();
});

test('tries again soon what was given up without reason, and counts nothing', async () => {
  let times = 0;
  const played = await scene(async () => {
    times += 1;
    return times === 1 ? { outcome: 'aborted' } : done;
  });
  await arrive(played, 1);
  await played.engine.start();
  await played.pass(999);
  assert.equal(played.begun.length, 1);
  await played.pass(1);
  assert.deepEqual(
    played.begun.map(({ attempt }) => attempt),
    [1, 1],
  );
  await played.close();
});

test('leaves the messages of a sender alone that hands nothing on', async () => {
  const played = await scene(async () => done, {
    senders: [sender('billing', { handOn: { kind: 'inbox' } })],
  });
  await arrive(played, 2);
  await played.engine.start();
  played.engine.wake('billing');
  played.engine.wake('nobody');
  await played.pass(1000);
  assert.equal(played.begun.length, 0);
  await played.close();
});

test('goes on when a read of what is due failed', async () => {
  const played = await scene(async () => done);
  await arrive(played, 1);
  played.loseReads(2);
  await played.engine.start();
  await played.pass(10);
  assert.equal(played.begun.length, 0);
  await played.pass(5000);
  assert.equal(played.begun.length, 1);
  assert.deepEqual(
    played.observed.map(({ kind }) => kind),
    ['receiving-failed', 'receiving-failed', 'received-handed-on'],
  );
  await played.close();
});
