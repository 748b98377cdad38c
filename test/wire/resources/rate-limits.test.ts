/**
 * Rate limits as clients meet them (§7, §8): 429 with Retry-After, and what answers tell besides. The clock
 * stands still, so that the edge is where it is said to be.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import { startServer } from '../../harness/running-server.ts';
import { openShop, type Shop, type ShopOptions } from './shop-of-many.ts';

const products = '/api/v1/products';
const notes = '/api/v1/notes';
/** A quarter of a minute into a window of the limiter. */
const clockMs = Date.UTC(2026, 10, 21, 12, 0, 15);
const rateFields = ['ratelimit', 'ratelimit-policy', 'x-ratelimit-remaining'];

async function shopFor(context: TestContext, limits: ShopOptions['limits']): Promise<Shop> {
  const shop = await openShop({ clockMs, ...(limits === undefined ? {} : { limits }) });
  context.after(() => shop.stop());
  return shop;
}

const assertUncounted = ({ headers }: Answer) => {
  for (const name of rateFields) assert.equal(headers[name], undefined, name);
};

test('the n-th request is answered and the next is 429, with all that a client must know', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 3 });
  for (const left of [2, 1, 0]) {
    const answer = await shop.as(undefined, 'GET', products);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['ratelimit-policy'], '"reads";q=3;w=60');
    assert.equal(answer.headers.ratelimit, `"reads";r=${left};t=45`);
    assert.equal(answer.headers['x-ratelimit-remaining'], String(left));
    assert.equal(answer.headers['retry-after'], undefined);
  }
  const refused = await shop.as(undefined, 'GET', products);
  assert.equal(refused.status, 429);
  assert.deepEqual(refused.json(), { error: 'rate limited', code: 'rate_limited' });
  assert.equal(refused.headers['retry-after'], '45');
  assert.equal(refused.headers.ratelimit, '"reads";r=0;t=45');
  assert.equal(refused.headers['x-ratelimit-remaining'], '0');
  assert.equal(refused.headers['cache-control'], 'no-store');
  const problem = await shop.as(undefined, 'GET', products, {
    headers: { Accept: 'application/problem+json' },
  });
  assert.equal(problem.headers['content-type'], 'application/problem+json');
  assert.equal(problem.json().status, 429);
  assert.equal((await shop.as(undefined, 'HEAD', products)).status, 429);
  assert.match(String(refused.headers['comity-trace']), / rate_exceeded$/);
});

test('after the time that Retry-After named a request is answered again, and a second before it is not', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 3 });
  for (let sent = 0; sent < 3; sent += 1) await shop.as(undefined, 'GET', products);
  const seconds = Number((await shop.as(undefined, 'GET', products)).headers['retry-after']);
  shop.moveClock(seconds - 1);
  const early = await shop.as(undefined, 'GET', products);
  assert.equal(early.status, 429);
  assert.equal(early.headers['retry-after'], '1');
  shop.moveClock(1);
  assert.equal((await shop.as(undefined, 'GET', products)).status, 200);
  assert.equal((await shop.as(undefined, 'GET', products)).status, 429, 'one, not all of them again');
});

test('each principal has a limit of its own, the nameless share that of their address, the administrator key has none', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 2, rateLimitWrites: 2 });
  for (const name of ['alice', 'bob', undefined] as const) {
    const statuses: number[] = [];
    for (let sent = 0; sent < 3; sent += 1) statuses.push((await shop.as(name, 'GET', products)).status);
    assert.deepEqual(statuses, [200, 200, 429], `${name}`);
  }
  for (let sent = 0; sent < 5; sent += 1) {
    const answer = await shop.as('root', 'GET', products);
    assert.equal(answer.status, 200);
    assertUncounted(answer);
  }
});

test('writes have their own limit, and a refused one changes nothing', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 5, rateLimitWrites: 2 });
  const write = (text: string) => shop.as('alice', 'POST', notes, { json: { text } });
  const first = await write('one');
  assert.equal(first.headers['ratelimit-policy'], '"writes";q=2;w=60');
  assert.equal((await write('two')).status, 201);
  assert.equal((await write('three')).status, 429);
  assert.equal((await shop.as('alice', 'DELETE', String(first.headers.location))).status, 429);
  const kept = await shop.as('alice', 'GET', notes);
  assert.equal((kept.json().items as unknown[]).length, 2);
});

test('every answer after the count tells of it, whatever its status', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 100, rateLimitWrites: 100 });
  const made = await shop.as('alice', 'POST', notes, { json: { text: 'a' } });
  const path = String(made.headers.location);
  const tag = String((await shop.as('alice', 'GET', path)).headers.etag);
  for (const [status, answer] of [
    [304, await shop.as('alice', 'GET', path, { headers: { 'If-None-Match': tag } })],
    [404, await shop.as('bob', 'GET', path)],
    [401, await shop.as(undefined, 'GET', path)],
    [406, await shop.as('alice', 'GET', path, { headers: { Accept: 'image/png' } })],
    [400, await shop.as('alice', 'POST', notes, { json: {} })],
    [412, await shop.as('alice', 'DELETE', path, { headers: { 'If-Match': '"0"' } })],
    [204, await shop.as('alice', 'DELETE', path)],
  ] as const) {
    assert.equal(answer.status, status);
    for (const name of rateFields) assert.ok(answer.headers[name], `${status}: ${name}`);
  }
});

test('what is answered from the message alone is not counted', async (context) => {
  const shop = await shopFor(context, { rateLimitReads: 1, rateLimitWrites: 1 });
  for (let sent = 0; sent < 3; sent += 1) {
    for (const [status, answer] of [
      [204, await shop.as(undefined, 'OPTIONS', products)],
      [404, await shop.as(undefined, 'GET', '/nothing')],
      [405, await shop.as(undefined, 'PUT', products)],
    ] as const) {
      assert.equal(answer.status, status);
      assertUncounted(answer);
    }
  }
  assert.equal((await shop.as(undefined, 'GET', products)).status, 200);
});

test('a request that is carried out later was counted when it came, and only then', async (context) => {
  const shop = await shopFor(context, { rateLimitWrites: 2 });
  const path = String((await shop.as('alice', 'POST', notes, { json: { text: 'a' } })).headers.location);
  const later = await shop.as('alice', 'DELETE', path, { headers: { Prefer: 'respond-async' } });
  assert.equal(later.status, 202);
  assert.equal(later.headers['x-ratelimit-remaining'], '0');
  const operation = String(later.headers.location);
  let status: unknown = 'pending';
  for (let tries = 0; status === 'pending' && tries < 200; tries += 1) {
    const answer = await shop.as('alice', 'GET', operation);
    status = answer.status === 303 ? 'succeeded' : answer.json().status;
  }
  assert.equal(status, 'succeeded');
});

test('the program counts bad credentials by address, and asks nothing of health, metrics and documentation', async (context) => {
  const program = await startServer({
    env: { COMITY_RATE_LIMIT_READS: '4', COMITY_RATE_LIMIT_WRITES: '0' },
  });
  context.after(() => program.stop());
  const statusOf = async (path: string, headers: Record<string, string>) =>
    (await program.send('GET', path, { anonymous: true, headers })).status;
  for (let sent = 0; sent < 8; sent += 1) {
    for (const path of ['/health/live', '/health/ready', '/openapi.json', '/docs']) {
      const answer = await program.send('GET', path, { anonymous: true });
      assert.ok(answer.status < 400, path);
      assertUncounted(answer);
    }
    assertUncounted(await program.send('GET', '/metrics'));
    assertUncounted(await program.send('GET', products));
    assertUncounted(await program.send('DELETE', `${products}/none`, { anonymous: true }));
  }
  const guesses: number[] = [];
  for (let sent = 0; sent < 10; sent += 1) {
    const path = sent % 2 === 0 ? '/metrics' : products;
    guesses.push(await statusOf(path, { 'X-API-Key': `sk_guess_${sent}` }));
  }
  // The clock is the real one here: where a window ends in between, one more is admitted.
  assert.deepEqual(guesses.slice(0, 4), [401, 401, 401, 401]);
  assert.ok(guesses.filter((status) => status === 429).length >= 5, guesses.join(' '));
  assert.equal(await statusOf('/health/live', {}), 200);
  assert.equal((await program.send('GET', products)).status, 200, 'the administrator is never locked out');
});
