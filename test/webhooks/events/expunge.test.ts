/** The removal of one subject's events, on both stores: what leaves, what stays, and that it can be asked for again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliveryDocument } from '../../../src/model/delivery.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import { expungeResource } from '../../../src/webhooks/sending/events/expunge.ts';
import { attemptId } from '../../../src/work/settlement.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines } from '../../harness/stores.ts';
import { askOf } from '../../resources/ask.ts';
import { put, putDelivery, type WalkedEvents, walkEvents } from './walked-events.ts';

const snippet = 'the subject said';

for (const [name, open] of engines) {
  test(`removes every event about one resource or of one owner, what receivers answered, and what was to be sent, on ${name}`, async (context) => {
    const [store] = await open(context);
    const room = walkEvents(store);
    const gone: string[] = [];
    for (let number = 0; number < 70; number += 1) gone.push(await post(room, 'ada', 'i1', number));
    const other = await post(room, 'ada', 'i2', 0);
    const [first = '', second = ''] = gone;
    const waiting = await putDelivery(room, 'usr_ada', { eventId: first });
    const sent = await putDelivery(room, 'usr_bob', {
      eventId: second,
      status: 'delivered',
      dueAt: null,
      nextAttemptAt: null,
      lastStatusCode: 200,
      attemptCount: 2,
    });
    const kept = await putDelivery(room, 'usr_ada', { eventId: other });
    for (const [id, number] of [
      [sent.id, 1],
      [sent.id, 2],
      [kept.id, 1],
    ] as const)
      await logAttempt(room, id, number);

    const expunged = await expunge(room, { object: 'i1' });
    assert.deepEqual(expunged.json, { events: 70, deliveries: 2, attempts: 2, more: false });
    for (const id of gone) assert.equal(await store.read('events', id), undefined);
    assert.equal((await room.ask('ada', 'GET', `events/${other}`)).status, 200);
    const delivery = async (id: string) => (await room.ask('root', 'GET', `deliveries/${id}`)).json;
    const ended = await delivery(waiting.id);
    assert.deepEqual(
      [ended.status, ended.dueAt, ended.nextAttemptAt, ended.lastError],
      ['not_delivered', null, null, 'expunged'],
    );
    const delivered = await delivery(sent.id);
    assert.deepEqual(
      [delivered.status, delivered.lastStatusCode, delivered.lastError],
      ['delivered', 200, null],
    );
    assert.equal((await delivery(kept.id)).status, 'pending');
    const { items } = (await room.ask('root', 'GET', `deliveries/${sent.id}/attempts`)).json;
    assert.deepEqual(
      items.map((item: Record<string, unknown>) => [
        item.statusCode,
        item.responseSnippet,
        item.responseHeaders,
      ]),
      [
        [200, '', []],
        [200, '', []],
      ],
    );
    const untouched = (await room.ask('root', 'GET', `deliveries/${kept.id}/attempts`)).json.items;
    assert.equal(untouched[0].responseSnippet, snippet);

    const again = await expunge(room, { object: 'i1' });
    assert.deepEqual(again.json, { events: 0, deliveries: 0, attempts: 0, more: false });
    const resent = await room.ask('ada', 'POST', `deliveries/${waiting.id}/resend`);
    assert.equal(resent.status, 409);

    const bobs = await post(room, 'bob', 'i2', 1);
    assert.equal((await expunge(room, { owner: 'usr_ada' })).json.events, 1);
    assert.deepEqual(
      [await store.read('events', other), (await store.read('events', bobs))?.owner],
      [undefined, 'usr_bob'],
    );
  });
}

test('is for administrators alone, and takes one subject', async (context) => {
  const [, open] = engines[0] ?? [];
  assert(open);
  const [store] = await open(context);
  const room = walkEvents(store);
  const asked = async (who: string | undefined, json: object) =>
    (await room.ask(who, 'POST', 'events/expunge', { json })).status;
  assert.deepEqual(
    [
      await asked(undefined, { object: 'x' }),
      await asked('ada', { object: 'x' }),
      await asked('root', { object: 'x' }),
    ],
    [401, 403, 200],
  );
  for (const json of [{}, { object: 'x', owner: 'y' }, { object: '' }, { object: 1 }, { events: ['x'] }])
    assert.equal(await asked('root', json), 422, JSON.stringify(json));
});

test('takes out an attempt that was logged in the same moment', async (context) => {
  const [, open] = engines[0] ?? [];
  assert(open);
  const [plain] = await open(context);
  let meanwhile: (() => Promise<void>) | undefined;
  const store: Store = {
    ...plain,
    commit: async (unit) => {
      const before = unit.changes.some(({ table }) => table === 'deliveries') ? meanwhile : undefined;
      if (before !== undefined) meanwhile = undefined;
      await before?.();
      return plain.commit(unit);
    },
  };
  const room = walkEvents(store);
  const eventId = await post(room, 'ada', 'i1', 1);
  const delivery = await putDelivery(room, 'usr_ada', { eventId });
  meanwhile = async () => {
    await logAttempt(room, delivery.id, 1);
    const settled = { ...delivery, status: 'not_delivered', attemptCount: 1 } as const;
    const at = room.clock();
    await put(room, 'deliveries', delivery.id, keptRow(deliveryDocument(settled), 'usr_ada', at, at));
  };
  assert.deepEqual((await expunge(room, { object: 'i1' })).json, {
    events: 1,
    deliveries: 1,
    attempts: 1,
    more: false,
  });
  const { json } = await room.ask('root', 'GET', `deliveries/${delivery.id}`);
  assert.deepEqual([json.attemptCount, json.dueAt, json.lastError], [1, null, 'expunged']);
});

test('removes a bounded number of events at a time, tells whether to ask again, and which are gone', async (context) => {
  const [, open] = engines[0] ?? [];
  assert(open);
  const [store] = await open(context);
  const room = walkEvents(store);
  for (let number = 0; number < 5; number += 1) await post(room, 'ada', 'i1', number);
  const forgotten: string[] = [];
  const resource = expungeResource(servicesOver(store), '/events', {
    eventsMax: 3,
    forget: (id) => forgotten.push(id),
  });
  const operation = resource.operations.get('POST');
  const found: unknown[] = [];
  for (let time = 0; time < 3; time += 1) {
    const standing = { exists: true, visible: true, permitted: true };
    const proposal = { problem: null, fields: { object: 'i1' } };
    const result = await operation?.act?.(askOf({}), standing, proposal);
    assert(result !== undefined && 'made' in result);
    found.push(JSON.parse(result.made.doc ?? ''));
  }
  const none = { deliveries: 0, attempts: 0 };
  assert.deepEqual(found, [
    { events: 3, ...none, more: true },
    { events: 2, ...none, more: false },
    { events: 0, ...none, more: false },
  ]);
  assert.equal(new Set(forgotten).size, 5);
});

function expunge(room: WalkedEvents, json: object) {
  return room.ask('root', 'POST', 'events/expunge', { json });
}

async function post(room: WalkedEvents, who: string, id: string, number: number): Promise<string> {
  const json = { type: 'invoice.paid', data: { object: { id, number } } };
  const answered = await room.ask(who, 'POST', 'events', { json });
  assert.equal(answered.status, 202);
  return answered.json.id;
}

async function logAttempt(room: WalkedEvents, deliveryId: string, number: number): Promise<void> {
  const attempt = {
    number,
    statusCode: 200,
    responseSnippet: snippet,
    responseHeaders: [['x-subject', 'somebody']],
  };
  const at = room.clock();
  await put(
    room,
    'attempts',
    attemptId(deliveryId, number),
    keptRow(JSON.stringify(attempt), 'usr_ada', at, at),
  );
}
