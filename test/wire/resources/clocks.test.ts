/** Machines whose clocks differ: one process whose clock is set back stands for another machine that goes behind. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openShop, type Shop } from './shop-of-many.ts';

let shop: Shop;
let path: string;
let writtenAt: string;

before(async () => {
  shop = await openShop();
  shop.moveClock(3600);
  const made = await shop.as('ann', 'POST', '/api/v1/categories', { json: { name: 'Ahead' } });
  path = String(made.headers.location);
  writtenAt = String(made.json().updatedAt);
  shop.moveClock(-3600);
});

after(() => shop.stop());

const seconds = (date: string | undefined) => Date.parse(date ?? '') / 1000;

test('Last-Modified is never later than the answer, also in a 304', async () => {
  const answer = await shop.as(undefined, 'GET', path);
  assert.equal(answer.json().updatedAt, writtenAt, 'the resource itself says when it was written');
  assert.ok(seconds(answer.headers['last-modified']) <= seconds(answer.headers.date));
  const headers = { 'If-None-Match': String(answer.headers.etag) };
  const same = await shop.as(undefined, 'GET', path, { headers });
  assert.equal(same.status, 304);
  assert.ok(seconds(same.headers['last-modified']) <= seconds(same.headers.date));
});

test('a change by a machine that goes behind does not set updatedAt back', async () => {
  const patched = await shop.as('ann', 'PATCH', path, { json: { name: 'Patched' } });
  assert.equal(patched.status, 200);
  assert.equal(patched.json().updatedAt, writtenAt);
  assert.ok(seconds(patched.headers['last-modified']) <= seconds(patched.headers.date));
  const put = await shop.as('ann', 'PUT', path, { json: { name: 'Put' } });
  assert.equal(put.json().updatedAt, writtenAt);
});

test('If-Modified-Since with a Last-Modified of before never hides a change', async () => {
  const first = await shop.as(undefined, 'GET', path);
  const headers = { 'If-Modified-Since': String(first.headers['last-modified']) };
  await shop.as('ann', 'PATCH', path, { json: { name: 'Changed' } });
  const again = await shop.as(undefined, 'GET', path, { headers });
  assert.equal(again.status, 200);
  assert.equal(again.json().name, 'Changed');
});
