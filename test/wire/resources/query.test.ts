/**
 * QUERY (§4.9; RFC 10008): its three media types, its refusals, stored queries and results, conditions and the cache.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const path = '/api/v1/products';

const program = await serverOfFile();
const categoryId = String(
  (await program.send('POST', '/api/v1/categories', { json: { name: 'C' } })).json().id,
);
for (let price = 1; price <= 30; price += 1) {
  const tags = price % 2 === 0 ? ['even'] : ['odd'];
  const json = { name: `Product ${price}`, price, categoryId, tags, stock: 30 - price };
  assert.equal((await program.send('POST', path, { json })).status, 201);
}

const query = (type: string, body: string, headers: Record<string, string> = {}, target = path) =>
  program.send('QUERY', target, { headers: { 'Content-Type': type, ...headers }, body, anonymous: true });
const json = (value: unknown, headers: Record<string, string> = {}) =>
  query('application/json', JSON.stringify(value), headers);

function prices(answer: { json(): Record<string, unknown> }): number[] {
  return (answer.json().items as { price: number }[]).map(({ price }) => price);
}

test('the three media types and GET ask the same', async () => {
  const wanted = [30, 28, 26];
  const get = await program.send('GET', `${path}?price[gte]=10&tags=even&sort=-price&limit=3`);
  assert.deepEqual(prices(get), wanted);
  const form = await query(
    'application/x-www-form-urlencoded',
    'price[gte]=10&tags=even&sort=-price&limit=3',
  );
  assert.deepEqual(prices(form), wanted);
  const filter = { price: { gte: 10 }, tags: 'even' };
  assert.deepEqual(prices(await json({ filter, sort: ['-price'], limit: 3 })), wanted);
  const sql = "SELECT * FROM products WHERE price >= 10 AND 'even' = ANY(tags) ORDER BY price DESC LIMIT 3";
  assert.deepEqual(prices(await query('application/sql', sql)), wanted);
});

test('combines and, or, not, in and null', async () => {
  const filter = {
    or: [{ price: { in: [3, 5] } }, { and: [{ price: { gt: 28 } }, { not: { price: 29 } }] }],
    sku: null,
  };
  assert.deepEqual(prices(await json({ filter, sort: ['price'] })), [3, 5, 30]);
});

test('selects fields and pages by cursor', async () => {
  const first = await json({ sort: ['price'], limit: 12, fields: ['price'] });
  const items = first.json().items as Record<string, unknown>[];
  assert.deepEqual(Object.keys(items[0] ?? {}), ['price']);
  const cursor = first.json().nextCursor;
  const second = await json({ sort: ['price'], limit: 12, fields: ['price'], cursor });
  assert.deepEqual(prices(second).slice(0, 2), [13, 14]);
  const link = /<([^>]+)>; rel="?next"?/.exec(String(first.headers.link));
  assert.ok(link?.[1], String(first.headers.link));
  assert.deepEqual(prices(await program.send('GET', link[1])), prices(second));
});

test('tells 400, 415, 422 and 406 apart', async () => {
  const noType = await program.send('QUERY', path, { body: '{}' });
  assert.equal(noType.status, 400);
  assert.equal((await query('application/json', '{"filter":')).status, 400);
  assert.equal((await query('application/sql', 'SELEKT * FROM products')).status, 400);
  const foreign = await query('application/xml', '<q/>');
  assert.equal(foreign.status, 415);
  assert.equal(
    foreign.headers['accept-query'],
    'application/x-www-form-urlencoded, application/json, application/sql',
  );
  assert.equal((await json({ filter: { colour: 'red' } })).status, 422);
  assert.equal((await json({ filter: { price: { near: 3 } } })).status, 422);
  assert.equal((await json({ filter: { price: 'cheap' } })).status, 422);
  assert.equal((await query('application/sql', 'SELECT * FROM notes')).status, 422);
  assert.equal((await query('application/sql', 'DELETE FROM products')).status, 422);
  assert.equal((await query('application/sql', 'SELECT * FROM products; SELECT 1')).status, 422);
  assert.equal((await query('application/x-www-form-urlencoded', 'colour=red')).status, 422);
  assert.equal((await json({}, { Accept: 'image/png' })).status, 406);
  assert.equal((await program.send('QUERY', '/api/v1/events/none', { json: {} })).status, 405);
});

test('an altered cursor is 400', async () => {
  const cursor = String((await json({ sort: ['price'], limit: 2 })).json().nextCursor);
  const altered = `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`;
  assert.equal((await json({ sort: ['price'], limit: 2, cursor: altered })).status, 400);
  assert.equal((await json({ sort: ['-price'], limit: 2, cursor })).status, 400, 'of another query');
  assert.equal((await program.send('GET', `${path}?limit=2&cursor=${altered}`)).status, 400);
});

test('Location repeats the query, Content-Location is this result while it is kept', async () => {
  const asked = { filter: { price: { gte: 25 } }, sort: ['price'] };
  const first = await json(asked);
  assert.equal(first.status, 200);
  const location = String(first.headers.location);
  assert.match(location, /^\/api\/v1\/queries\/[\w-]{22,}$/);
  assert.equal((await json(asked)).headers.location, location, 'the same query has the same URI');
  const repeated = await program.send('GET', location, { anonymous: true });
  assert.equal(repeated.body, first.body);
  const result = String(first.headers['content-location']);
  assert.equal((await program.send('GET', result, { anonymous: true })).body, first.body);
  await program.send('POST', path, { json: { name: 'New', price: 27.5, categoryId } });
  assert.ok(prices(await program.send('GET', location)).includes(27.5), 'Location runs the query again');
  const before = await program.send('GET', result, { anonymous: true });
  assert.equal(before.status, 200);
  assert.equal(before.body, first.body, 'Content-Location still has what was answered then');
  assert.equal(before.headers.link, first.headers.link);
  assert.match(String(before.headers.vary), /Prefer/);
  assert.equal(before.headers['comity-position'], undefined, 'the place of then is not kept');
  assert.equal((await program.send('GET', `${location}/results/1.x`)).status, 410);
  assert.equal((await program.send('GET', '/api/v1/queries/nothing')).status, 404);
});

test('a conditional QUERY is 304 until a write changes the collection, and never for another query', async () => {
  const asked = { filter: { price: { lte: 3 } } };
  const first = await json(asked);
  const etag = String(first.headers.etag);
  const unchanged = await json(asked, { 'If-None-Match': etag });
  assert.equal(unchanged.status, 304);
  // RFC 9110 §15.4.5: what a 200 would have had of these.
  for (const name of ['location', 'content-location', 'etag', 'cache-control', 'vary']) {
    assert.equal(unchanged.headers[name], first.headers[name], name);
  }
  assert.equal((await json({ filter: { price: { lte: 4 } } }, { 'If-None-Match': etag })).status, 200);
  const made = await program.send('POST', path, { json: { name: 'Cheap', price: 2, categoryId } });
  const changed = await json(asked, { 'If-None-Match': etag });
  assert.equal(changed.status, 200);
  assert.ok(changed.body.includes('Cheap'));
  await program.send('DELETE', String(made.headers.location));
  assert.ok(!(await json(asked)).body.includes('Cheap'), 'no stale result after a write');
});

test('a stored query shows whoever uses it only what they may see', async () => {
  const note = await program.send('POST', '/api/v1/notes', { json: { text: 'secret' } });
  assert.equal(note.status, 201);
  const mine = await program.send('QUERY', '/api/v1/notes', { json: {} });
  assert.ok(mine.body.includes('secret'));
  const location = String(mine.headers.location);
  assert.equal((await program.send('GET', location, { anonymous: true })).status, 401);
  assert.equal(
    (await program.send('GET', String(mine.headers['content-location']), { anonymous: true })).status,
    401,
  );
});
