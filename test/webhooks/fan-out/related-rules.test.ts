/**
 * Rules over references and endpoints (§5.9): an event makes deliveries only for endpoints whose owners may read its resource by the rows
 * that it names, as the unit leaves them; and a delivery is sent only while that is so. On both stores.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../../src/config/collections.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import { eventDocument } from '../../../src/model/event.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { type Change, type EventEntry, keptRow, type Store } from '../../../src/store/store.ts';
import { deliveriesCollection } from '../../../src/webhooks/sending/sending-tables.ts';
import { engines } from '../../harness/stores.ts';
import { addEndpoint, newId, startProcess } from './fixture.ts';

// `things` is a table of every test store.
const collections = [
  ...resolveCollections({
    things: { schema: Type.Object({ open: Type.Boolean() }), access: { read: 'public' } },
    remarks: {
      schema: Type.Object({ thingId: Type.String() }),
      references: { thingId: { collection: 'things' } },
      access: { read: { where: { 'thingId.open': true } } },
    },
  }).values(),
];

function remark(thingId: string): EventEntry {
  const id = `evt_${newId()}`;
  const type = 'remarks.created';
  const at = Date.now();
  const doc = eventDocument(id, type, at, JSON.stringify({ id: 'r', thingId }));
  return { id, type, collection: 'remarks', owner: null, doc, createdAt: at };
}

async function thing(store: Store, id: string, open: boolean): Promise<Change> {
  const row = await store.read('things', id);
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  return { table: 'things', id, expect, next: keptRow(JSON.stringify({ id, open }), null, 1, Date.now()) };
}

async function toldOf(store: Store, { id }: EventEntry): Promise<readonly string[]> {
  const plan = store.plan({ table: deliveriesCollection.name, filter: always, sort: byId, limit: 100_000 });
  const all = (await plan.rows({ from: 'start' })).map(({ doc }) => JSON.parse(doc) as Delivery);
  return all.flatMap(({ eventId, endpointId }) => (eventId === id ? [endpointId] : []));
}

for (const [engine, open] of engines) {
  test(`${engine}: an endpoint gets events by the rows that they name, as their unit leaves them, and as they are when it is sent`, async (context) => {
    const [plain] = await open(context);
    const process = await startProcess(context, plain, { collections });
    const { store, directory } = process;
    const adas = await addEndpoint(process, 'usr_ada', { events: ['remarks.*'] });
    const commit = async (changes: readonly Change[], ...events: readonly EventEntry[]): Promise<void> => {
      const { outcome } = await store.commit({ changes, events });
      assert.equal(outcome, 'committed');
    };
    await commit([await thing(plain, 'a', true), await thing(plain, 'b', false)]);
    const [shown, hidden, dangling] = [remark('a'), remark('b'), remark('none')];
    await commit([], shown, hidden, dangling);
    assert.deepEqual(await toldOf(plain, shown), [adas.id]);
    assert.deepEqual(await toldOf(plain, hidden), []);
    assert.deepEqual(await toldOf(plain, dangling), []);

    // The unit itself opens one and closes the other.
    const [opened, closed, made] = [remark('b'), remark('a'), remark('c')];
    const changes = [
      await thing(plain, 'a', false),
      await thing(plain, 'b', true),
      await thing(plain, 'c', true),
    ];
    await commit(changes, opened, closed, made);
    assert.deepEqual(await toldOf(plain, opened), [adas.id]);
    assert.deepEqual(await toldOf(plain, closed), []);
    assert.deepEqual(await toldOf(plain, made), [adas.id]);

    assert.equal(await directory.mayReceive(adas.id, opened), true);
    await commit([await thing(plain, 'b', false)]);
    assert.equal(await directory.mayReceive(adas.id, opened), false);
  });

  test(`${engine}: a unit of many events of many rows makes the deliveries of each`, async (context) => {
    const [plain] = await open(context);
    const process = await startProcess(context, plain, { collections });
    const adas = await addEndpoint(process, 'usr_ada', { events: ['remarks.*'] });
    const changes: Change[] = [];
    for (let at = 0; at < 200; at += 1) changes.push(await thing(plain, `m${at}`, at % 2 === 0));
    assert.equal((await plain.commit({ changes, events: [] })).outcome, 'committed');
    const events = Array.from({ length: 200 }, (_, at) => remark(`m${at}`));
    assert.equal((await process.store.commit({ changes: [], events })).outcome, 'committed');
    for (const at of [0, 1, 63, 64, 65, 128, 129, 198, 199])
      assert.deepEqual(
        await toldOf(plain, events[at] as EventEntry),
        at % 2 === 0 ? [adas.id] : [],
        String(at),
      );
  });
}
