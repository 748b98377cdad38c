/** Aggregates in as many groups, and by as long texts, as they may have: none may hold the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const itemsMax = 1000;
const items = (count: number, item: (index: number) => object) =>
  Array.from({ length: count }, (_, index) => item(index));

test('computes aggregates in many groups, and by long texts, without holding the event loop', {
  timeout: 180_000,
}, async (context) => {
  const attacked = await startAttacked(context, {
    config,
    env: { COMITY_RATE_LIMIT_WRITES: '0', COMITY_SCAN_TIMEOUT_MS: '60000' },
  });
  const { program } = attacked;
  const bulk = (json: object) => program.send('POST', '/api/v1/guarded/bulk', { json });
  for (let batch = 0; batch < 30; batch += 1) {
    const made = items(itemsMax, (index) => ({ count: batch * itemsMax + index, text: `${index % 9}` }));
    assert.equal((await bulk({ items: made })).status, 200);
  }
  const query = (content: object) => program.send('QUERY', '/api/v1/guarded', { json: content });
  const most = { groupBy: ['count'], aggregate: { count: { n: true } }, filter: { count: { lt: 10_000 } } };
  for (let page = 1; page <= 5; page += 1) {
    const answer = await query({ ...most, sort: ['-n'], limit: 1000, page });
    assert.equal(answer.status, 200, answer.body.slice(0, 200));
    assert.equal((answer.json().items as unknown[]).length, 1000);
  }
  await assertLoopFree(attacked, '10,000 groups');
  const many = await query({ groupBy: ['count'] });
  assert.equal(many.status, 422, many.body);
  for (let batch = 0; batch < 3; batch += 1) {
    const long = items(3, (index) => ({ text: `${3 * batch + index}${'y'.repeat(900_000)}` }));
    assert.equal((await bulk({ items: long })).status, 200);
  }
  const octets = await query({ groupBy: ['text'] });
  assert.equal(octets.status, 422, octets.body);
  await assertLoopFree(attacked, 'groups by long texts');
});
