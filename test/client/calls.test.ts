/** The calls on collections against the running shop: what they send, and what they make of the answer. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type desk from '../../examples/help-desk/comity.config.ts';
import { ComityError, ConflictError, createClient } from '../../src/client/index.ts';
import { adminKey } from '../harness/exchange.ts';
import { repositoryRoot, serverOfFile, startServer } from '../harness/running-server.ts';
import { clientOf } from './client-of.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const program = await serverOfFile();
const proxy = await startFaultyProxy(() => program.port, { after });
const client = clientOf(proxy.baseUrl);
const { id: categoryId } = await client.categories.create({ name: 'Kitchen' });

const product = (name: string, price = 3) => client.products.create({ name, price, categoryId });

describe('reading', () => {
  it('returns a document with its tag, and a second read costs a 304', async () => {
    const cup = await product('Cup');
    assert.match(cup.etag ?? '', /^"\d+"$/);
    const [one, other] = [await client.products.get(cup.id), await client.products.get(cup.id)];
    assert.deepEqual(other, one);
    assert.notEqual(other, one);
    assert.match(String(proxy.passed.at(-1)?.headers['if-none-match']), /^"\d+/);
  });

  it('lists members and related documents that were asked for', async () => {
    const page = await client.products.list({
      filter: { name: 'Cup', price: { gte: 1, lt: 5 }, 'categoryId.name': 'Kitchen' },
      sort: ['-price', 'name'],
      fields: ['name'],
      expand: ['categoryId'],
    });
    assert.deepEqual(Object.keys(page.items[0] ?? {}).sort(), ['etag', 'name']);
    assert.equal(page.included.categories?.[categoryId]?.name, 'Kitchen');
    const one = await client.products.list({ q: 'cup', limit: 1 });
    const whole = await client.products.get(one.items[0]?.id ?? '', { expand: ['categoryId'] });
    assert.equal(whole.included.categories?.[categoryId]?.id, categoryId);
    assert.equal(whole.etag, one.items[0]?.etag);
  });

  it('reads every document, page by page', async () => {
    for (let count = 0; count < 7; count += 1) await product(`Plate ${count}`, 100 + count);
    const seen: string[] = [];
    for await (const { name } of client.products.all({
      filter: { price: { gte: 100 } },
      sort: ['price'],
      limit: 3,
      fields: ['name'],
    }))
      seen.push(name);
    assert.deepEqual(
      seen,
      [0, 1, 2, 3, 4, 5, 6].map((count) => `Plate ${count}`),
    );
  });

  it('finds no document as an error with its code', async () => {
    const error = await client.products.get('missing').catch((caught: unknown) => caught);
    assert.ok(client.isError(error));
    assert.deepEqual([error.code, error.status], ['not_found', 404]);
  });

  it('encodes ids, and refuses those that fetch would take for a path', async () => {
    await assert.rejects(client.articles.get('../keys/1'), { code: 'not_found' });
    assert.equal(proxy.passed.at(-1)?.url, '/api/v1/articles/..%2Fkeys%2F1');
    const sent = proxy.passed.length;
    for (const id of ['', '.', '..']) {
      await assert.rejects(client.articles.get(id), TypeError);
      await assert.rejects(client.articles.delete(id), TypeError);
    }
    assert.equal(proxy.passed.length, sent);
  });
});

describe('QUERY', () => {
  const either = { filter: { or: [{ name: 'Cup' }, { name: 'Nothing' }] }, fields: ['name'] } as const;

  it('is sent where a URL cannot say the query, and its Location afterwards, which answers 304', async () => {
    const sent = proxy.count('QUERY');
    const pages = [];
    for (let count = 0; count < 3; count += 1) pages.push(await client.products.list(either));
    assert.equal(proxy.count('QUERY'), sent + 1);
    assert.match(proxy.passed.at(-1)?.url ?? '', /^\/api\/v1\/queries\//);
    assert.notEqual(proxy.passed.at(-1)?.headers['if-none-match'], undefined);
    assert.equal(pages[0]?.items[0]?.name, 'Cup');
    assert.deepEqual(pages[2], pages[0]);
  });

  it('aggregates', async () => {
    const { items } = await client.products.query({
      filter: { price: { gte: 100 } },
      aggregate: { count: true, sum: ['price'] },
    });
    assert.deepEqual(items, [{ count: 7, sum_price: 721 }]);
  });

  it('is a GET where a proxy refuses the method, from then on, if a URL can say the query', async () => {
    const refused = clientOf(proxy.baseUrl);
    proxy.fault = ({ method }) => (method === 'QUERY' ? { status: 501 } : undefined);
    const sent = proxy.count('QUERY');
    for (let count = 0; count < 2; count += 1)
      assert.equal((await refused.products.query({ filter: { name: 'Cup' } })).items[0]?.name, 'Cup');
    assert.equal(proxy.count('QUERY'), sent + 1);
    await assert.rejects(refused.products.query(either), { code: 'method_not_allowed' });
    proxy.fault = () => undefined;
  });
});

describe('writing', () => {
  it('updates the version that was read, and merges what others changed of the rest', async () => {
    const cup = await product('Mug');
    const seen = (await client.products.list({ filter: { name: 'Mug' } })).items[0];
    assert.ok(seen !== undefined);
    await client.products.update(cup.id, { price: 4 });
    const merged = await client.products.update(seen, { name: 'Beaker' });
    assert.deepEqual([merged.name, merged.price], ['Beaker', 4]);
    const further = await client.products.update(merged, { stock: 1 });
    assert.deepEqual([further.name, further.price, further.stock], ['Beaker', 4, 1]);
  });

  it('says which member both changed, with the three versions', async () => {
    const cup = await product('Bowl');
    await client.products.update(cup, { price: 8, stock: 2 });
    const error = await client.products
      .update(cup, { price: 9, name: 'Dish' })
      .catch((caught: unknown) => caught);
    assert.ok(error instanceof ConflictError && error instanceof ComityError);
    const { members, base, mine, theirs } = error as ConflictError<typeof cup>;
    assert.deepEqual(members, ['price']);
    assert.deepEqual([base.price, mine, theirs.price], [3, { price: 9, name: 'Dish' }, 8]);
    assert.equal((await client.products.get(cup.id)).name, 'Bowl');
    assert.equal((await client.products.update(theirs, { price: 9 })).price, 9);
  });

  it('writes the same as others did without a conflict', async () => {
    const cup = await product('Jug');
    await client.products.update(cup.id, { price: 5 });
    assert.equal((await client.products.update(cup, { price: 5 })).price, 5);
  });

  it('reads the tag that a collection demands if it is given an id', async () => {
    const made = await client.articles.create({ title: 'One' });
    assert.equal((await client.articles.update(made.id, { title: 'Two' })).title, 'Two');
    assert.equal((await client.articles.replace(made.id, { title: 'Three' })).title, 'Three');
    await client.articles.delete(made.id);
    await assert.rejects(client.articles.get(made.id), { code: 'not_found' });
  });

  it('replaces and deletes what was read only if nobody changed it', async () => {
    const cup = await product('Pan');
    await client.products.update(cup.id, { price: 5 });
    await assert.rejects(client.products.replace(cup, { name: 'Pot', price: 1, categoryId }), ConflictError);
    await assert.rejects(client.products.delete(cup), ConflictError);
    const now = await client.products.get(cup.id);
    const replaced = await client.products.replace(now, { ...now, name: 'Pot' });
    assert.equal(replaced.name, 'Pot');
    await client.products.delete(await client.products.get(cup.id));
    await assert.rejects(client.products.delete(cup.id), { code: 'not_found' });
  });

  it('carries the faults of the content', async () => {
    const error = await product('').catch((caught: unknown) => caught);
    assert.ok(client.isError(error) && error.code === 'validation_failed');
    assert.deepEqual(error.errors, [{ pointer: '/name', message: 'must not be empty' }]);
  });
});

it('posts events, lists them, and reads the feed', async () => {
  const sold = { id: categoryId, name: 'Kettle' };
  const posted = await client.events.post('stock.ran-out', sold);
  assert.deepEqual(posted.data.object, sold);
  const { items } = await client.events.list({ filter: { type: 'stock.ran-out' } });
  assert.equal(items[0]?.id, posted.id);
  const feed = await client.events.feed({ after: '', types: ['stock.ran-out'] });
  assert.deepEqual(
    feed.items.map((event) => event.type),
    ['stock.ran-out'],
  );
});

it('sends any other request with everything that calls have', async () => {
  const settings = (await client.request('GET', '/meta')) as { readonly version?: string };
  assert.equal(typeof settings, 'object');
  await assert.rejects(client.request('GET', '/nowhere'), { code: 'not_found' });
});

it('sends keys in Authorization', () => {
  for (const { headers } of proxy.passed) {
    assert.equal(headers.authorization, `ApiKey ${adminKey}`);
    assert.equal(headers['x-api-key'], undefined);
  }
});

it('calls actions by their routes, and knows the codes that they refuse with', async (t) => {
  const config = `${repositoryRoot}/examples/help-desk/comity.config.ts`;
  const helpDesk = await startServer({ config });
  t.after(() => helpDesk.stop());
  const made = createClient<typeof desk>({
    baseUrl: `${helpDesk.url}/api/v1`,
    key: adminKey,
    routes: { actions: { desk: 'GET /desk', client: 'GET /desk/{file}' } },
  });
  const contact = 'ada@lighthouse.example';
  const [one, other] = [
    await made.tickets.create({ title: 'One', contact }),
    await made.tickets.create({ title: 'Other', contact }),
  ];
  await made.comments.create({ ticketId: one.id, text: 'So it is.' });
  assert.deepEqual(await made.tickets.actions.merge(one.id, { into: other.id }), { moved: 1 });
  const error = await made.tickets.actions
    .merge(other.id, { into: other.id })
    .catch((caught: unknown) => caught);
  assert.ok(made.isError(error) && error.code === 'same_ticket');
  assert.match(await made.actions.desk(), /<!doctype html>/i);
});
