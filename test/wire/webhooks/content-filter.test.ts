/** Filters on content of endpoints (§6.18): what they take, who may filter by what, and which events make a delivery, on both stores. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Delivery } from '../../../src/model/delivery.ts';
import { openClient, register } from '../../harness/account-client.ts';
import { describeOnEachStore } from '../../harness/engine-names.ts';
import { adminKey } from '../../harness/exchange.ts';
import { startServer } from '../../harness/running-server.ts';
import { eventually } from '../../harness/until.ts';

const config = fileURLToPath(new URL('./fixtures/orders.config.ts', import.meta.url));
const password = 'correct horse battery';
const url = 'http://127.0.0.1:4999/hooks';

const order = {
  ...{
    number: 7,
    state: 'open',
    note: 'Käse 100% fresh',
    tags: ['a', 'b'],
    dueAt: '2030-01-01T10:00:00+01:00',
  },
  ...{ customer: { id: 'c1', city: 'Bern' }, cost: 3, remark: 'x' },
};

const filters: readonly (readonly [where: object, isPassed: boolean])[] = [
  [{ state: 'open' }, true],
  [{ state: 'done' }, false],
  [{ number: { gte: 7, lt: 8 } }, true],
  [{ number: { gt: 7 } }, false],
  [{ number: { in: [1, 7] } }, true],
  [{ note: { like: '%100\\%%' } }, true],
  [{ note: { like: 'käse%' } }, false],
  [{ note: { ilike: 'käse%' } }, true],
  [{ state: { eqi: 'OPEN' } }, true],
  [{ tags: 'b' }, true],
  [{ tags: { ne: 'b' } }, false],
  [{ dueAt: '2030-01-01T09:00:00Z' }, true],
  [{ 'customer.city': 'Bern' }, true],
  [{ 'customer.city': { null: true } }, false],
  [{ or: [{ state: 'done' }, { number: 7 }] }, true],
  [{ not: { or: [{ state: 'done' }, { number: 7 }] } }, false],
  [{ createdAt: { gt: '2020-01-01' }, id: { null: false } }, true],
  [{}, true],
];

const refused: readonly (readonly [title: string, members: object, pointer: string, message: RegExp])[] = [
  ['an unknown member', { where: { price: 3 } }, '/where/price', /unknown field "price".*events of orders/],
  ['a value of another type', { where: { number: 'x' } }, '/where/number', /takes an integer/],
  ['a time relative to the present', { where: { createdAt: { lt: 'now' } } }, '/where', /judged once/],
  ['an unknown operator', { where: { number: { near: 3 } } }, '/where/number/near', /unknown operator/],
  ['a member that is hidden from its author', { where: { cost: 3 } }, '/where/cost', /unknown field "cost"/],
  [
    'a member that some documents hide',
    { where: { remark: 'x' } },
    '/where/remark',
    /unknown field "remark"/,
  ],
  [
    'events of no collection',
    { events: ['invoice.paid'], where: { state: 'open' } },
    '/events/0',
    /events of a collection/,
  ],
  [
    'events of a collection that its author may not read',
    { events: ['audits.*'], where: { finding: 'x' } },
    '/events/0',
    /events of a collection/,
  ],
  [
    'too many comparisons',
    { where: { or: Array.from({ length: 33 }, (_, number) => ({ number })) } },
    '/where',
    /at most 32/,
  ],
  ['a filter that is too long', { where: { state: 'x'.repeat(8192) } }, '/where', /at most 8192 characters/],
  [
    'patterns that are too long together',
    { where: { or: [{ state: { like: 'x'.repeat(64) } }, { state: { like: 'x'.repeat(65) } }] } },
    '/where',
    /at most 128 characters together, not 129/,
  ],
];

describeOnEachStore('filters on content', async (engine) => {
  const program = await startServer({ config, engine, env: { COMITY_EGRESS_ALLOW: '127.0.0.0/8' } });
  const client = openClient(program.port);
  after(async () => {
    client.close();
    await program.stop();
  });
  const ada = await register(client, 'ada@shop.example', password);
  await client.ask('PATCH', `users/${ada.userId}`, {
    as: adminKey,
    json: { scopes: ['read', 'write', 'webhooks'] },
    expect: 200,
  });
  const { token } = (
    await client.ask('POST', 'auth/login', { json: { email: 'ada@shop.example', password }, expect: 200 })
  ).json();
  const as = String(token);
  const make = async (members: object, who = as) =>
    (
      await client.ask('POST', 'endpoints', {
        as: who,
        json: { url, events: ['orders.*'], ...members },
        expect: 201,
      })
    ).json();
  const delivered = async (count: number, query: string) =>
    eventually(async () => {
      const found = (await program.list(`/api/v1/deliveries?${query}&limit=1000`)) as readonly Delivery[];
      return found.length >= count ? found : undefined;
    }, `fewer deliveries than ${count}`);

  test('a delivery is made where the resource passes, by every operator of lists', async () => {
    const made = await Promise.all(filters.map(([where]) => make({ where })));
    const all = await make({});
    await client.ask('POST', 'orders', { as: adminKey, json: order, expect: 201 });
    const found = await delivered(1, `endpointId=${all.id}`);
    const event = found[0]?.eventId;
    const got = new Set((await delivered(1, `eventId=${event}`)).map(({ endpointId }) => endpointId));
    for (const [index, [where, isPassed]] of filters.entries())
      assert.equal(got.has(String(made[index]?.id)), isPassed, JSON.stringify(where));
    // An update is judged as it left the resource.
    const [{ id } = { id: '' }] = (await program.list('/api/v1/orders')) as readonly { id: string }[];
    await client.ask('PATCH', `orders/${id}`, { as, json: { state: 'done' }, expect: 200 });
    const updates = await delivered(2, `endpointId=${all.id}`);
    const update = updates.find(({ eventType }) => eventType === 'orders.updated')?.eventId;
    const later = new Set((await delivered(1, `eventId=${update}`)).map(({ endpointId }) => endpointId));
    assert.deepEqual([later.has(String(made[0]?.id)), later.has(String(made[1]?.id))], [false, true]);
  });

  for (const [title, members, pointer, message] of refused) {
    test(`refuses ${title}`, async () => {
      const json = { url, events: ['orders.*'], ...members };
      const answer = await client.ask('POST', 'endpoints', { as, json, expect: 422 });
      const [error] = answer.json().errors as readonly { pointer: string; message: string }[];
      assert.equal(error?.pointer, pointer, answer.body);
      assert.match(error?.message ?? '', message);
    });
  }

  test('the rights of the owner decide what its endpoint may filter by, whoever sets the filter', async () => {
    const own = await make({});
    const change = (json: object, who: string, expect: number) =>
      client.ask('PATCH', `endpoints/${own.id}`, { as: who, json, expect });
    await change({ where: { cost: { gt: 2 } } }, adminKey, 422);
    await change({ where: { state: 'open' } }, adminKey, 200);
    // What an administrator's endpoint filters by, no lesser credential sets.
    const theirs = await make({ where: { cost: { gt: 2 } } }, adminKey);
    const key = (
      await client.ask('POST', 'keys', {
        as: adminKey,
        json: { name: 'k', kind: 'secret', scopes: ['read', 'webhooks'] },
        expect: 201,
      })
    ).json();
    const answer = await client.ask('PATCH', `endpoints/${theirs.id}`, {
      as: String(key.key),
      json: { where: { cost: { gt: 5 } } },
    });
    assert.ok(answer.status === 422 || answer.status === 404, answer.body);
    await client.ask('POST', 'orders', {
      as: adminKey,
      json: { number: 8, state: 'open', cost: 3 },
      expect: 201,
    });
    assert.equal((await delivered(1, `endpointId=${theirs.id}`)).length, 1);
  });

  test('a filter is merged by PATCH, replaced by a JSON Patch, and removed by null', async () => {
    const { id } = await make({ where: { state: 'open' } });
    const merged = await client.ask('PATCH', `endpoints/${id}`, {
      as,
      json: { where: { number: 3 } },
      expect: 200,
    });
    assert.deepEqual(merged.json().where, { state: 'open', number: 3 });
    const patch = [{ op: 'replace', path: '/where', value: { number: { gt: 3 } } }];
    const headers = { 'Content-Type': 'application/json-patch+json' };
    const replaced = await client.ask('PATCH', `endpoints/${id}`, {
      as,
      headers,
      body: JSON.stringify(patch),
      expect: 200,
    });
    assert.deepEqual(replaced.json().where, { number: { gt: 3 } });
    const removed = await client.ask('PATCH', `endpoints/${id}`, { as, json: { where: null }, expect: 200 });
    assert.equal('where' in removed.json(), false);
  });
});
