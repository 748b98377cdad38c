/**
 * Several principals in one shop (§4.7.1, §5.1): what is another's cannot be seen, changed, counted,
 * searched, queried, streamed or replayed, by whatever door.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import { readEvents } from './event-reader.ts';
import { openShop, type Shop } from './shop-of-many.ts';

let shop: Shop;
const notes = '/api/v1/notes';
const articles = '/api/v1/articles';
const secret = 'alice-secret';

before(async () => {
  shop = await openShop();
});

after(() => shop.stop());

const ids = (answer: Answer) => (answer.json().items as { id: string }[]).map(({ id }) => id);
const any = { 'If-Match': '*' };

async function noteOf(name: string, text = secret): Promise<string> {
  const answer = await shop.as(name, 'POST', notes, { json: { text } });
  assert.equal(answer.status, 201, answer.body);
  return String(answer.headers.location);
}

async function articleOf(name: string, id: string, published: boolean | undefined): Promise<string> {
  const json = { title: `${secret} ${id}`, ...(published === undefined ? {} : { published }) };
  const answer = await shop.as(name, 'PUT', `${articles}/${id}`, { json });
  assert.equal(answer.status, 201, answer.body);
  return `${articles}/${id}`;
}

test('a note is its author’s: to another principal it is 404 by every method, to the anonymous caller 401', async () => {
  const path = await noteOf('alice');
  assert.equal((await shop.as('alice', 'GET', path)).status, 200);
  for (const [method, options] of [
    ['GET', {}],
    ['HEAD', {}],
    ['PUT', { json: { text: 'taken over' } }],
    ['PATCH', { json: { text: 'taken over' } }],
    ['DELETE', {}],
    ['DELETE', { headers: any }],
  ] as const) {
    const another = await shop.as('bob', method, path, options);
    assert.equal(another.status, 404, method);
    assert.equal((await shop.as(undefined, method, path, options)).status, 401, method);
  }
  const absent = await shop.as('bob', 'GET', `${notes}/none`);
  const hidden = await shop.as('bob', 'GET', path);
  assert.equal(hidden.body, absent.body, 'a hidden note answers as one that is not there');
  assert.equal(hidden.headers['comity-trace']?.includes('visible'), true);
  assert.equal((await shop.as('alice', 'GET', path)).json().text, secret);
  assert.equal((await shop.as('root', 'GET', path)).status, 200);
});

test('conditions on another’s note tell nothing', async () => {
  const path = await noteOf('alice');
  const etag = String((await shop.as('alice', 'GET', path)).headers.etag);
  assert.equal((await shop.as('bob', 'GET', path, { headers: { 'If-None-Match': etag } })).status, 404);
  const stale = await shop.as('bob', 'PATCH', path, { json: { text: 'x' }, headers: { 'If-Match': '"0"' } });
  assert.equal(stale.status, 404);
  assert.equal(stale.headers.etag, undefined);
});

test('another’s published article is read and not changed: 403; the anonymous caller gets 401', async () => {
  const path = await articleOf('alice', 'published', true);
  assert.equal((await shop.as('bob', 'GET', path)).status, 200);
  assert.equal((await shop.as(undefined, 'GET', path)).status, 200);
  for (const [method, options] of [
    ['PUT', { json: { title: 'x' }, headers: any }],
    ['PATCH', { json: { title: 'x' }, headers: any }],
    ['DELETE', { headers: any }],
    ['DELETE', {}],
  ] as const) {
    assert.equal((await shop.as('bob', method, path, options)).status, 403, method);
    assert.equal((await shop.as(undefined, method, path, options)).status, 401, method);
  }
  const refused = await shop.as('bob', 'DELETE', path, { headers: any });
  assert.equal(refused.headers['www-authenticate'], undefined);
  assert.equal(refused.json().code, 'forbidden');
  assert.equal(
    (await shop.as('alice', 'PATCH', path, { json: { title: 'mine' }, headers: any })).status,
    200,
  );
  assert.equal((await shop.as('root', 'PATCH', path, { json: { title: 'root' }, headers: any })).status, 200);
});

test('another’s unpublished article is 404, also where PUT would create', async () => {
  for (const [id, published] of [
    ['draft', false],
    ['unsaid', undefined],
  ] as const) {
    const path = await articleOf('alice', id, published);
    for (const method of ['GET', 'HEAD', 'PATCH', 'PUT', 'DELETE']) {
      const json = method === 'PATCH' || method === 'PUT' ? { title: 'x' } : undefined;
      const answer = await shop.as('bob', method, path, {
        headers: any,
        ...(json === undefined ? {} : { json }),
      });
      assert.equal(answer.status, 404, `${method} ${id}`);
    }
    assert.equal((await shop.as(undefined, 'GET', path)).status, 404);
    assert.equal((await shop.as('alice', 'GET', path)).status, 200);
  }
});

test('the caller that creates by PUT is the owner, also where it deletes the article and makes it anew', async () => {
  const path = await articleOf('bob', 'handed-over', false);
  assert.equal((await shop.as('bob', 'DELETE', path, { headers: any })).status, 204);
  assert.equal((await shop.as('alice', 'PUT', path, { json: { title: 'A' } })).status, 404);
  assert.equal((await shop.as('bob', 'PUT', path, { json: { title: 'B' } })).status, 201);
  assert.equal((await shop.as('alice', 'GET', path)).status, 404);
  assert.equal((await shop.as('bob', 'GET', path)).status, 200);
});

test('bulk-delete passes over what is another’s and does not count it', async () => {
  const [mine, theirs] = [await noteOf('bob', 'b'), await noteOf('alice')];
  const idOf = (path: string) => path.slice(notes.length + 1);
  const json = { ids: [idOf(mine), idOf(theirs), 'none'] };
  const answer = await shop.as('bob', 'POST', `${notes}/bulk-delete`, { json });
  assert.deepEqual(answer.json(), { deleted: 1 });
  assert.equal((await shop.as('alice', 'GET', theirs)).status, 200);
  await articleOf('alice', 'in-bulk', true);
  const published = await shop.as('bob', 'POST', `${articles}/bulk-delete`, { json: { ids: ['in-bulk'] } });
  assert.deepEqual(published.json(), { deleted: 0 }, 'seen and not deletable');
});

test('lists, counts, searches and filters show each principal its own', async () => {
  const mine = await noteOf('carol', 'carol alone');
  await noteOf('alice');
  const headers = { Prefer: 'count=exact' };
  const list = await shop.as('carol', 'GET', `${notes}?limit=1000`, { headers });
  assert.deepEqual(ids(list), [mine.slice(notes.length + 1)]);
  assert.equal(list.headers['x-total-count'], '1');
  for (const query of [`q=${secret}`, `text=${secret}`, 'text[like]=alice%25', 'text[ne]=x&q=alice']) {
    const answer = await shop.as('carol', 'GET', `${notes}?${query}`, { headers });
    assert.deepEqual(ids(answer), [], query);
    assert.equal(answer.headers['x-total-count'], '0', query);
  }
  assert.equal((await shop.as(undefined, 'GET', notes)).status, 401);
});

test('a list tag of one principal is no 304 for another, and a cursor of one shows another nothing new', async () => {
  for (let index = 0; index < 3; index += 1) await noteOf('dave', `d${index}`);
  const first = await shop.as('dave', 'GET', `${notes}?limit=1`);
  const etag = String(first.headers.etag);
  assert.equal(
    (await shop.as('dave', 'GET', `${notes}?limit=1`, { headers: { 'If-None-Match': etag } })).status,
    304,
  );
  assert.equal(
    (await shop.as('erin', 'GET', `${notes}?limit=1`, { headers: { 'If-None-Match': etag } })).status,
    200,
  );
  const cursor = first.json().nextCursor;
  assert.deepEqual(ids(await shop.as('erin', 'GET', `${notes}?limit=1&cursor=${cursor}`)), []);
});

test('QUERY in each media type shows each principal its own', async () => {
  await noteOf('alice');
  for (const [type, body] of [
    ['application/json', '{"filter":{"or":[{"text":{"ne":"x"}},{"text":{"like":"%"}}]}}'],
    ['application/x-www-form-urlencoded', `q=${secret}`],
    ['application/sql', "SELECT * FROM notes WHERE text LIKE '%' OR NOT text = 'x'"],
  ] as const) {
    const options = { headers: { 'Content-Type': type }, body };
    assert.deepEqual(ids(await shop.as('frank', 'QUERY', notes, options)), [], type);
    assert.ok(ids(await shop.as('alice', 'QUERY', notes, options)).length > 0, type);
    assert.equal((await shop.as(undefined, 'QUERY', notes, options)).status, 401);
  }
});

test('a stored query and its kept result show whoever uses them only their own', async () => {
  await noteOf('alice');
  const asked = await shop.as('alice', 'QUERY', notes, { json: { q: secret } });
  assert.ok(asked.body.includes(secret));
  const location = String(asked.headers.location);
  const result = String(asked.headers['content-location']);
  assert.equal((await shop.as('alice', 'GET', result)).body, asked.body);
  const repeated = await shop.as('bob', 'GET', location);
  assert.equal(repeated.status, 200);
  assert.ok(!repeated.body.includes(secret));
  const kept = await shop.as('bob', 'GET', result);
  assert.ok(!kept.body.includes(secret), kept.body);
  assert.equal(kept.status, 410);
  for (const path of [location, result]) assert.equal((await shop.as(undefined, 'GET', path)).status, 401);
});

test('events of another’s notes and drafts are in no list, no read and no stream', async () => {
  const stream = await readEvents(shop.port, { bearer: 'grace' });
  await stream.until(({ comments }) => comments.length > 0);
  const note = await noteOf('alice');
  await articleOf('alice', 'for-events', false);
  await shop.as('alice', 'DELETE', note);
  const own = await noteOf('grace', 'grace alone');
  await stream.until(({ events }) => events.some(({ data }) => data.includes('grace alone')));
  stream.close();
  assert.ok(stream.events.every(({ data }) => !data.includes(secret)));
  const list = await shop.as('grace', 'GET', '/api/v1/events?limit=1000&type=notes.created');
  assert.deepEqual(
    (list.json().items as { data: { object: { id: string } } }[]).map(({ data }) => data.object.id),
    [own.slice(notes.length + 1)],
  );
  const hers = await shop.as('alice', 'GET', `/api/v1/events?data.object.id=${note.slice(notes.length + 1)}`);
  const [created, deleted] = ids(hers);
  assert.ok(created !== undefined && deleted !== undefined);
  for (const id of [created, deleted]) {
    assert.equal((await shop.as('alice', 'GET', `/api/v1/events/${id}`)).status, 200);
    assert.equal((await shop.as('grace', 'GET', `/api/v1/events/${id}`)).status, 404);
    assert.equal((await shop.as(undefined, 'GET', `/api/v1/events/${id}`)).status, 404);
  }
});

test('an operation and its result are for who asked, and for administrators', async () => {
  const headers = { Prefer: 'respond-async' };
  const accepted = await shop.as('alice', 'POST', notes, { json: { text: secret }, headers });
  assert.equal(accepted.status, 202);
  const location = String(accepted.headers.location);
  let mine = await shop.as('alice', 'GET', location);
  while (mine.status === 200) mine = await shop.as('alice', 'GET', location);
  assert.equal(mine.status, 303);
  const made = String(mine.headers.location);
  assert.equal(
    (await shop.as('alice', 'GET', made)).status,
    200,
    'what an operation makes belongs to who asked',
  );
  for (const path of [location, `${location}/result`, made]) {
    assert.equal((await shop.as('bob', 'GET', path)).status, 404, path);
    assert.equal((await shop.as(undefined, 'GET', path)).status, 401, path);
  }
  assert.equal((await shop.as('root', 'GET', location)).status, 303);
});

test('an Idempotency-Key belongs to its principal', async () => {
  const post = (name: string, text: string) =>
    shop.as(name, 'POST', notes, { json: { text }, headers: { 'Idempotency-Key': '"shared-1"' } });
  const hers = await post('alice', secret);
  const his = await post('bob', 'his own');
  assert.equal(his.status, 201);
  assert.notEqual(his.headers.location, hers.headers.location);
  assert.equal((await post('alice', secret)).body, hers.body);
  assert.equal((await post('bob', secret)).status, 422);
});

test('an Idempotency-Key is forgotten after its time', async () => {
  const post = (text: string) =>
    shop.as('alice', 'POST', notes, { json: { text }, headers: { 'Idempotency-Key': '"expires"' } });
  const first = await post('one');
  shop.moveClock(3590);
  assert.equal((await post('one')).headers.location, first.headers.location);
  shop.moveClock(20);
  const later = await post('two');
  assert.equal(later.status, 201);
  assert.notEqual(later.headers.location, first.headers.location);
  assert.equal((await post('two')).headers.location, later.headers.location);
});

test('a credential that may only read is 403 to write, and 404 still hides what it may not see', async () => {
  assert.equal((await shop.as('reader', 'POST', notes, { json: { text: 'x' } })).status, 403);
  assert.equal((await shop.as('reader', 'DELETE', `${articles}/any`, { headers: any })).status, 403);
  assert.equal((await shop.as('reader', 'GET', '/api/v1/products')).status, 200);
  assert.equal((await shop.as('reader', 'GET', await noteOf('alice'))).status, 404);
});
