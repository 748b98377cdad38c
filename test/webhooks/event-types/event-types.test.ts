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

  test('is paged as any list is, by cursor in both directions and by number', async () => {
    const all = (await list('root')).items.map(({ type }: { type: string }) => type);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await room.ask('root', 'GET', `event-types?limit=5${cursor}`);
      seen.push(...page.json.items.map(({ type }: { type: string }) => type));
      const { nextCursor } = page.json;
      assert.equal(String(page.field('Link')).includes('rel="next"'), nextCursor !== null);
      if (nextCursor === null) break;
      cursor = `&cursor=${nextCursor}`;
    }
    assert.deepEqual(seen, all);
    const second = await room.ask('root', 'GET', 'event-types?per_page=5&page=2');
    assert.deepEqual(
      second.json.items.map(({ type }: { type: string }) => type),
      all.slice(5, 10),
    );
    const previous = /<([^>]*)>; rel="prev"/.exec(String(second.field('Link')))?.[1] ?? '';
    const first = await room.ask('root', 'GET', previous.slice('/api/v1/'.length));
    assert.deepEqual(
      first.json.items.map(({ type }: { type: string }) => type),
      all.slice(0, 5),
    );
    assert.notEqual(first.field('ETag'), second.field('ETag'));
    const counted = await room.ask('root', 'GET', 'event-types?limit=1', {
      headers: { Prefer: 'count=exact' },
    });
    assert.equal(counted.field('X-Total-Count'), String(all.length));
  });

  test('refuses a limit out of range, an altered cursor and what it has no parameter for', async () => {
    const refused = ['limit=0', 'limit=1001', 'limit=x', 'limit=1&limit=2', 'page=0', 'sort=type', 'type=x'];
    const cursors = ['cursor=', 'cursor=x', 'cursor=after.none', 'cursor=after.secrets.created'];
    for (const query of [...refused, ...cursors]) {
      const { status, json } = await room.ask('ada', 'GET', `event-types?${query}`);
      assert.deepEqual([status, json.error?.code ?? json.code], [400, 'query_parameter_invalid'], query);
    }
    assert.equal((await room.ask('ada', 'GET', 'event-types?limit=1000')).status, 200);
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
