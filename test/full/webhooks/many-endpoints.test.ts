/**
 * Events that thousands of endpoints of many owners want, on both stores: the unit of the event stays small, and each endpoint gets
 * its delivery once, whoever is killed meanwhile and however often endpoints change.
 */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Delivery } from '../../../src/model/delivery.ts';
import { byId } from '../../../src/model/filter.ts';
import { authenticated } from '../../../src/model/principal.ts';
import { withStages } from '../../../src/store/stages.ts';
import type { Change, EventEntry, Keyset, Store, Unit } from '../../../src/store/store.ts';
import { generationStage } from '../../../src/webhooks/sending/fan-out/generation.ts';
import { makeOwedDeliveries, owedTo } from '../../../src/webhooks/sending/fan-out/owed-deliveries.ts';
import { deliveriesStage } from '../../../src/webhooks/sending/fan-out/with-deliveries.ts';
import { deliveriesCollection, deliveriesPerUnitMax } from '../../../src/webhooks/sending/sending-tables.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines } from '../../harness/stores.ts';
import { until } from '../../harness/until.ts';
import {
  addEndpoint,
  addMany,
  change,
  eventOf,
  newId,
  type Process,
  settled,
  startProcess,
} from '../../webhooks/fan-out/fixture.ts';

/** What the event log and other rows add to a unit of deliveries. */
const besidesMax = 4;

const principalOf = async (owner: string | null) =>
  owner === null ? undefined : authenticated({ id: owner, scopes: ['read', 'webhooks'] });

for (const [engine, open] of engines) {
  test(`events that thousands of endpoints want, on ${engine}`, { timeout: 300_000 }, async (context) => {
    const [plainOne, plainOther] = await open(context);
    const units: Unit[] = [];
    const one = await startProcess(context, recording(plainOne, units), { principalOf });
    const other = await startProcess(context, plainOther, { principalOf });
    const reach = (count: number) => `reach ${count} endpoints once each, in small units`;
    const ids = [...(await addMany(one, 2000))];
    await other.directory.refresh();
    await context.test(reach(2000), () => reaches(one, units, ids));
    await context.test('are delivered although the process is killed after any of its units', (inner) =>
      killed(inner, one, other, ids),
    );
    await context.test('are owed to an endpoint until its delivery is made, and to no removed one', (inner) =>
      owed(inner, one),
    );
    await context.test('are many in one unit, and reach each endpoint once', () => together(one, ids));
    await context.test('are committed while matching endpoints change without a pause', () =>
      restless(one, other),
    );
    ids.push(...(await addMany(one, 8000)));
    await context.test(reach(10_000), () => reaches(one, units, ids));
  });
}

async function reaches(process: Process, units: Unit[], ids: readonly string[]): Promise<void> {
  units.length = 0;
  process.woken.length = 0;
  const event = eventOf('products.created');
  assert.equal((await process.store.commit({ changes: [], events: [event] })).outcome, 'committed');
  await settled(process.plain);
  const largest = Math.max(...units.map(({ changes }) => changes.length));
  assert.ok(largest <= deliveriesPerUnitMax + besidesMax, `${largest} changes in one unit`);
  assert.deepEqual(await toldOf(process.plain, event), [...ids].sort());
  await until(() => new Set(process.woken).size === ids.length, 'each is named to the sender');
}

/** Each process is one that commits a few units and then none any more. */
async function killed(
  context: TestContext,
  one: Process,
  other: Process,
  ids: readonly string[],
): Promise<void> {
  const events: EventEntry[] = [];
  for (const unitsLeft of [1, 2, 7]) {
    let left = unitsLeft;
    const dying: Store = {
      ...one.plain,
      processId: `dead-${unitsLeft}`,
      commit: (unit) => (left-- > 0 ? one.plain.commit(unit) : new Promise(() => undefined)),
    };
    const { directory, wakes, events: sent } = one;
    const parts = { directory, wakes, events: sent, newId, clock: Date.now };
    const owed = makeOwedDeliveries(servicesOver(dying, { newId }), directory, wakes);
    const event = eventOf('products.created');
    const store = withStages(dying, deliveriesStage({ ...parts, store: dying, owed }));
    assert.equal((await store.commit({ changes: [], events: [event] })).outcome, 'committed');
    await until(() => left <= 0, 'the units were committed');
    events.push(event);
  }
  // Two that find the same rows: the process that started anew, and another one.
  const survivors = [one, other].map(({ plain, directory, wakes }) =>
    makeOwedDeliveries(
      servicesOver({ ...plain, hasEnded: (processId) => processId.startsWith('dead-') }, { newId }),
      directory,
      wakes,
    ),
  );
  context.after(() => Promise.all(survivors.map((survivor) => survivor.close())));
  await settled(one.plain);
  for (const event of events) assert.deepEqual(await toldOf(one.plain, event), [...ids].sort());
}

async function owed(context: TestContext, process: Process): Promise<void> {
  const { plain, directory, wakes, events } = process;
  const [kept, removed] = [
    await addEndpoint(process, 'usr_1', { events: ['products.*'] }),
    await addEndpoint(process, 'usr_1', { events: ['products.*'] }),
  ];
  const sleeping = { ...plain, processId: 'asleep' };
  const parts = { directory, wakes, events, newId, clock: Date.now };
  const store = withStages(
    sleeping,
    deliveriesStage({ ...parts, store: sleeping, owed: { look: () => undefined } }),
  );
  const event = eventOf('products.created');
  assert.equal((await store.commit({ changes: [], events: [event] })).outcome, 'committed');
  assert.deepEqual([...(await owedTo(plain, kept.id))], [event.id]);
  await drop(process, removed.id);
  const awake = makeOwedDeliveries(servicesOver(sleeping, { newId }), directory, wakes);
  context.after(() => awake.close());
  await settled(plain);
  assert.deepEqual([...(await owedTo(plain, kept.id))], []);
  const told = await toldOf(plain, event);
  assert.ok(told.includes(kept.id) && !told.includes(removed.id));
  await drop(process, kept.id);
}

/** As a bulk deletion has them, of rows of several owners. */
async function together(process: Process, ids: readonly string[]): Promise<void> {
  const some = await Promise.all(
    ['usr_1', 'usr_2'].map((owner) => addEndpoint(process, owner, { events: ['notes.*'] })),
  );
  const events = Array.from({ length: 300 }, (_, at) => eventOf('notes.deleted', { owner: `usr_${at % 3}` }));
  const shared = [eventOf('products.deleted'), eventOf('products.deleted')];
  const unit = { changes: [], events: [...events, ...shared] };
  assert.equal((await process.store.commit(unit)).outcome, 'committed');
  await settled(process.plain);
  for (const [at, event] of events.entries()) {
    const owner = at % 3 === 0 ? undefined : some[(at % 3) - 1];
    assert.deepEqual(await toldOf(process.plain, event), owner === undefined ? [] : [owner.id]);
  }
  for (const event of shared) assert.deepEqual(await toldOf(process.plain, event), [...ids].sort());
  for (const { id } of some) await drop(process, id);
}

/** Changes wait in the lines of their process, as those of the resource of endpoints do; what the two processes do is a race. */
async function restless(one: Process, other: Process): Promise<void> {
  let isOver = false;
  let changes = 0;
  const changing = [one, other].map(async (process) => {
    while (!isOver) {
      const plain = withStages(process.plain, generationStage(process.directory, process.plain.lines));
      const { id } = await addEndpoint({ ...process, plain }, 'usr_1', { events: ['products.*'] });
      await drop({ ...process, plain }, id);
      changes += 2;
    }
  });
  const events = Array.from({ length: 10 }, () => eventOf('products.updated'));
  for (const event of events) {
    assert.equal((await one.store.commit({ changes: [], events: [event] })).outcome, 'committed');
  }
  isOver = true;
  await Promise.all(changing);
  assert.ok(changes > 0);
  await settled(one.plain);
}

function recording(store: Store, units: Unit[]): Store {
  return {
    ...store,
    commit(unit) {
      units.push(unit);
      return store.commit(unit);
    },
  };
}

async function drop(process: Process, id: string): Promise<void> {
  const changes: Change[] = [];
  for (const table of ['endpoints', 'endpoint_secrets']) {
    const row = await process.plain.read(table, id);
    if (row !== undefined) changes.push({ table, id, expect: { rev: row.rev }, next: null });
  }
  await change(process.plain, process.directory, changes);
}

/** Ids of the endpoints with a delivery of the event, sorted; one with two is named twice. */
async function toldOf(store: Store, event: EventEntry): Promise<readonly string[]> {
  const field = deliveriesCollection.fields.get('eventId');
  assert.ok(field !== undefined);
  const filter = { op: 'eq', field, value: event.id } as const;
  const plan = store.plan({ table: deliveriesCollection.name, filter, sort: byId, limit: 1000 });
  const ids: string[] = [];
  for (let position: Keyset = { from: 'start' }; ; ) {
    const rows = await plan.rows(position);
    for (const { doc } of rows) ids.push((JSON.parse(doc) as Delivery).endpointId);
    const last = rows.at(-1);
    if (last === undefined || rows.length < 1000) return ids.sort();
    position = { from: 'after', key: [last.id] };
  }
}
