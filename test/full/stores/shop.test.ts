/**
 * Both stores give the same answers, byte for byte, to the same requests in the same order: the shop. What an answer should be is
 * asked elsewhere; here PostgreSQL is held to SQLite, and each to the other.
 */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { shopConfig } from '../../harness/running-server.ts';
import { eventLists, everyMethod, refusals, shopResources } from './ask-shop.ts';
import { chokes } from './ask-writes.ts';
import { chapters, fixture, pairFor } from './chapters.ts';
import type { Pair } from './pair.ts';

const base = '/api/v1';

describe('what a store could choke on', () => {
  chapters(pairFor(fixture('every-type')), [['is taken or refused alike', chokes]]);
});

describe('the shop', () => {
  const pair = pairFor(shopConfig);

  chapters(pair, [
    ['takes and gives every media type', shopResources],
    ['answers every method on every path', everyMethod],
    ['refuses in the same words', refusals],
    ['lists events', eventLists],
    // Last: which of the racers wins, and so the ids in its event, is not the same on both.
    ['has one winner of each race', races],
  ]);
});

async function races(pair: Pair): Promise<void> {
  const made = await pair.ask('POST', `${base}/categories`, 201, { json: { name: 'Raced' } });
  const headers = { 'If-Match': made.etag };
  const patched = await pair.race(16, 'PATCH', made.location, { json: { name: 'Won' }, headers });
  assert.deepEqual(patched, [200, ...new Array(15).fill(412)]);
  const json = { name: 'Raced', price: 1, categoryId: String(made.json().id), sku: 'RACED' };
  assert.deepEqual(await pair.race(16, 'POST', `${base}/products`, { json }), [
    201,
    ...new Array(15).fill(409),
  ]);
  const unraced = await pair.race(16, 'PATCH', made.location, { json: { name: 'All' } });
  assert.deepEqual(unraced, new Array(16).fill(200));
  const deleted = await pair.race(16, 'DELETE', `${base}/articles/first-article`, {
    headers: { 'If-Match': '*' },
  });
  assert.deepEqual(deleted, [204, ...new Array(15).fill(404)]);
}
