/** One meter: the edge of the limit, how the window slides, what answers are told, and the bound of its memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parseList } from 'structured-headers';
import { Meter } from '../../../src/kernel/rate-limit/rate-limiter.ts';

const minute = 60_000;
/** The beginning of a window. */
const start = 29_000_000 * minute;

type Given = { readonly limit?: number; readonly countersMax?: number };

function meterOf({ limit = 10, countersMax = 1000 }: Given = {}): Meter {
  return new Meter({ policy: 'reads', callers: 'address', perMinute: limit }, countersMax, undefined);
}

/** How many of so many requests are admitted at one moment. */
function admitted(meter: Meter, caller: string, nowMs: number, requests: number): number {
  let count = 0;
  for (let sent = 0; sent < requests; sent += 1) if (!meter.admit(caller, nowMs).exceeded) count += 1;
  return count;
}

test('admits as many requests as the limit and refuses the next', () => {
  for (const limit of [1, 2, 10, 6000]) {
    const meter = meterOf({ limit });
    assert.equal(admitted(meter, 'a', start, limit), limit);
    assert.equal(meter.admit('a', start).exceeded, true, `${limit}`);
  }
});

test('counts each caller alone', () => {
  const meter = meterOf();
  assert.equal(admitted(meter, 'a', start, 20), 10);
  assert.equal(admitted(meter, 'b', start, 20), 10);
});

test('lets no burst over the end of a window take more than the limit', () => {
  const meter = meterOf({ limit: 100 });
  assert.equal(admitted(meter, 'a', start + minute - 1, 200), 100);
  // The first millisecond of the next window no longer covers all of this one.
  assert.ok(admitted(meter, 'a', start + minute, 200) <= 1);
});

test('gives back what was used little by little in the next window', () => {
  const meter = meterOf({ limit: 100 });
  admitted(meter, 'a', start + 30_000, 100);
  assert.equal(admitted(meter, 'a', start + minute + 15_000 - 1, 100), 25);
  assert.equal(admitted(meter, 'a', start + minute + 30_000 - 1, 100), 25);
  assert.equal(admitted(meter, 'a', start + 2 * minute + 30_000 - 1, 200), 75);
});

test('has forgotten everything after two windows', () => {
  const meter = meterOf({ limit: 100 });
  admitted(meter, 'a', start, 100);
  assert.equal(admitted(meter, 'a', start + 2 * minute, 200), 100);
  assert.equal(meter.counters, 1);
});

test('does not count what it refused, so that the time to wait does not move away', () => {
  const meter = meterOf({ limit: 100 });
  admitted(meter, 'a', start + 10_000, 100);
  const { retryAfterSeconds } = meter.admit('a', start + 10_000);
  assert.equal(retryAfterSeconds, 50);
  admitted(meter, 'a', start + 40_000, 5000);
  assert.equal(meter.admit('a', start + 40_000).retryAfterSeconds, 20);
});

test('admits again after the time it named, and not a second earlier', () => {
  for (const limit of [1, 3, 100]) {
    for (const usedAt of [0, 20_500, 59_999]) {
      const meter = meterOf({ limit });
      admitted(meter, 'a', start + usedAt, limit);
      const { exceeded, retryAfterSeconds } = meter.admit('a', start + usedAt);
      assert.equal(exceeded, true);
      assert.ok(retryAfterSeconds >= 1 && Number.isInteger(retryAfterSeconds));
      const again = start + usedAt + retryAfterSeconds * 1000;
      assert.equal(meter.admit('a', again - 1001).exceeded, true, `${limit} ${usedAt}`);
      assert.equal(meter.admit('a', again).exceeded, false, `${limit} ${usedAt}`);
    }
  }
});

test('tells the policy, what is left and until when, as structured fields', () => {
  const meter = meterOf({ limit: 3 });
  const told = meter.admit('a', start + 1000);
  assert.equal(told.policy, '"reads";q=3;w=60');
  assert.equal(told.rate, '"reads";r=2;t=59');
  assert.equal(told.remaining, '2');
  const [policy] = parseList(told.policy);
  assert.ok(isDeepStrictEqual(policy?.[0], 'reads') && policy?.[1].get('q') === 3);
  assert.equal(parseList(told.rate)[0]?.[1].get('r'), 2);
  meter.admit('a', start + 1000);
  assert.equal(meter.admit('a', start + 30_001).rate, '"reads";r=0;t=30');
  const refused = meter.admit('a', start + 59_999);
  assert.equal(refused.rate, '"reads";r=0;t=1');
  assert.equal(refused.retryAfterSeconds, 1);
});

test('takes a clock that steps back a little for the window that had begun, and one that steps far for a new one', () => {
  const meter = meterOf({ limit: 100 });
  assert.equal(admitted(meter, 'a', start, 100), 100);
  assert.equal(meter.admit('a', start - 5).exceeded, true);
  assert.equal(meter.admit('a', start - 60 * minute).exceeded, false);
});

test('keeps no more counters than its bound in a window, whoever asks', () => {
  const meter = meterOf({ countersMax: 100 });
  for (let caller = 0; caller < 10_000; caller += 1) meter.admit(`a${caller}`, start);
  assert.equal(meter.counters, 100);
  for (let caller = 0; caller < 10_000; caller += 1) meter.admit(`b${caller}`, start + minute);
  assert.equal(meter.counters, 200);
});

test('keeps the counters of those who used much while it forgets those who used little', () => {
  const meter = meterOf({ countersMax: 100 });
  for (let caller = 0; caller < 50; caller += 1) admitted(meter, `busy${caller}`, start, 10);
  for (let caller = 0; caller < 10_000; caller += 1) meter.admit(`flood${caller}`, start);
  for (let caller = 0; caller < 50; caller += 1) {
    assert.equal(meter.admit(`busy${caller}`, start).exceeded, true, `${caller}`);
  }
});

test('admits a new caller while a flood of addresses fills its memory', () => {
  const meter = meterOf({ countersMax: 100 });
  for (let caller = 0; caller < 10_000; caller += 1) meter.admit(`flood${caller}`, start);
  assert.equal(admitted(meter, 'new', start, 20), 10);
});

test('counts callers together where every place is taken by one who used much', () => {
  const meter = meterOf({ countersMax: 16 });
  for (let caller = 0; caller < 16; caller += 1) admitted(meter, `busy${caller}`, start, 10);
  const together = admitted(meter, 'new', start, 6) + admitted(meter, 'other', start, 6);
  assert.equal(together, 10);
  assert.equal(meter.counters, 16);
  assert.equal(admitted(meter, 'new', start + 2 * minute, 20), 10);
});
