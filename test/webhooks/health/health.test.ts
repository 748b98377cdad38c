/** The health of endpoints over both stores, on a clock of the test. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { always } from '../../../src/model/filter.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { deliveriesCollection, endpointsCollection } from '../../../src/webhooks/sending/sending-tables.ts';
import { engines, failing } from '../../harness/stores.ts';
import {
  changeEndpoint,
  dayMs,
  fail,
  healthRow,
  hourMs,
  knownOf,
  makeEndpoint,
  owner,
  startedAt,
  startProcess,
  succeed,
  type Time,
} from './process.ts';

type Told = {
  readonly id: string;
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>>;
};

/** Events about the endpoint, oldest first. */
async function told(store: Store, id: string): Promise<readonly Told[]> {
  const entries = await store.tail({ rev: 0, id: '' }, always, 1000);
  return entries
    .map(({ id: eventId, type, doc }) => ({ id: eventId, type, object: JSON.parse(doc).data.object }))
    .filter(({ object }) => object.id === id);
}

/** To which endpoints the event is delivered. */
async function receiversOf(store: Store, eventId: string): Promise<readonly string[]> {
  const field = deliveriesCollection.fields.get('eventId');
  const idField = deliveriesCollection.fields.get('id');
  assert.ok(field !== undefined && idField !== undefined);
  const plan = store.plan({
    table: deliveriesCollection.name,
    filter: { op: 'eq', field, value: eventId },
    sort: [{ field: idField, direction: 'asc' }],
    limit: 100,
  });
  const { docs } = await plan.page({ from: 'start' });
  return docs.map((doc) => (JSON.parse(doc) as Delivery).endpointId);
}

async function endpointRow(store: Store, id: string) {
  const row = await store.read(endpointsCollection.name, id);
  assert.ok(row !== undefined);
  return { ...row, endpoint: JSON.parse(row.doc) as Endpoint };
}

/** A process and an endpoint, at the time that everything starts. */
async function alone(context: TestContext, store: Store) {
  const time: Time = { now: startedAt };
  const process = await startProcess(context, store, time);
  return { time, process, id: await makeEndpoint(store, [process]) };
}

/** Two processes that know the same endpoint. */
async function together(context: TestContext, one: Store, other: Store) {
  const time: Time = { now: startedAt };
  const first = await startProcess(context, one, time);
  const second = await startProcess(context, other, time);
  return { time, first, second, id: await makeEndpoint(one, [first, second]) };
}

type Case = readonly [title: string, run: (context: TestContext, one: Store, other: Store) => Promise<void>];

const cases: readonly Case[] = [
  [
    'writes nothing for an endpoint that works',
    async (context, one) => {
      const store = failing(one);
      const { time, process, id } = await alone(context, store);
      const { commits } = store;
      for (let at = 0; at < 5; at += 1) await succeed(process, id, time);
      assert.equal(store.commits, commits);
    },
  ],
  [
    'writes the first failure down, then the count once a minute, and ends the row with a success',
    async (context, one) => {
      const { time, process, id } = await alone(context, one);
      await fail(process, id, time);
      assert.deepEqual(await healthRow(one, id), { failingSince: startedAt, failures: 1, warnedAt: null });
      time.now += 59_999;
      await fail(process, id, time);
      assert.equal((await healthRow(one, id))?.failures, 1);
      time.now += 1;
      await fail(process, id, time);
      assert.deepEqual(await healthRow(one, id), { failingSince: startedAt, failures: 3, warnedAt: null });
      await succeed(process, id, time);
      assert.equal(await healthRow(one, id), undefined);
    },
  ],
  [
    'warns an owner once for each time of failing, by an event that is delivered and by a notice',
    async (context, one) => {
      const { time, process, id } = await alone(context, one);
      const watcher = await makeEndpoint(one, [process], { events: ['endpoint.*'] });
      for (const since of [startedAt, startedAt + 10 * dayMs]) {
        for (const after of [0, dayMs - 1, dayMs, dayMs + 1, 2 * dayMs]) {
          time.now = since + after;
          await fail(process, id, time);
        }
        await succeed(process, id, time);
      }
      const events = await told(one, id);
      assert.deepEqual(
        events.map(({ type }) => type),
        ['endpoint.failing', 'endpoint.failing'],
      );
      assert.equal(events[0]?.object.failingSince, new Date(startedAt).toISOString());
      assert.equal(events[0]?.object.url, 'https://receiver.example');
      assert.ok((await receiversOf(one, events[0]?.id ?? '')).includes(watcher));
      const seen = process.notices.map(({ kind, since, owner: whom }) => ({ kind, since, whom }));
      assert.deepEqual(seen, [
        { kind: 'failing', since: startedAt, whom: owner },
        { kind: 'failing', since: startedAt + 10 * dayMs, whom: owner },
      ]);
      assert.deepEqual(process.facts, [
        { kind: 'endpoint-failing', endpoint: id },
        { kind: 'endpoint-failing', endpoint: id },
      ]);
    },
  ],
  [
    'disables what has failed for too long, and tells everybody but the endpoint itself',
    async (context, one) => {
      const time: Time = { now: startedAt };
      const process = await startProcess(context, one, time);
      const id = await makeEndpoint(one, [process], { events: ['*'] });
      const watcher = await makeEndpoint(one, [process], { events: ['endpoint.disabled'] });
      const before = await endpointRow(one, id);
      for (const after of [0, dayMs, 5 * dayMs - 1]) {
        time.now = startedAt + after;
        await fail(process, id, time);
      }
      assert.equal((await endpointRow(one, id)).endpoint.status, 'enabled');
      time.now = startedAt + 5 * dayMs;
      await fail(process, id, time);
      const after = await endpointRow(one, id);
      assert.equal(after.endpoint.status, 'disabled');
      assert.equal(after.endpoint.disabledReason, 'failing');
      assert.equal(after.endpoint.updatedAt, new Date(time.now).toISOString());
      assert.equal(after.owner, owner);
      assert.equal(after.createdAt, before.createdAt);
      assert.equal(await healthRow(one, id), undefined);
      assert.equal(process.directory.get(id)?.endpoint.status, 'disabled');
      const events = await told(one, id);
      assert.deepEqual(
        events.map(({ type }) => type),
        ['endpoint.failing', 'endpoint.disabled'],
      );
      assert.deepEqual(events[1]?.object, {
        id,
        url: 'https://receiver.example',
        status: 'disabled',
        disabledReason: 'failing',
        failingSince: new Date(startedAt).toISOString(),
      });
      const receivers = await receiversOf(one, events[1]?.id ?? '');
      assert.ok(receivers.includes(watcher) && !receivers.includes(id));
      const { kind, since, reason, endpoint } = process.notices.at(-1) ?? {};
      assert.deepEqual(
        [kind, since, reason, endpoint?.status],
        ['disabled', startedAt, 'failing', 'disabled'],
      );
      // What was under way meanwhile says nothing any more.
      await fail(process, id, time);
      assert.equal(await healthRow(one, id), undefined);
    },
  ],
  [
    'warns first where nothing was sent for days, and disables only when the owner had time',
    async (context, one) => {
      const { time, process, id } = await alone(context, one);
      await fail(process, id, time);
      for (const after of [6 * dayMs, 6 * dayMs + hourMs, 7 * dayMs - 1]) {
        time.now = startedAt + after;
        await fail(process, id, time);
        assert.equal((await endpointRow(one, id)).endpoint.status, 'enabled');
      }
      assert.deepEqual(
        process.notices.map(({ kind }) => kind),
        ['failing'],
      );
      time.now = startedAt + 7 * dayMs;
      await fail(process, id, time);
      assert.equal((await endpointRow(one, id)).endpoint.status, 'disabled');
    },
  ],
  [
    'starts afresh with an endpoint that its owner enabled again',
    async (context, one) => {
      const { time, process, id } = await alone(context, one);
      await fail(process, id, time);
      time.now += 4 * dayMs;
      await fail(process, id, time);
      const stale = knownOf(process, id);
      await changeEndpoint(one, [process], id, { status: 'enabled' });
      time.now += 2 * dayMs;
      const verdict = { health: 'failed', notBefore: null, slowDown: false, gone: false } as const;
      process.health.note(stale, verdict, time.now);
      await process.health.settled();
      assert.equal(await healthRow(one, id), undefined);
      await fail(process, id, time);
      assert.deepEqual(await healthRow(one, id), { failingSince: time.now, failures: 1, warnedAt: null });
      assert.equal((await endpointRow(one, id)).endpoint.status, 'enabled');
    },
  ],
  [
    'goes on in another process where the first left off, and back, with one warning',
    async (context, one, other) => {
      const { time, first, second, id } = await together(context, one, other);
      await fail(first, id, time);
      time.now += dayMs;
      await fail(second, id, time);
      time.now += hourMs;
      first.changeLanes();
      await fail(first, id, time);
      assert.deepEqual(
        [...first.notices, ...second.notices].map(({ kind, since }) => [kind, since]),
        [['failing', startedAt]],
      );
      assert.deepEqual(await healthRow(one, id), {
        failingSince: startedAt,
        failures: 3,
        warnedAt: startedAt + dayMs,
      });
      second.changeLanes();
      await succeed(second, id, time);
      assert.equal(await healthRow(one, id), undefined);
    },
  ],
  [
    'ends what another process wrote about an endpoint that this one knew to work',
    async (context, one, other) => {
      const { time, first, second, id } = await together(context, one, other);
      await succeed(first, id, time);
      await fail(second, id, time);
      first.changeLanes();
      await succeed(first, id, time);
      assert.equal(await healthRow(one, id), undefined);
    },
  ],
  [
    'begins anew with a failure right after the success that ended what another process wrote',
    async (context, one, other) => {
      const { time, first, second, id } = await together(context, one, other);
      await fail(second, id, time);
      time.now += 3 * dayMs;
      await Promise.all([succeed(first, id, time), fail(first, id, time)]);
      assert.deepEqual(await healthRow(one, id), { failingSince: time.now, failures: 1, warnedAt: null });
      assert.deepEqual(first.notices, []);
    },
  ],
  [
    'warns once where several processes find at once that it is time',
    async (context, one, other) => {
      const { time, first, second, id } = await together(context, one, other);
      await Promise.all([fail(first, id, time), fail(second, id, time)]);
      time.now += dayMs;
      await Promise.all([fail(first, id, time), fail(second, id, time)]);
      assert.deepEqual(
        (await told(one, id)).map(({ type }) => type),
        ['endpoint.failing'],
      );
      assert.equal(first.notices.length + second.notices.length, 1);
    },
  ],
  [
    'writes down later what storage could not take, and warns once where only the answer was lost',
    async (context, one) => {
      const store = failing(one);
      const { time, process, id } = await alone(context, store);
      store.fault = 'lost';
      await fail(process, id, time);
      assert.deepEqual(
        process.facts.map(({ kind }) => kind),
        ['sending-failed'],
      );
      store.fault = 'none';
      time.now += 1000;
      await fail(process, id, time);
      assert.deepEqual(await healthRow(one, id), { failingSince: startedAt, failures: 2, warnedAt: null });
      store.fault = 'answer-lost';
      time.now += dayMs;
      await fail(process, id, time);
      store.fault = 'none';
      time.now += 1000;
      await fail(process, id, time);
      assert.equal((await told(one, id)).length, 1);
    },
  ],
  [
    'counts a failure that comes while a success is being written down',
    async (context, one) => {
      const { time, process, id } = await alone(context, one);
      await fail(process, id, time);
      time.now += 1000;
      const ended = succeed(process, id, time);
      time.now += 1000;
      await Promise.all([ended, fail(process, id, time)]);
      assert.deepEqual(await healthRow(one, id), { failingSince: time.now, failures: 1, warnedAt: null });
    },
  ],
  [
    'disables an endpoint that is gone once, however many attempts were told so',
    async (context, one) => {
      const time: Time = { now: startedAt + 5000 };
      const process = await startProcess(context, one, time);
      const id = await makeEndpoint(one, [process]);
      const known = knownOf(process, id);
      await Promise.all(Array.from({ length: 16 }, () => process.health.disable(known, 'gone', time.now)));
      await process.health.settled();
      await process.health.disable(known, 'gone', time.now);
      const { endpoint } = await endpointRow(one, id);
      assert.equal(endpoint.status, 'disabled');
      assert.equal(endpoint.disabledReason, 'gone');
      assert.deepEqual(
        (await told(one, id)).map(({ type }) => type),
        ['endpoint.disabled'],
      );
      assert.deepEqual(
        process.notices.map(({ kind, reason }) => [kind, reason]),
        [['disabled', 'gone']],
      );
    },
  ],
  [
    'leaves an endpoint alone that its owner changed since it was judged, or removed',
    async (context, one, other) => {
      const time: Time = { now: startedAt + 5000 };
      const process = await startProcess(context, one, time);
      const second = await startProcess(context, other, time);
      const id = await makeEndpoint(one, [process, second]);
      const known = knownOf(process, id);
      await changeEndpoint(other, [second], id, { url: 'https://new.example/' });
      await process.health.disable(known, 'gone', time.now);
      const { endpoint, rev } = await endpointRow(one, id);
      assert.equal(endpoint.status, 'enabled');
      const removal = { table: endpointsCollection.name, id, expect: { rev }, next: null };
      await one.commit({ changes: [removal], events: [] });
      await process.health.disable({ ...known, rev }, 'gone', time.now);
      assert.deepEqual(await told(one, id), []);
      assert.deepEqual(process.notices, []);
    },
  ],
  [
    'disables an endpoint while others are made',
    async (context, one, other) => {
      const time: Time = { now: startedAt + 5000 };
      const process = await startProcess(context, one, time);
      const second = await startProcess(context, other, time);
      const id = await makeEndpoint(one, [process, second]);
      const known = knownOf(process, id);
      let isDone = false;
      const making = (async () => {
        while (!isDone) await makeEndpoint(other, [second]).catch(() => undefined);
      })();
      await process.health.disable(known, 'gone', time.now);
      isDone = true;
      await making;
      assert.equal((await endpointRow(one, id)).endpoint.status, 'disabled');
    },
  ],
  [
    'says so where storage does not let it disable an endpoint',
    async (context, one) => {
      const store = failing(one);
      const { time, process, id } = await alone(context, store);
      store.fault = 'lost';
      await assert.rejects(process.health.disable(knownOf(process, id), 'gone', time.now), StoreUnavailable);
      store.fault = 'none';
      await process.health.disable(knownOf(process, id), 'gone', time.now);
      assert.equal((await endpointRow(one, id)).endpoint.status, 'disabled');
    },
  ],
];

for (const [engine, open] of engines) {
  test(`watches over endpoints on ${engine}`, async (context) => {
    const [one, other] = await open(context);
    for (const [title, run] of cases) await context.test(title, (inner) => run(inner, one, other));
  });
}
