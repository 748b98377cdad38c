/** The engine over an embedded store, on a clock that the test moves: what it begins, what it leaves, and what it keeps in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeOutcome } from '../../../src/egress/exchange.ts';
import { type Delivery, deliveryDocument } from '../../../src/model/delivery.ts';
import { byId } from '../../../src/model/filter.ts';
import { type Change, keptRow, type Store } from '../../../src/store/store.ts';
import type { Claim } from '../../../src/webhooks/sending/conclude-delivery.ts';
import { deliveriesCollection, endpointsCollection } from '../../../src/webhooks/sending/sending-tables.ts';
import { type Failing, failing, openEmbedded } from '../../harness/stores.ts';
import { type FakeTime, fakeTime, watchedStore } from './fake-time.ts';
import { answered, failure, openSender, type Sender, type SenderOptions } from './sender.ts';

const start = Date.UTC(2026, 2, 2);
const table = deliveriesCollection.name;
let scenes = 0;

type Scene = {
  readonly store: Failing;
  readonly time: FakeTime;
  readonly sender: Sender;
  /** Attempts in the order in which they began. */
  readonly begun: { readonly endpoint: string; readonly delivery: string; readonly at: number }[];
  /** Milliseconds from now. */
  pass(ms: number): Promise<void>;
  /** Ends it, and lets pass the time that this takes. */
  close(): Promise<void>;
  deliveries(): Promise<readonly Delivery[]>;
};

type Answer = (claim: Claim, time: FakeTime, signal: AbortSignal) => Promise<ExchangeOutcome>;

const embedded = await openEmbedded();

/** All scenes share a store: each begins with the endpoints and deliveries of the others gone, on a later day. */
async function scene(answer: Answer, settings: SenderOptions['settings'] = {}): Promise<Scene> {
  await clear(embedded);
  scenes += 1;
  const { store: watched, rest } = watchedStore(embedded);
  const store = failing(watched);
  const time = fakeTime(start + scenes * 86_400_000, rest);
  const begun: { endpoint: string; delivery: string; at: number }[] = [];
  const sender = await openSender({
    ...{ store, clock: time.clock, timers: time.timers, settings },
    answer(claim, signal) {
      const { delivery, endpoint } = claim;
      begun.push({ endpoint: endpoint.endpoint.id, delivery: delivery.id, at: time.clock() });
      return answer(claim, time, signal);
    },
  });
  return {
    ...{ store, time, sender, begun },
    pass: (ms) => time.passTo(time.clock() + ms),
    async close() {
      const closing = sender.close();
      await time.passTo(time.clock() + 20_000);
      await closing;
    },
    deliveries: () => allDeliveries(embedded),
  };
}

test('sends what is due at its start, and what becomes due, once each', async () => {
  const { sender, close, begun, pass, deliveries } = await scene(after(5, () => answered(204)));
  await sender.endpoint('ep_1');
  await pass(1000);
  await sender.events(30);
  await pass(1000);
  assert.equal(begun.length, 0);
  await sender.engine.start();
  await pass(100);
  assert.equal(begun.length, 30);
  await sender.events(10);
  await pass(100);
  assert.equal(new Set(begun.map(({ delivery }) => delivery)).size, 40);
  assert.equal(begun.length, 40);
  assert.ok(
    (await deliveries()).every(({ status, attemptCount }) => status === 'delivered' && attemptCount === 1),
  );
  const counts = sender.engine.counts();
  assert.deepEqual(
    { ...counts, endpoints: 0 },
    { inFlight: 0, settling: 0, slow: 0, waiting: 0, endpoints: 0, alarms: 0 },
  );
  await close();
});

test('has no more attempts to an endpoint under way than it allows, and begins no more a second', async () => {
  const most = new Map<string, number>();
  const underWay = new Map<string, number>();
  const { sender, close, begun, pass } = await scene(async ({ endpoint: { endpoint } }, time) => {
    const { id } = endpoint;
    underWay.set(id, (underWay.get(id) ?? 0) + 1);
    most.set(id, Math.max(most.get(id) ?? 0, underWay.get(id) ?? 0));
    await passed(time, 50);
    underWay.set(id, (underWay.get(id) ?? 0) - 1);
    return answered(200);
  });
  await sender.endpoint('ep_few', { maxInFlight: 3 });
  await sender.endpoint('ep_slowly', { ratePerSecond: 4 });
  await sender.engine.start();
  await sender.events(24);
  await pass(5000);
  assert.deepEqual([most.get('ep_few'), most.get('ep_slowly')], [3, 1]);
  const times = begun.filter(({ endpoint }) => endpoint === 'ep_slowly').map(({ at }) => at);
  assert.equal(times.length, 21);
  for (const from of times) assert.ok(times.filter((at) => at >= from && at < from + 1000).length <= 5);
  await pass(1000);
  assert.equal(begun.length, 48);
  await close();
});

test('leaves an endpoint in peace for as long as it asks, and comes back with one attempt', async () => {
  let asks = true;
  const { sender, close, begun, pass } = await scene(
    after(10, () => (asks ? answered(429, [['retry-after', '120']]) : answered(200))),
  );
  await sender.endpoint('ep_1');
  await sender.engine.start();
  await sender.events(6);
  await pass(119_000);
  assert.equal(begun.length, 6);
  asks = false;
  await pass(60_000);
  const rounds = new Map<number, number>();
  for (const { at } of begun.slice(6)) rounds.set(at, (rounds.get(at) ?? 0) + 1);
  assert.deepEqual([...rounds.values()], [1, 2, 3]);
  await close();
});

test('begins nothing more to an endpoint that is gone, disabled or removed', async () => {
  const { sender, close, begun, pass, deliveries } = await scene(after(10, () => answered(410)));
  await sender.endpoint('ep_1', { maxInFlight: 1 });
  await sender.engine.start();
  await sender.events(5);
  await pass(600_000);
  assert.equal(begun.length, 1);
  assert.equal((await deliveries()).filter(({ dueAt }) => dueAt !== null).length, 4);
  assert.equal(sender.engine.counts().waiting, 0);
  await close();
});

test('does not send again what it could not write down, and writes it down when it can', async () => {
  const { sender, close, begun, pass, store, deliveries } = await scene(after(10, () => answered(200)));
  await sender.endpoint('ep_1');
  await sender.engine.start();
  await sender.events(20);
  store.fault = 'lost';
  await pass(60_000);
  assert.equal(begun.length, 20);
  assert.equal(sender.engine.counts().settling, 20);
  store.fault = 'none';
  await pass(6000);
  assert.equal(begun.length, 20);
  assert.ok((await deliveries()).every(({ status }) => status === 'delivered'));
  await close();
});

test('sends nothing while more cannot be written down than may be under way', async () => {
  const { sender, close, begun, pass, store } = await scene(
    after(10, () => answered(200)),
    { webhookInFlightMax: 8 },
  );
  await sender.endpoint('ep_1');
  await sender.engine.start();
  await sender.events(60);
  store.fault = 'lost';
  await pass(30_000);
  assert.equal(begun.length, 16);
  store.fault = 'none';
  await pass(30_000);
  assert.equal(begun.length, 60);
  await close();
});

test('goes on after a send that failed through our own fault, and does not hammer', async () => {
  let broken = true;
  const { sender, close, begun, pass, deliveries } = await scene(async () => {
    if (broken) throw new TypeError('a mistake of ours');
    return answered(200);
  });
  await sender.endpoint('ep_1', { maxInFlight: 1 });
  await sender.engine.start();
  await sender.events(2);
  await pass(29_000);
  assert.equal(begun.length, 1);
  broken = false;
  await pass(2000);
  assert.ok(
    (await deliveries()).every(({ status, attemptCount }) => status === 'delivered' && attemptCount === 1),
  );
  await close();
});

test('makes the probe with what somebody asks for, at once', async () => {
  let works = false;
  const { sender, close, begun, pass, time } = await scene(
    after(10, () => answered(works ? 200 : 500)),
    {
      webhookBreakerFailuresMax: 3,
      webhookBreakerSeconds: 600,
    },
  );
  await sender.endpoint('ep_1');
  await sender.engine.start();
  await sender.events(3);
  await pass(2000);
  assert.equal(begun.length, 3);
  const delivered = { ...deliveryAt(time.clock() - 86_400_000, 'ep_1', 'dlv_asked'), nextAttemptAt: null };
  for (const asked of ['dlv_asked', 'dlv_again'] as const) {
    const dueAt = new Date(time.clock()).toISOString();
    await sender.put([put({ ...delivered, id: asked, dueAt })]);
    sender.wake('ep_1');
    await pass(100);
    assert.equal(begun[works ? 4 : 3]?.delivery, asked);
    // The first of the two shows that it still fails: nothing else follows.
    assert.equal(begun.length, works ? 8 : 4);
    works = true;
    await pass(asked === 'dlv_asked' ? 10_000 : 0);
  }
  await close();
});

test('waits for what is under way when it is drained, and aborts what takes too long', async () => {
  const { sender, close, begun, pass, deliveries, time } = await scene(
    async ({ endpoint }, clock, signal) => {
      if (endpoint.endpoint.id === 'ep_quick') return after(200, () => answered(200))(undefined, clock);
      return await new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve(failure('aborted')), { once: true }),
      );
    },
  );
  await sender.endpoint('ep_quick', { maxInFlight: 1 });
  await sender.endpoint('ep_hanging', { maxInFlight: 1 });
  await sender.engine.start();
  await sender.events(2);
  await pass(10);
  assert.equal(begun.length, 2);
  const draining = sender.engine.drain(5000);
  await time.passTo(time.clock() + 7000);
  await draining;
  assert.equal(begun.length, 2);
  const all = await deliveries();
  assert.deepEqual(all.map(({ status, attemptCount }) => `${status} ${attemptCount}`).sort(), [
    'delivered 1',
    ...new Array<string>(3).fill('pending 0'),
  ]);
  await close();
});

test('keeps healthy endpoints as quick while a fifth of all hang', async () => {
  const latencies = async (hanging: number): Promise<number> => {
    const answer: Answer = async ({ endpoint }, time) => {
      const hangs = Number(endpoint.endpoint.id.slice(3)) < hanging;
      await passed(time, hangs ? 15_000 : 10);
      return hangs ? failure('timeout') : answered(200);
    };
    const { sender, close, begun, pass, time } = await scene(answer, { webhookInFlightMax: 64 });
    await sender.endpoints(Array.from({ length: 50 }, (_, at) => `ep_${at}`));
    await sender.engine.start();
    const waits: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const from = time.clock();
      const seen = begun.length;
      await sender.events(3);
      await pass(1000);
      for (const { endpoint, at } of begun.slice(seen)) {
        if (Number(endpoint.slice(3)) >= 10) waits.push(at - from);
      }
    }
    await close();
    assert.equal(waits.length, 4 * 3 * 40);
    return waits.sort((one, other) => one - other)[Math.floor(waits.length * 0.95)] ?? 0;
  };
  const [healthy, mixed] = [await latencies(0), await latencies(10)];
  assert.ok(mixed <= 1.5 * healthy, `p95 ${mixed} ms beside hanging endpoints, ${healthy} ms without`);
});

test('sends for another owner at once while as many endpoints of one owner hang as there are attempts', async () => {
  const answer: Answer = async ({ endpoint }, time) => {
    const hangs = endpoint.endpoint.id.startsWith('ep_hanging');
    await passed(time, hangs ? 15_000 : 10);
    return hangs ? failure('timeout') : answered(200);
  };
  const { sender, close, begun, pass } = await scene(answer, { webhookInFlightMax: 64 });
  const hanging = Array.from({ length: 100 }, (_, at) => `ep_hanging_${at}`);
  await sender.endpoints(hanging, {}, 'usr_hanging');
  await sender.endpoints(['ep_quiet'], {}, 'usr_quiet');
  await sender.engine.start();
  await sender.events(1);
  await pass(100);
  assert.equal(sender.engine.counts().inFlight, 56, 'all but an eighth hang');
  for (let round = 0; round < 3; round += 1) {
    await sender.events(1);
    await pass(500);
    assert.equal(begun.filter(({ endpoint }) => endpoint === 'ep_quiet').length, round + 2);
  }
  await close();
});

test('holds no more in memory for a long backlog, and lets it delay no other endpoint', async () => {
  const { sender, close, begun, pass, time } = await scene(after(10, () => answered(200)));
  await sender.endpoint('ep_long');
  await sender.endpoint('ep_short');
  const rows = 10_000;
  for (let at = 0; at < rows; at += 5000) {
    const dueAt = time.clock() - 86_400_000 + at;
    await sender.put(
      Array.from({ length: 5000 }, (_, index) => put(deliveryAt(dueAt, 'ep_long', `dlv_${at + index}`))),
    );
  }
  await sender.put([put(deliveryAt(time.clock(), 'ep_short', 'dlv_short'))]);
  await sender.engine.start();
  await pass(200);
  const short = begun.findIndex(({ endpoint }) => endpoint === 'ep_short');
  assert.ok(short >= 0 && short < 16, `after ${short} others`);
  const { waiting, inFlight } = sender.engine.counts();
  assert.ok(waiting > 0 && waiting <= 256, `${waiting} wait in memory`);
  assert.equal(inFlight, 16);
  assert.equal(new Set(begun.map(({ delivery }) => delivery)).size, begun.length);
  await close();
});

function after(ms: number, outcome: () => ExchangeOutcome) {
  return async (_: unknown, time: FakeTime): Promise<ExchangeOutcome> => {
    await passed(time, ms);
    return outcome();
  };
}

function passed(time: FakeTime, ms: number): Promise<void> {
  return new Promise((resolve) => time.timers.after(ms, resolve));
}

function deliveryAt(at: number, endpointId: string, id: string): Delivery {
  const time = new Date(at).toISOString();
  return {
    ...{ id, endpointId, eventId: 'evt_1', eventType: 'order.paid', status: 'pending' },
    ...{ attemptCount: 0, scheduledAttemptCount: 0, nextAttemptAt: time, dueAt: time },
    ...{ lastStatusCode: null, lastError: null, createdAt: time, updatedAt: time },
  };
}

function put(delivery: Delivery): Change {
  const at = Date.parse(delivery.createdAt);
  const next = keptRow(deliveryDocument(delivery), 'usr_1', at, at);
  return { table, id: delivery.id, expect: { absent: true }, next };
}

async function allDeliveries(store: Store): Promise<readonly Delivery[]> {
  const rows = await store
    .plan({ table, filter: { op: 'always' }, sort: byId, limit: 100_000 })
    .rows({ from: 'start' });
  return rows.map(({ doc }) => JSON.parse(doc) as Delivery);
}

async function clear(store: Store): Promise<void> {
  for (const name of [table, endpointsCollection.name, 'endpoint_secrets', 'endpoint_health', 'attempts']) {
    while ((await store.purge(name, Number.MAX_SAFE_INTEGER, 10_000)) > 0);
  }
}
