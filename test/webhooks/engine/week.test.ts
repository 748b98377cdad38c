/**
 * A week in the life of an endpoint that is out for most of it, on a clock that the test moves. Everything but the receiver is real:
 * store, fan-out, schedule, settlement, health, engine.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import { eventsTable } from '../../../src/store/store.ts';
import { deliveriesCollection } from '../../../src/webhooks/sending/sending-tables.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { fakeTime, watchedStore } from './fake-time.ts';
import { answered, openSender } from './sender.ts';

const secondMs = 1000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const start = Date.UTC(2026, 2, 2);

type Beginning = { readonly event: string; readonly at: number; readonly underWay: number };

const { store, rest } = watchedStore(await openEmbedded());
const time = fakeTime(start, rest);
const begun: Beginning[] = [];
let works = false;
let underWay = 0;
const sender = await openSender({
  ...{ store, clock: time.clock, timers: time.timers },
  settings: { webhookBreakerSecondsMax: 3600 },
  async answer({ delivery }) {
    underWay += 1;
    begun.push({ event: delivery.eventId, at: time.clock(), underWay });
    const status = works ? 204 : 503;
    await new Promise<void>((resolve) => time.timers.after(100, resolve));
    underWay -= 1;
    return answered(status);
  },
});
await sender.engine.start();
await sender.endpoint('ep_1');
const beginningsOf = (event: string) => begun.filter((each) => each.event === event).map(({ at }) => at);
const observations = (kind: string) => sender.observed.filter((each) => each.kind === kind);

const [first = ''] = await sender.events(1);
test('an endpoint that is out is tried at the scheduled moments, to the millisecond', async () => {
  await time.passTo(start + hourMs);
  const expected = [start];
  for (const seconds of schedulesDefault.standard.slice(0, 3)) {
    // Each delay counts from the end of the attempt before.
    expected.push((expected.at(-1) ?? 0) + 100 + seconds * secondMs);
  }
  assert.deepEqual(beginningsOf(first), expected);
});

let burst: readonly string[] = [];
test('an endpoint that is out is left alone after ten failures, and probed with one delivery at a time', async () => {
  burst = await sender.events(40);
  const from = time.clock();
  await time.passTo(from + 2 * secondMs);
  const early = begun.filter(({ at }) => at >= from).length;
  // Four had failed before. Each 503 halved the window, so those that are missing went one after the other.
  assert.equal(early, 6);
  assert.equal(observations('endpoint-left-alone').length, 1);
  await time.passTo(from + 3 * hourMs);
  const probes = begun.filter(({ at }) => at > from + 2 * secondMs);
  assert.ok(
    probes.every((probe) => probe.underWay === 1),
    'one at a time',
  );
  const waits = probes.map(({ at }, index) => at - (probes[index - 1]?.at ?? from + 500));
  // Chance takes a tenth here: 27 s, 54 s, ... up to 54 minutes; and each probe takes 100 ms.
  const expected = [27_100, 54_100, 108_100, 216_100, 432_100, 864_100, 1_728_100, 3_240_100];
  assert.deepEqual(waits.slice(0, 8), expected);
});

test('an endpoint that is out is told of after a day, and disabled after five', async () => {
  for (let sixHours = 1; sixHours < 20; sixHours += 1) {
    await time.passTo(start + sixHours * 6 * hourMs);
    await sender.events(1);
    if (sixHours === 3) assert.deepEqual(sender.notices, []);
    if (sixHours === 6) assert.deepEqual(sender.notices, ['failing ep_1']);
  }
  assert.equal(observations('endpoint-disabled').length, 0);
  await time.passTo(start + 5 * dayMs + 6 * hourMs);
  assert.deepEqual(sender.notices, ['failing ep_1', 'disabled ep_1']);
  const events = await store.plan({
    table: eventsTable,
    filter: { op: 'always' },
    sort: [{ field: { name: 'id', path: ['id'], type: 'string', column: 'id' }, direction: 'asc' }],
    limit: 200,
  });
  const { docs } = await events.page({ from: 'start' });
  const types = docs.map((doc) => (JSON.parse(doc) as { type: string }).type);
  assert.equal(types.filter((type) => type === 'endpoint.failing').length, 1);
  assert.equal(types.filter((type) => type === 'endpoint.disabled').length, 1);
});

test('an endpoint that is out is sent no delivery before its scheduled moment, and tried to the end', () => {
  const times = beginningsOf(first);
  for (const [index, at] of times.slice(1).entries()) {
    const late = at - (times[index] ?? 0) - 100 - (schedulesDefault.standard[index] ?? 0) * secondMs;
    assert.ok(late >= 0, `attempt ${index + 2} is early by ${-late} ms`);
  }
  assert.ok((begun.at(-1)?.at ?? 0) > start + 4.9 * dayMs);
});

test('an endpoint that is out gets nothing while it is disabled, and its deliveries wait', async () => {
  const before = begun.length;
  await sender.events(3);
  await time.passTo(start + 6 * dayMs);
  assert.equal(begun.length, before);
  assert.ok((await statuses()).filter(({ dueAt }) => dueAt !== null).length > 10, 'parked');
});

test('an endpoint that is out gets all that waited when it is enabled again, at a ramp', async () => {
  const from = begun.length;
  const waiting = (await statuses()).filter(
    ({ dueAt }) => dueAt !== null && Date.parse(dueAt) <= time.clock(),
  );
  assert.ok(waiting.length > 31, `${waiting.length} wait`);
  works = true;
  await sender.enable('ep_1');
  await time.passTo(time.clock() + 60 * secondMs);
  const drained = begun.slice(from);
  assert.equal(drained.length, waiting.length);
  const rounds = new Map<number, number>();
  for (const { at } of drained) rounds.set(at, (rounds.get(at) ?? 0) + 1);
  assert.deepEqual([...rounds.values()].slice(0, 5), [1, 2, 4, 8, 16]);
  await time.passTo(start + 7 * dayMs);
  const undelivered = (await statuses()).filter(({ status }) => status !== 'delivered');
  assert.ok(
    undelivered.every(({ nextAttemptAt, eventId }) => nextAttemptAt === null || burst.includes(eventId)),
  );
  const [later = ''] = await sender.events(1);
  await time.passTo(time.clock() + secondMs);
  assert.equal((await statuses()).find(({ eventId }) => eventId === later)?.status, 'delivered');
});

async function statuses(): Promise<readonly Delivery[]> {
  const plan = store.plan({
    table: deliveriesCollection.name,
    filter: { op: 'always' },
    sort: [{ field: { name: 'id', path: ['id'], type: 'string', column: 'id' }, direction: 'asc' }],
    limit: 500,
  });
  const { docs } = await plan.page({ from: 'start' });
  return docs.map((doc) => JSON.parse(doc) as Delivery);
}

after(() => sender.close());
