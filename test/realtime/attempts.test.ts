/** How often one caller may try to open a WebSocket (§9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attemptCallersMax, createAttempts } from '../../src/realtime/identify.ts';

const start = Date.UTC(2030, 0, 1);

test('admits a burst of attempts of one caller, then one more after each interval', () => {
  const attempts = createAttempts(1500, 3);
  assert.deepEqual(attempts.admit('one', start), {
    exceeded: false,
    policy: '"realtime";q=3;w=5',
    rate: '"realtime";r=2;t=2',
    remaining: '2',
    retryAfterSeconds: 2,
  });
  assert.equal(attempts.admit('one', start)?.remaining, '1');
  assert.deepEqual(attempts.admit('one', start + 500)?.rate, '"realtime";r=0;t=1');
  assert.equal(attempts.isTooSoon('one', start + 1499), true);
  const refused = attempts.admit('one', start + 600);
  assert.deepEqual([refused?.exceeded, refused?.remaining, refused?.retryAfterSeconds], [true, '0', 1]);
  assert.equal(attempts.admit('one', start + 1500)?.exceeded, false, 'the refused one did not count');
  assert.equal(attempts.admit('one', start + 1501)?.exceeded, true);
});

test('gives each caller a burst of its own', () => {
  const attempts = createAttempts(1000, 1);
  attempts.admit('one', start);
  assert.equal(attempts.isTooSoon('other', start), false);
  assert.equal(attempts.admit('other', start)?.exceeded, false);
});

test('shuts nobody out for longer when the clock steps back', () => {
  const attempts = createAttempts(1000, 1);
  attempts.admit('one', start);
  assert.equal(attempts.admit('one', start - 3_600_000)?.retryAfterSeconds, 1);
});

test('sets no limit at 0', () => {
  const attempts = createAttempts(0, 1);
  for (let at = 0; at < 3; at += 1) assert.equal(attempts.admit('one', start), undefined);
  assert.equal(attempts.isTooSoon('one', start), false);
});

test('remembers so many callers and forgets the oldest first', () => {
  const attempts = createAttempts(60_000, 1);
  for (let at = 0; at < attemptCallersMax + 10; at += 1) attempts.admit(`address ${at}`, start);
  assert.equal(attempts.isTooSoon('address 0', start), false);
  assert.equal(attempts.isTooSoon('address 10', start), true);
  assert.equal(attempts.isTooSoon(`address ${attemptCallersMax + 9}`, start), true);
});
