/** Recoveries (§6.6): what an endpoint missed is sent again, once, however often the program stops meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { eventDocument } from '../../../src/model/event.ts';
import { always } from '../../../src/model/filter.ts';
import { createdOf, findPlace, slackMs } from '../../../src/store/follow-log.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import { chunkEventsMax } from '../../../src/webhooks/sending/recovery/recovery.ts';
import { engines, failing, openEmbedded } from '../../harness/stores.ts';
import {
  addEndpoint,
  begin,
  commit,
  deliveriesTo,
  deliveryOf,
  eventOf,
  follow,
  now,
  readRecovery,
} from './fixture.ts';

const minuteMs = 60_000;
const since = now - 60 * minuteMs;
const iso = (ms: number) => new Date(ms).toISOString();

/** One event of each kind that a recovery tells apart. */
async function plantKinds(store: Store, endpoint: string, other: string) {
  const at = since + minuteMs;
  const [later, past] = [iso(now + 600 * minuteMs), iso(now - minuteMs)];
  const kinds = {
    missed: eventOf({ at }),
    failed: eventOf({ at }),
    scheduled: eventOf({ at }),
    due: eventOf({ at }),
    pending: eventOf({ at }),
    delivered: eventOf({ at }),
    unwanted: eventOf({ at, type: 'products.created' }),
    foreign: eventOf({ at, owner: 'usr_bob' }),
    tested: eventOf({ at, id: `evt_test_${endpoint.slice(3)}` }),
    before: eventOf({ at: since - 1000 }),
    after: eventOf({ at: now - 10 * minuteMs + 1000 }),
    atSince: eventOf({ at: since }),
  };
  const deliveries = [
    deliveryOf(kinds.missed, other, {}),
    deliveryOf(kinds.failed, endpoint, {}),
    deliveryOf(kinds.scheduled, endpoint, { nextAttemptAt: later, dueAt: later }),
    deliveryOf(kinds.due, endpoint, { nextAttemptAt: past, dueAt: past }),
    deliveryOf(kinds.pending, endpoint, { status: 'pending', nextAttemptAt: later, dueAt: later }),
    deliveryOf(kinds.delivered, endpoint, { status: 'delivered', lastStatusCode: 204 }),
  ];
  await commit(store, deliveries, Object.values(kinds));
  return kinds;
}

for (const [engine, open] of engines) {
  test(`sends again what failed and what was missed, and nothing else (${engine})`, async (context) => {
    const [store] = await open(context);
    const endpoint = await addEndpoint(store);
    const other = await addEndpoint(store);
    const kinds = await plantKinds(store, endpoint, other);
    const before = await deliveriesTo(store, endpoint);
    const { ended, woken, failures, recoveries } = await follow(context, store);
    const until = now - 10 * minuteMs;

    const dry = await ended(await begin(store, endpoint, { since, until, dryRun: true }));
    const counts = { examined: 10, matching: 7, resent: 2, created: 2 };
    assert.partialDeepStrictEqual(dry, { ...counts, status: 'finished', finishedAt: iso(now) });
    assert.deepEqual(await deliveriesTo(store, endpoint), before, 'a dry run changes nothing');

    const wet = await ended(await begin(store, endpoint, { since, until }));
    assert.partialDeepStrictEqual(wet, { ...counts, status: 'finished' });
    assert.deepEqual(Object.keys(wet).includes('runningFor'), false);
    await recoveries.close();
    assert.deepEqual(woken, [endpoint], 'the dry run made nothing due');
    const after = await deliveriesTo(store, endpoint);
    const of = (name: keyof typeof kinds) => after.get(kinds[name].id)?.[0];
    for (const made of [of('missed'), of('atSince')]) {
      assert.partialDeepStrictEqual(made, {
        status: 'pending',
        attemptCount: 0,
        dueAt: iso(now),
        nextAttemptAt: iso(now),
      });
    }
    assert.partialDeepStrictEqual(of('failed'), {
      status: 'pending',
      dueAt: iso(now),
      nextAttemptAt: null,
      attemptCount: 1,
    });
    assert.partialDeepStrictEqual(of('scheduled'), {
      status: 'pending',
      dueAt: iso(now),
      nextAttemptAt: iso(now + 600 * minuteMs),
    });
    for (const name of ['due', 'pending', 'delivered'] as const) {
      assert.deepEqual(of(name), before.get(kinds[name].id)?.[0], name);
    }
    for (const name of ['unwanted', 'foreign', 'tested', 'before', 'after'] as const) {
      assert.equal(of(name), undefined, name);
    }
    assert.deepEqual(
      [...after.values()].map((found) => found.length),
      Array(after.size).fill(1),
    );
    assert.equal((await deliveriesTo(store, other)).size, 1, 'nothing for another endpoint');
    assert.deepEqual(failures, []);
  });

  test(`goes on where it was when the process dies, and does nothing twice (${engine})`, async (context) => {
    const [one, other] = await open(context);
    const endpoint = await addEndpoint(one);
    const total = chunkEventsMax * 3 + 7;
    await plantMany(one, total);
    const id = await begin(one, endpoint, { since });
    // The first loses the connection for good after one chunk was made whose answer never came.
    const broken = failing(one);
    broken.fault = 'answer-lost';
    const first = await follow(context, broken, { directoryStore: one });
    await until(async () => (await readRecovery(one, id))?.examined !== 0);
    broken.fault = 'lost';
    await first.recoveries.close();
    const second = await follow(context, other);
    const recovery = await second.ended(id);
    assert.partialDeepStrictEqual(recovery, { examined: total, matching: total, created: total, resent: 0 });
    const made = await deliveriesTo(one, endpoint);
    assert.equal(made.size, total);
    assert.ok([...made.values()].every((found) => found.length === 1));
  });
}

test('makes each step once where two processes believe that the endpoint is theirs', async (context) => {
  const store = await openEmbedded(context);
  const endpoint = await addEndpoint(store);
  const total = chunkEventsMax * 4;
  await plantMany(store, total);
  const [one, other] = [await follow(context, store), await follow(context, store)];
  const recovery = await one.ended(await begin(store, endpoint, { since }));
  await Promise.all([one.recoveries.close(), other.recoveries.close()]);
  assert.partialDeepStrictEqual(recovery, { examined: total, created: total });
  assert.equal((await deliveriesTo(store, endpoint)).size, total);
});

test('is carried out by the process that sends for the endpoint, and stops with the endpoint', async (context) => {
  const store = await openEmbedded(context);
  const [endpoint, removed] = [await addEndpoint(store), await addEndpoint(store)];
  await plantMany(store, 3);
  const idle = await follow(context, store, { owns: () => false });
  const [id, orphan] = [await begin(store, endpoint, { since }), await begin(store, removed, { since })];
  const row = await store.read('endpoints', removed);
  await commit(store, [{ table: 'endpoints', id: removed, expect: { rev: row?.rev ?? 0 }, next: null }]);
  await idle.recoveries.close();
  assert.equal((await readRecovery(store, id))?.status, 'running', 'nobody sends for it yet');
  const active = await follow(context, store);
  assert.equal((await active.ended(id)).status, 'finished');
  assert.partialDeepStrictEqual(await active.ended(orphan), { status: 'stopped', examined: 0 });
});

test('ends where it is when it is deleted', async (context) => {
  const store = await openEmbedded(context);
  const endpoint = await addEndpoint(store);
  await plantMany(store, chunkEventsMax * 2);
  const id = await begin(store, endpoint, { since });
  const row = await store.read('recoveries', id);
  const step = Promise.withResolvers<void>();
  // Deleted between what a step reads and what it commits.
  const slow: Store = {
    ...store,
    commit: async (unit) => {
      await step.promise;
      return store.commit(unit);
    },
  };
  const { recoveries } = await follow(context, slow, { directoryStore: store });
  await commit(store, [{ table: 'recoveries', id, expect: { rev: row?.rev ?? 0 }, next: null }]);
  step.resolve();
  await recoveries.close();
  assert.equal(await readRecovery(store, id), undefined);
  assert.equal((await deliveriesTo(store, endpoint)).size, 0);
});

test('reads when an event was made from its document', () => {
  const doc = eventDocument('evt_1', 'a."created":7,', 1_700_000_000_500, '{"created":5}');
  assert.equal(createdOf(doc), 1_700_000_000_000);
});

test('finds a place before every event of the time or later, in as many reads as the log has bits', async (context) => {
  const store = await openEmbedded(context);
  const start = Date.UTC(2026, 0, 1);
  const times = Array.from({ length: 60 }, (_, at) => start + at * slackMs);
  for (const [index, at] of times.entries()) {
    await commit(store, [], [eventOf({ at }), eventOf({ at: at + 1000 })]);
    // Revisions without events, as most are.
    for (let other = 0; other < index % 5; other += 1)
      await store.commit({ changes: [thing(index, other)], events: [] });
  }
  let reads = 0;
  const counted: Pick<Store, 'tail' | 'head'> = {
    head: () => store.head(),
    tail: (...query) => {
      reads += 1;
      return store.tail(...query);
    },
  };
  const bits = Math.ceil(Math.log2((await store.head()).rev + 2));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: -10, max: 70 * slackMs }), async (offset) => {
      const since = start + offset;
      reads = 0;
      const place = await findPlace(counted, since);
      assert.ok(reads <= bits, `${reads} reads`);
      const behind = (await store.tail(place, always, 1000)).map(({ doc }) => createdOf(doc));
      const wanted = times.flatMap((at) => [at, at + 1000]).filter((at) => at >= since);
      assert.deepEqual(
        behind.filter((at) => at >= since),
        wanted,
      );
      assert.ok(
        behind.every((at) => at >= since - slackMs),
        'not more than the slack',
      );
    }),
    { numRuns: 50 },
  );
});

test('finds the beginning of an empty log', async (context) => {
  const store = await openEmbedded(context);
  assert.deepEqual(await store.tail(await findPlace(store, 0), always, 1), []);
});

async function plantMany(store: Store, count: number): Promise<void> {
  const at = since + minuteMs;
  await commit(
    store,
    [],
    Array.from({ length: count }, () => eventOf({ at })),
  );
}

/** Looks again after each turn of the event loop. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}

function thing(index: number, other: number) {
  const next = keptRow('{}', null, 0, 0);
  return { table: 'things', id: `${index}-${other}`, expect: { absent: true }, next } as const;
}
