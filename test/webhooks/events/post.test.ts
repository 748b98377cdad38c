/** POST of an event: what is taken and refused, whose it is, and that one id is one event. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import { collection } from '../../../src/config/define.ts';
import { openEmbedded } from '../../harness/stores.ts';
import type { Answered } from '../../harness/walked-resources.ts';
import { walkEvents } from './walked-events.ts';

const declaration = {
  collections: {
    products: collection({
      schema: Type.Object({ name: Type.String(), price: Type.Optional(Type.Number()) }),
    }),
  },
  eventTypes: {
    'invoice.paid': {
      schema: Type.Object({ id: Type.String(), amount: Type.Integer({ minimum: 0 }) }),
    },
  },
};

describe('POST /events', async () => {
  const room = walkEvents(await openEmbedded(), declaration, { webhookContentBytesMax: 2048 });
  const post = (who: string | undefined, json: unknown, headers = {}): Promise<Answered> =>
    room.ask(who, 'POST', 'events', { json, headers });
  const paid = (more: object = {}) => ({
    type: 'invoice.paid',
    data: { object: { id: 'i1', amount: 3 } },
    ...more,
  });
  const pointers = ({ json }: Answered) => json.errors.map(({ pointer }: { pointer: string }) => pointer);

  test('takes an event on with 202, its place and the event, and hands it to the fan-out', async () => {
    const before = room.fannedOut.length;
    const answered = await post('ada', paid());
    assert.equal(answered.status, 202);
    const { id, object, type, created, data } = answered.json;
    assert.match(id, /^evt_/);
    assert.deepEqual([object, type, data], ['event', 'invoice.paid', { object: { id: 'i1', amount: 3 } }]);
    assert(Math.abs(created - Date.now() / 1000) < 60);
    assert.equal(answered.field('Location'), `/api/v1/events/${id}`);
    const [event] = room.fannedOut.slice(before);
    assert.deepEqual(
      [event?.id, event?.type, event?.collection, event?.owner],
      [id, 'invoice.paid', '', 'usr_ada'],
    );
  });

  test('shows it to who posted it and to administrators, and to nobody else', async () => {
    const { id } = (await post('ada', paid())).json;
    const statuses = await Promise.all(
      ['ada', 'root', 'bob', 'nora', undefined].map(
        async (who) => (await room.ask(who, 'GET', `events/${id}`)).status,
      ),
    );
    assert.deepEqual(statuses, [200, 200, 404, 404, 404]);
  });

  test('is closed to callers without a credential and to those without the scope webhooks', async () => {
    assert.equal((await post(undefined, paid())).status, 401);
    assert.equal((await post('writer', paid())).status, 403);
    assert.equal((await post('hook', paid())).status, 202);
    assert.equal((await post('root', paid())).status, 202);
  });

  test('takes any object of a type that nobody declared', async () => {
    for (const type of ['order.shipped', 'x', 'A-b_c.1.two']) {
      const { status, json } = await post('ada', {
        type,
        data: { object: { any: [1, null, { deep: true }] } },
      });
      assert.equal(status, 202, type);
      assert.deepEqual(json.data.object, { any: [1, null, { deep: true }] });
    }
  });

  test('refuses names that are none, and those that are kept for the program', async () => {
    for (const type of [
      '',
      '.',
      'a..b',
      'a.',
      '.a',
      'a b',
      'ä.b',
      'a.*',
      '*',
      'x'.repeat(201),
      'endpoint.test',
      'endpoint',
    ]) {
      const answered = await post('ada', { type, data: { object: {} } });
      assert.equal(answered.status, 422, type);
      assert.deepEqual(pointers(answered), ['/type'], type);
    }
    assert.equal((await post('ada', { type: 'endpoints.made', data: { object: {} } })).status, 202);
  });

  test('refuses an envelope that lacks something with 400, and one with what it does not have with 422', async () => {
    for (const json of [{}, { type: 'a.b' }, { type: 'a.b', data: {} }]) {
      const answered = await post('ada', json);
      assert.deepEqual([answered.status, answered.json.code], [400, 'field_missing']);
    }
    const wrong: readonly (readonly [object, string])[] = [
      [{ type: 1, data: { object: {} } }, '/type'],
      [{ type: 'a.b', data: { object: [] } }, '/data/object'],
      [{ type: 'a.b', data: { object: {}, more: 1 } }, '/data/more'],
      [{ type: 'a.b', data: { object: {} }, created: 1 }, '/created'],
      [{ type: 'a.b', data: { object: {} }, tenant: '' }, '/tenant'],
    ];
    for (const [json, pointer] of wrong) {
      const answered = await post('ada', json);
      assert.deepEqual([answered.status, ...pointers(answered)], [422, pointer]);
    }
    assert.equal((await post('ada', [])).status, 422);
  });

  test('holds an object to the schema of its type, and points at each fault', async () => {
    for (const [object, pointer] of [
      [{ id: 'i1' }, '/data/object/amount'],
      [{ id: 'i1', amount: -1 }, '/data/object/amount'],
      [{ id: 'i1', amount: 1, more: 1 }, '/data/object/more'],
    ] as const) {
      const answered = await post('ada', { type: 'invoice.paid', data: { object } });
      assert.deepEqual([answered.status, ...pointers(answered)], [422, pointer]);
    }
  });

  test('lets administrators alone post what reads as a write of a collection, and holds that to its schema', async () => {
    const at = '2026-08-01T09:30:00.000Z';
    const object = { id: 'p1', name: 'Kettle', createdAt: at, updatedAt: at };
    const json = { type: 'products.created', data: { object } };
    assert.equal((await post('ada', json)).status, 403);
    const answered = await post('root', json);
    assert.equal(answered.status, 202);
    assert.equal((await room.ask('writer', 'GET', `events/${answered.json.id}`)).status, 404);
    const bad = await post('root', {
      type: 'products.created',
      data: { object: { ...object, price: 'low' } },
    });
    assert.deepEqual([bad.status, ...pointers(bad)], [422, '/data/object/price']);
    assert.equal((await post('ada', { ...json, type: 'products.sold' })).status, 202);
  });

  test('answers an event that comes again under its own id 200 with the first one, and makes no other', async () => {
    const first = await post('ada', paid({ id: 'invoice-1' }));
    assert.equal(first.status, 202);
    assert.equal(first.json.id, 'invoice-1');
    room.moveClock(10);
    const before = room.fannedOut.length;
    const reordered = { id: 'invoice-1', data: { object: { amount: 3, id: 'i1' } }, type: 'invoice.paid' };
    const second = await post('ada', reordered);
    assert.equal(second.status, 200);
    assert.deepEqual(second.json, first.json);
    assert.equal(second.field('Content-Location'), first.field('Location'));
    assert.equal(room.fannedOut.length, before);
  });

  test('refuses another event under an id that is taken, whatever differs and whoever posts it', async () => {
    assert.equal((await post('ada', paid({ id: 'invoice-2' }))).status, 202);
    const others = [
      paid({ id: 'invoice-2', data: { object: { id: 'i1', amount: 4 } } }),
      { ...paid({ id: 'invoice-2' }), type: 'invoice.sent' },
      paid({ id: 'invoice-2', tenant: 'north' }),
    ];
    for (const json of others) {
      const answered = await post('ada', json);
      assert.deepEqual([answered.status, answered.json.code], [409, 'event_id_used']);
    }
    assert.equal((await post('bob', paid({ id: 'invoice-2' }))).status, 409);
  });

  test('makes one event of many that are posted at once under one id', async () => {
    const before = room.fannedOut.length;
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('ada', paid({ id: 'at-once' }))));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [...new Array(19).fill(200), 202]);
    assert.equal(room.fannedOut.length, before + 1);
  });

  test('refuses ids that cannot be signed or found again', async () => {
    for (const id of ['a.b', 'a/b', 'ä', 'expunge', 'x'.repeat(129)]) {
      const answered = await post('ada', paid({ id }));
      assert.deepEqual([answered.status, ...pointers(answered)], [422, '/id'], id);
    }
    assert.equal((await post('ada', paid({ id: 'x'.repeat(128) }))).status, 202);
  });

  test('repeats the answer of a request that comes again with its Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': '"post-1"' };
    const before = room.fannedOut.length;
    const first = await post('ada', paid(), headers);
    const second = await post('ada', paid(), headers);
    assert.deepEqual([second.status, second.json], [202, first.json]);
    assert.equal(second.field('Location'), first.field('Location'));
    assert.equal(room.fannedOut.length, before + 1);
    assert.equal((await post('ada', paid({ tenant: 'other' }), headers)).status, 422);
    // Under a key of its own an event that was posted before settles that key too.
    const known = paid({ id: 'under-keys' });
    assert.equal((await post('ada', known, { 'Idempotency-Key': '"post-2"' })).status, 202);
    for (let time = 0; time < 2; time += 1) {
      assert.equal((await post('ada', known, { 'Idempotency-Key': '"post-3"' })).status, 200);
    }
  });

  test('gives an event the tenant of who posts it, and lets nobody of a tenant name another', async () => {
    const own = await post('nora', paid());
    assert.equal(own.json.tenant, 'north');
    assert.equal((await post('nora', paid({ tenant: 'north' }))).status, 202);
    assert.equal((await post('nora', paid({ tenant: 'south' }))).status, 403);
    const named = await post('ada', paid({ tenant: 'south' }));
    assert.equal(named.json.tenant, 'south');
    assert.equal((await post('root', paid())).json.tenant, undefined);
    const sees = async (who: string, { json }: Answered) =>
      (await room.ask(who, 'GET', `events/${json.id}`)).status;
    assert.deepEqual(
      [await sees('nils', own), await sees('sam', own), await sees('sam', named), await sees('nils', named)],
      [200, 404, 200, 404],
    );
  });

  test('refuses content beyond the bound with 413, and takes what lies at it', async () => {
    const sized = (bytes: number) => {
      const empty = { type: 'big.one', data: { object: { text: '' } } };
      const text = 'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(empty)));
      return { type: 'big.one', data: { object: { text } } };
    };
    assert.equal((await post('ada', sized(2048))).status, 202);
    const refused = await post('ada', sized(2049));
    assert.deepEqual([refused.status, refused.json.code], [413, 'content_too_large']);
  });

  test('leaves out the content of its answer where that is preferred', async () => {
    await post('ada', paid({ id: 'minimal' }));
    const again = await post('ada', paid({ id: 'minimal' }), { Prefer: 'return=minimal' });
    assert.deepEqual([again.status, again.json], [204, undefined]);
  });

  test('takes no other type of content', async () => {
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
    assert.equal(
      (await room.ask('ada', 'POST', 'events', { headers: { ...form, 'Content-Length': '3' } })).status,
      415,
    );
  });
});
