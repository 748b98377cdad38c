/** The arithmetic of the sliding window: what it still counts, and that a time to wait is the right one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stillCounted, waitMs, windowMs } from '../../../src/kernel/rate-limit/rate-limiter.ts';

const counts = fc.integer({ min: 0, max: 10_000 });
const limits = fc.integer({ min: 1, max: 10_000 });
const moments = fc.integer({ min: 0, max: windowMs - 1 });

test('counts the window before by the share of it that the last minute still covers', () => {
  assert.equal(stillCounted(6000, 0), 5999);
  assert.equal(stillCounted(6000, windowMs / 2 - 1), 3000);
  assert.equal(stillCounted(6000, windowMs - 1), 0);
  assert.equal(stillCounted(0, 0), 0);
});

/** Whether one more is admitted so many milliseconds after the beginning of the window. */
function admits(limit: number, admitted: number, before: number, atMs: number): boolean {
  if (atMs >= 2 * windowMs) return true;
  return atMs < windowMs
    ? admitted + stillCounted(before, atMs) < limit
    : stillCounted(admitted, atMs - windowMs) < limit;
}

test('names the first millisecond at which one more is admitted, and no earlier one', () => {
  const property = fc.property(limits, counts, counts, moments, (limit, admitted, before, elapsedMs) => {
    const wait = waitMs(limit, admitted, before, elapsedMs);
    assert.ok(admits(limit, admitted, before, elapsedMs + wait));
    if (wait > 0) assert.ok(!admits(limit, admitted, before, elapsedMs + wait - 1));
  });
  fc.assert(property, { numRuns: 2000 });
});

test('waits for the end of the window where all of the limit was used in it', () => {
  assert.equal(waitMs(6000, 6000, 0, 0), windowMs);
  assert.equal(waitMs(6000, 6000, 0, 45_000), 15_000);
  assert.equal(waitMs(1, 1, 0, 45_000), 15_000);
});
