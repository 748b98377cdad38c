/** The list of event types: where each comes from, who is told of it, and that it is one resource like any other. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import { collection } from '../../../src/config/define.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { walkEvents } from '../events/walked-events.ts';

const declaration = {
  collections: {
    products: collection({
      schema: Type.Object({ name: Type.String(), price: Type.Optional(Type.Number({ minimum: 1 })) }),
      access: { read: 'public' },
      softDelete: true,
    }),
    secrets: collection({ schema: Type.Object({ text: Type.String() }), access: { read: 'administrator' } }),
  },
  eventTypes: {
    'invoice.paid': {
      description: 'An invoice is paid.',
      schema: Type.Object({ id: Type.String(), amount: Type.Integer({ minimum: 100 }) }),
      examples: [{ id: 'inv_1', amount: 3950 }],
    },
    'invoice.sent': { schema: Type.Object({ id: Type.String({ format: 'uuid' }) }) },
    'shop.opened': {},
  },
} as const;

describe('/event-types', async () => {
  const room = walkEvents(await openEmbedded(), declaration);
  const list = async (who: string) => (await room.ask(who, 'GET', 'event-types')).json;

  test('lists the writes of collections, what is declared, and what the program says of endpoints', async () => {
    const { items, nextCursor } = await list('root');
    assert.equal(nextCursor, null);
    assert.deepEqual(
      items.map(({ type }: { type: string }) => type),
      [
        ...['products.created', 'products.updated', 'products.deleted'],
        ...['secrets.created', 'secrets.updated', 'secrets.deleted'],
        ...['invoice.paid', 'invoice.sent', 'shop.opened'],
        ...['endpoint.failing', 'endpoint.disabled', 'endpoint.test'],
      ],
    );
  });

  test('shows each with its schema and a whole event as its sample', async () => {
    const { items } = await list('root');
    const of = (type: string) => items.find((item: { type: string }) => item.type === type);
    const created = of('products.created');
    assert.deepEqual(created.schema.required, ['id', 'name', 'createdAt', 'updatedAt']);
    assert.equal(created.sample.object, 'event');
    assert.equal(created.sample.type, 'products.created');
    assert.deepEqual(Object.keys(created.sample.data.object), [
      'id',
      'name',
      'price',
      'createdAt',
      'updatedAt',
    ]);
    assert('deletedAt' in of('products.deleted').sample.data.object);
    assert.equal(of('invoice.paid').description, 'An invoice is paid.');
    assert.deepEqual(of('invoice.paid').sample.data.object, { id: 'inv_1', amount: 3950 });
    assert.deepEqual([of('shop.opened').schema, of('shop.opened').sample.data.object], [null, {}]);
  });

  test('leaves out the types of collections that the caller could never read', async () => {
    const types = async (who: string) => (await list(who)).items.map(({ type }: { type: string }) => type);
    const own = await types('ada');
    assert(own.includes('products.created') && own.includes('invoice.paid'));
    assert(!own.some((type: string) => type.startsWith('secrets.')));
    const { status } = await room.ask('ada', 'GET', 'event-types/secrets.created');
    assert.equal(status, 404);
    assert(!(await types('hook')).includes('products.created'), 'without the scope read nothing can be read');
  });

  test('is open to whoever bears webhooks', async () => {
    const statuses = [];
    for (const who of ['root', 'ada', 'hook', 'writer', undefined])
      statuses.push((await room.ask(who, 'GET', 'event-types')).status);
    assert.deepEqual(statuses, [200, 200, 200, 403, 401]);
  });

  test('reads one by its name, with an entity tag that repeats', async () => {
    const read = await room.ask('ada', 'GET', 'event-types/invoice.sent');
    assert.equal(read.json.type, 'invoice.sent');
    const headers = { 'If-None-Match': String(read.field('ETag')) };
    assert.equal((await room.ask('ada', 'GET', 'event-types/invoice.sent', { headers })).status, 304);
    assert.equal((await room.ask('ada', 'GET', 'event-types', { headers })).status, 200);
    assert.equal((await room.ask('ada', 'GET', 'event-types/none')).status, 404);
    assert.equal((await room.ask('ada', 'HEAD', 'event-types')).status, 200);
    assert.equal((await room.ask('ada', 'POST', 'event-types', { json: {} })).status, 405);
  });

  test('takes the sample of every type that may be posted as a posted event', async () => {
    const { items } = await list('root');
    let posted = 0;
    for (const { type, sample } of items) {
      if (type.startsWith('endpoint.')) continue;
      const json = { type, data: sample.data };
      const answered = await room.ask('root', 'POST', 'events', { json });
      assert.equal(answered.status, 202, `${type}: ${JSON.stringify(answered.json)}`);
      posted += 1;
    }
    assert.equal(posted, 9);
  });
});
