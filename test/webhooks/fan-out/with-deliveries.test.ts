/** Deliveries in the unit that makes the event: all of them, none besides, on both stores, whoever changes endpoints meanwhile. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { OctetLine } from '../../../src/memory/program-memory.ts';
import { workRules } from '../../../src/memory/work-rules.ts';
import type { Delivery } from '../../../src/model/delivery.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { Lines } from '../../../src/store/lines.ts';
import { withStages } from '../../../src/store/stages.ts';
import {
  type Change,
  type EventEntry,
  keptRow,
  type Row,
  type Store,
  StoreUnavailable,
  type Unit,
} from '../../../src/store/store.ts';
import { operationalEvent } from '../../../src/webhooks/sending/event-types/event-types.ts';
import { deliveriesStage } from '../../../src/webhooks/sending/fan-out/with-deliveries.ts';
import { targeted } from '../../../src/webhooks/sending/new-deliveries.ts';
import {
  deliveriesCollection,
  endpointSecretsTable,
  endpointsCollection,
  generationRow,
} from '../../../src/webhooks/sending/sending-tables.ts';
import { engines, failing, openEmbedded } from '../../harness/stores.ts';
import {
  addEndpoint,
  change,
  eventOf,
  knownOf,
  newId,
  type Process,
  putEndpoint,
  startProcess,
} from './fixture.ts';

for (const [engine, open] of engines) {
  test(`deliveries of events on ${engine}`, async (context) => {
    const [plainOne, plainOther] = await open(context);
    const one = await startProcess(context, plainOne);
    const other = await startProcess(context, plainOther);
    await context.test(
      'come with the event, one for each endpoint that may be told, and its payload once',
      () => comesWithEvent(one, other),
    );
    await context.test('are missing for no event and too many for none while endpoints come and go', () =>
      racing(one, other),
    );
    await context.test('reach endpoints that two changes made which the process heard nothing of', (inner) =>
      unheard(inner, plainOne, other),
    );
    await context.test(
      'go to nobody by a change of endpoints that was lost, though another one followed',
      (inner) => lost(inner, plainOne, other),
    );
    await context.test('leave the outcomes of the caller in its own numbering', () => numbering(one));
    await context.test('are not made for an endpoint that the unit itself takes out of service', () =>
      leaving(one),
    );
    await context.test('go to one endpoint alone through the store without fan-out', () => alone(one));
  });
}

async function comesWithEvent(one: Process, other: Process): Promise<void> {
  const ada = await addEndpoint(other, 'usr_ada', { events: ['notes.*'] });
  const bob = await addEndpoint(other, 'usr_bob', { events: ['notes.*', 'products.created'] });
  const root = await addEndpoint(other, 'usr_root', { events: ['notes.created'] });
  const note = eventOf('notes.created', { owner: 'usr_ada', object: { title: 'private' } });
  const rev = await committed(one.store, { changes: [thing('t1')], events: [note] });
  const rows = (await deliveries(one.plain)).filter(({ eventId }) => eventId === note.id);
  assert.deepEqual(rows.map(({ endpointId }) => endpointId).sort(), [ada.id, root.id].sort(), 'never to bob');
  const time = new Date(note.createdAt).toISOString();
  for (const { id, row, endpointId, ...rest } of rows) {
    assert.match(id, /^dlv_/);
    assert.equal(row.rev, rev, 'in the unit of the event');
    assert.equal(row.owner, endpointId === ada.id ? 'usr_ada' : 'usr_root');
    assert.deepEqual(rest, {
      eventId: note.id,
      eventType: 'notes.created',
      status: 'pending',
      attemptCount: 0,
      scheduledAttemptCount: 0,
      nextAttemptAt: time,
      dueAt: time,
      lastStatusCode: null,
      lastError: null,
      createdAt: time,
      updatedAt: time,
    });
    assert.ok(!row.doc.includes('private'), 'the payload is that of the event');
  }
  assert.equal((await one.plain.read('events', note.id))?.doc, note.doc);
  assert.deepEqual([...new Set(one.woken)].sort(), [ada.id, root.id].sort());
  const product = eventOf('products.created');
  await committed(one.store, {
    changes: [],
    events: [product, eventOf('notes.created', { owner: 'usr_sam' })],
  });
  assert.deepEqual(await toldOf(one.plain, product), [bob.id]);
  for (const { id } of [ada, bob, root]) await drop(other, id);
}

/** Revisions say exactly which events came while an endpoint stood. */
async function racing(one: Process, other: Process): Promise<void> {
  const events: { readonly event: EventEntry; readonly rev: number }[] = [];
  const lives: { readonly id: string; readonly from: number; readonly to: number }[] = [];
  let isOver = false;
  const writers = [one.store, other.store].flatMap((store) =>
    Array.from({ length: 2 }, async () => {
      while (!isOver) {
        const event = eventOf('products.updated');
        events.push({ event, rev: await committed(store, { changes: [], events: [event] }) });
      }
    }),
  );
  for (let round = 0; round < 15; round += 1) {
    const maker = round % 2 === 0 ? one : other;
    const made = await addEndpoint(maker, 'usr_ada', { events: ['products.*'] });
    if (round % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    lives.push({ id: made.id, from: made.rev, to: await drop(round % 4 < 2 ? one : other, made.id) });
  }
  isOver = true;
  await Promise.all(writers);
  const made = new Set(
    (await deliveries(one.plain)).map(({ eventId, endpointId }) => `${eventId} ${endpointId}`),
  );
  let expected = 0;
  for (const { event, rev } of events) {
    for (const { id, from, to } of lives) {
      const stood = from < rev && rev < to;
      if (stood) expected += 1;
      assert.equal(made.has(`${event.id} ${id}`), stood, `event of ${rev}, endpoint from ${from} to ${to}`);
    }
  }
  assert.ok(
    expected > 0 && events.length > lives.length,
    `${expected} deliveries of ${events.length} events`,
  );
}

async function unheard(context: TestContext, plain: Store, other: Process): Promise<void> {
  const deaf = { ...plain, onChange: () => () => undefined };
  const process = await startProcess(context, deaf);
  const endpoints = [
    await addEndpoint(other, 'usr_ada', { events: ['products.deleted'] }),
    await addEndpoint(other, 'usr_ada', { events: ['products.deleted'] }),
  ];
  for (const { id } of endpoints) assert.equal(process.directory.get(id), undefined);
  const event = eventOf('products.deleted');
  await committed(process.store, { changes: [], events: [event] });
  assert.deepEqual(await toldOf(plain, event), endpoints.map(({ id }) => id).sort());
  for (const { id } of endpoints) await drop(other, id);
}

async function numbering(process: Process): Promise<void> {
  const { id } = await addEndpoint(process, 'usr_ada', { events: ['invoice.*', 'products.*'] });
  const known = eventOf('products.created');
  await committed(process.store, { changes: [], events: [known] });
  const fresh = eventOf('products.created');
  const twice = await process.store.commit({ changes: [thing('n1'), thing('n2')], events: [fresh, known] });
  assert.ok(twice.outcome === 'superseded');
  assert.equal(twice.change, 3, 'the second event, after two changes');
  assert.equal(twice.current?.doc, known.doc);
  await committed(process.store, { changes: [thing('n1')], events: [fresh] });
  const refused = await process.store.commit({
    changes: [thing('n2'), thing('n1')],
    events: [eventOf('products.created')],
  });
  assert.ok(refused.outcome === 'superseded' && refused.change === 1);
  await drop(process, id);
}

async function leaving(process: Process): Promise<void> {
  const failed = await addEndpoint(process, 'usr_ada', { events: ['*'] });
  const watching = await addEndpoint(process, 'usr_ada', { events: ['endpoint.disabled'] });
  const others = await addEndpoint(process, 'usr_bob', { events: ['*'] });
  const { rev, ...rest } = failed;
  const disabled = { ...rest, status: 'disabled' as const, disabledReason: 'gone' as const };
  const event = operationalEvent('endpoint.disabled', disabled, 'usr_ada', Date.now(), newId);
  await change(process.store, process.directory, [putEndpoint(disabled, 'usr_ada', rev)], [event]);
  assert.deepEqual(await toldOf(process.plain, event), [watching.id]);
  assert.deepEqual(JSON.parse(event.doc).data.object, {
    id: failed.id,
    url: 'https://receiver.example',
    status: 'disabled',
    disabledReason: 'gone',
  });
  for (const { id } of [failed, watching, others]) await drop(process, id);
}

async function alone(process: Process): Promise<void> {
  const everything = await addEndpoint(process, 'usr_root', { events: ['*'] });
  const tested = await addEndpoint(process, 'usr_ada', { events: ['products.*'] });
  const event = eventOf('endpoint.test', { owner: 'usr_ada' });
  const known = process.directory.get(tested.id) ?? knownOf('usr_ada', tested);
  await committed(process.plain, targeted(event, known, { wakes: process.wakes, newId }));
  assert.deepEqual(await toldOf(process.plain, event), [tested.id]);
  for (const { id } of [everything, tested]) await drop(process, id);
}

test('a store with fan-out', async (context) => {
  const plain = await openEmbedded(context);
  const process = await startProcess(context, plain);
  const seen: Unit[] = [];
  const spied = {
    ...plain,
    commit(unit: Unit) {
      seen.push(unit);
      return plain.commit(unit);
    },
    extra: () => 'kept',
  };
  const store = withStages(spied, deliveriesStage({ ...process, store: spied, newId }));

  await context.test('passes units without events and all else on as they are', async () => {
    assert.equal(store.extra(), 'kept');
    const unit = { changes: [thing('p')], events: [] };
    await committed(store, unit);
    assert.equal(seen.pop(), unit);
    assert.equal((await store.read('things', 'p'))?.doc, '{}');
  });

  await context.test('expects the generation as it was read even while there is no endpoint', async () => {
    await committed(store, { changes: [], events: [eventOf('products.created')] });
    const row = await plain.read(generationRow.table, generationRow.id);
    assert.ok(row !== undefined);
    assert.deepEqual(seen.pop()?.changes, [
      { ...generationRow, expect: { rev: row.rev }, next: null, stays: true },
    ]);
  });

  const lost = 'names the endpoints where the answer of the store was lost, and not where it refused';
  await context.test(lost, () => unanswered(process));
  await context.test('makes the deliveries of a unit once those of others leave room for them', () =>
    inLine(process),
  );
  await context.test('gives up in time where another process changes endpoints with every attempt', () =>
    stubborn(plain),
  );
  await context.test('relies on nothing of long ago, however often the endpoints changed since', (inner) =>
    forgotten(inner, plain),
  );
});

async function inLine(process: Process): Promise<void> {
  const endpoint = await addEndpoint(process, 'usr_ada', { events: ['products.*'] });
  await process.directory.refresh();
  const fanOuts = new OctetLine(workRules.delivery.octets);
  const held = Promise.withResolvers<void>();
  let made = 0;
  const slow = {
    ...process.plain,
    async commit(unit: Unit) {
      if (unit.changes.some(({ table }) => table === deliveriesCollection.name)) {
        made += 1;
        await held.promise;
      }
      return process.plain.commit(unit);
    },
  };
  const store = withStages(slow, deliveriesStage({ ...process, store: slow, newId, fanOuts }));
  const events = ['products.created', 'products.created', 'other.created'].map((type) => eventOf(type));
  const [one, two, other] = events.map((event) => store.commit({ changes: [], events: [event] }));
  assert.equal((await other)?.outcome, 'committed', 'without a delivery a unit does not wait');
  assert.equal(made, 1);
  held.resolve();
  for (const commit of [one, two]) assert.equal((await commit)?.outcome, 'committed');
  for (const event of events.slice(0, 2)) assert.deepEqual(await toldOf(process.plain, event), [endpoint.id]);
  assert.equal(fanOuts.bytes, 0);
  await drop(process, endpoint.id);
}

async function unanswered(process: Process): Promise<void> {
  const endpoint = await addEndpoint(process, 'usr_ada', { events: ['products.*'] });
  const losing = failing(process.plain);
  const fallible = withStages(losing, deliveriesStage({ ...process, store: losing, newId }));
  process.woken.length = 0;
  const event = eventOf('products.created');
  await committed(fallible, { changes: [], events: [event] });
  assert.deepEqual(process.woken.splice(0), [endpoint.id]);
  assert.equal((await fallible.commit({ changes: [], events: [event] })).outcome, 'superseded');
  assert.deepEqual(process.woken, []);
  losing.fault = 'answer-lost';
  await assert.rejects(
    fallible.commit({ changes: [], events: [eventOf('products.created')] }),
    StoreUnavailable,
  );
  assert.deepEqual(process.woken, [endpoint.id]);
  await drop(process, endpoint.id);
}

/** Takes back the last change of endpoints, as a failover does: its rows are gone, and the generation is the earlier one. */
async function lose(plain: Store, endpointId: string, earlier: Row | undefined): Promise<void> {
  const tables = [
    [endpointsCollection.name, endpointId],
    [endpointSecretsTable, endpointId],
  ] as const;
  const row = await plain.read(generationRow.table, generationRow.id);
  assert.ok(earlier !== undefined && row !== undefined);
  const { doc, createdAt, updatedAt } = earlier;
  const next = keptRow(doc, null, createdAt, updatedAt);
  const changes: Change[] = [{ ...generationRow, expect: { rev: row.rev }, next }];
  for (const [table, id] of tables) {
    const row = await plain.read(table, id);
    assert.ok(row !== undefined, table);
    changes.push({ table, id, expect: { rev: row.rev }, next: null });
  }
  await committed(plain, { changes, events: [] });
}

async function lost(context: TestContext, plain: Store, other: Process): Promise<void> {
  const deaf = { ...plain, onChange: () => () => undefined };
  for (const comesAgain of [false, true]) {
    const [sender, writer] = [await startProcess(context, deaf), await startProcess(context, deaf)];
    const earlier = await plain.read(generationRow.table, generationRow.id);
    const gone = await addEndpoint(sender, 'usr_root', { events: ['*'] });
    for (const { directory } of [sender, writer]) {
      await directory.refresh();
      assert.notEqual(directory.get(gone.id), undefined);
    }
    await lose(plain, gone.id, earlier);
    await other.directory.refresh();
    assert.equal(other.directory.get(gone.id), undefined);
    const later = comesAgain ? await addEndpoint(other, 'usr_root', { events: ['*'] }) : undefined;
    const event = eventOf('products.created');
    await committed(writer.store, { changes: [], events: [event] });
    assert.deepEqual(await toldOf(plain, event), later === undefined ? [] : [later.id]);
    assert.equal(await sender.directory.mayReceive(gone.id, event), false);
    if (later !== undefined) await drop(other, later.id);
  }
}

async function stubborn(plain: Store): Promise<void> {
  await committed(plain, { changes: [thing('there')], events: [] });
  let readings = 0;
  const directory = {
    matching: () => ({ groups: [], filtered: [], guard: { ...thing('there'), next: null } }),
    async refresh() {
      readings += 1;
    },
  };
  const announce = (): void => assert.fail('nothing was made');
  const event = eventOf('products.created');
  const hasty = { ...plain, lines: new Lines({ changeWaitMs: 50 }) };
  const fanOut = deliveriesStage({
    store: hasty,
    directory,
    wakes: { announce, announceMade: announce, noteEvent: () => undefined },
    events: { keep: announce },
    owed: { look: announce },
    newId,
    clock: Date.now,
  });
  const store = withStages(hasty, fanOut);
  await assert.rejects(store.commit({ changes: [], events: [event] }), StoreUnavailable);
  assert.ok(readings > 0);
  assert.equal(await plain.read('events', event.id), undefined);
}

async function forgotten(context: TestContext, plain: Store): Promise<void> {
  const deaf = { ...plain, onChange: () => () => undefined };
  const idle = await startProcess(context, deaf);
  const active = await startProcess(context, plain);
  const made = await addEndpoint(active, 'usr_root', { events: ['*'] });
  const { rev: _, ...endpoint } = made;
  let { rev } = made;
  // More than the generation names.
  for (let at = 0; at < 100; at += 1) {
    rev = await change(plain, active.directory, [
      putEndpoint({ ...endpoint, description: `change ${at}` }, 'usr_root', rev),
    ]);
    await active.directory.refresh();
  }
  const event = eventOf('products.created');
  await committed(idle.store, { changes: [], events: [event] });
  assert.deepEqual(await toldOf(plain, event), [endpoint.id]);
}

function thing(id: string): Change {
  return { table: 'things', id, expect: { absent: true }, next: keptRow('{}', null, 1, 1) };
}

async function committed(store: Pick<Store, 'commit'>, unit: Unit): Promise<number> {
  const commit = await store.commit(unit);
  assert.ok(commit.outcome === 'committed', JSON.stringify(commit));
  return commit.rev;
}

/** @returns the revision at which it went */
async function drop({ plain, directory }: Process, id: string): Promise<number> {
  const row = await plain.read(endpointsCollection.name, id);
  assert.ok(row);
  return change(plain, directory, [
    { table: endpointsCollection.name, id, expect: { rev: row.rev }, next: null },
  ]);
}

async function deliveries(store: Store): Promise<readonly (Delivery & { readonly row: Row })[]> {
  const plan = store.plan({ table: deliveriesCollection.name, filter: always, sort: byId, limit: 100_000 });
  const rows = await plan.rows({ from: 'start' });
  return rows.map((row) => ({ ...(JSON.parse(row.doc) as Delivery), row }));
}

async function toldOf(store: Store, event: EventEntry): Promise<readonly string[]> {
  const all = await deliveries(store);
  return all.flatMap(({ eventId, endpointId }) => (eventId === event.id ? [endpointId] : [])).sort();
}
