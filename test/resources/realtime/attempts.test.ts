/** How often one address may try to open a WebSocket (§9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attemptAddressesMax, createAttempts } from '../../../src/resources/realtime/attempts.ts';

const start = Date.UTC(2030, 0, 1);

test('admits one attempt of an address in the time, and tells when the next may come', () => {
  const attempts = createAttempts(1500);
  assert.deepEqual(attempts.admit('one', start), {
    exceeded: false,
    policy: '"realtime";q=1;w=2',
    rate: '"realtime";r=0;t=2',
    remaining: '0',
    retryAfterSeconds: 2,
  });
  assert.equal(attempts.isTooSoon('one', start + 1499), true);
  assert.equal(attempts.isTooSoon('other', start), false);
  assert.equal(attempts.admit('other', start)?.exceeded, false);
  const refused = attempts.admit('one', start + 600);
  assert.deepEqual([refused?.exceeded, refused?.retryAfterSeconds], [true, 1]);
  assert.equal(attempts.admit('one', start + 1500)?.exceeded, false, 'the refused one did not count');
});

test('shuts nobody out for longer when the clock steps back', () => {
  const attempts = createAttempts(1000);
  attempts.admit('one', start);
  assert.equal(attempts.admit('one', start - 3_600_000)?.retryAfterSeconds, 1);
});

test('sets no limit at 0', () => {
  const attempts = createAttempts(0);
  for (let at = 0; at < 3; at += 1) assert.equal(attempts.admit('one', start), undefined);
  assert.equal(attempts.isTooSoon('one', start), false);
});

test('remembers so many addresses and forgets the oldest first', () => {
  const attempts = createAttempts(60_000);
  for (let at = 0; at < attemptAddressesMax + 10; at += 1) attempts.admit(`address ${at}`, start);
  assert.equal(attempts.isTooSoon('address 0', start), false);
  assert.equal(attempts.isTooSoon('address 10', start), true);
  assert.equal(attempts.isTooSoon(`address ${attemptAddressesMax + 9}`, start), true);
});
