import assert from 'node:assert/strict';
import test from 'node:test';
import { failuresMin, judgeHealth } from '../../../src/webhooks/sending/health-watch.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const times = { warnMs: dayMs, disableMs: 5 * dayMs };

function judged(atMs: number, failures: number, warnedAt: number | null, of = times): string {
  return judgeHealth({ failingSince: 0, failures, warnedAt }, atMs, of);
}

test('bears a failing endpoint until the time of the warning, and warns then', () => {
  assert.equal(judged(0, 1, null), 'bear');
  assert.equal(judged(dayMs - 1, 100, null), 'bear');
  assert.equal(judged(dayMs, 2, null), 'warn');
});

test('warns once', () => {
  assert.equal(judged(2 * dayMs, 100, dayMs), 'bear');
});

test('disables at the time of disabling and not before, after enough failures', () => {
  assert.equal(judged(5 * dayMs - 1, 100, dayMs), 'bear');
  assert.equal(judged(5 * dayMs, failuresMin - 1, dayMs), 'bear');
  assert.equal(judged(5 * dayMs, failuresMin, dayMs), 'disable');
});

test('disables nobody who was not warned, and gives him a day', () => {
  assert.equal(judged(6 * dayMs, 100, null), 'warn');
  assert.equal(judged(6 * dayMs + 1, 100, 6 * dayMs), 'bear');
  assert.equal(judged(7 * dayMs - 1, 100, 6 * dayMs), 'bear');
  assert.equal(judged(7 * dayMs, 100, 6 * dayMs), 'disable');
});

test('gives no more time after the warning than before it, and no more than a day', () => {
  const quick = { warnMs: 1000, disableMs: 2000 };
  assert.equal(judged(2500, 3, 2000, quick), 'bear');
  assert.equal(judged(3000, 3, 2000, quick), 'disable');
  const slow = { warnMs: 10 * dayMs, disableMs: dayMs };
  assert.equal(judged(9 * dayMs, 100, null, slow), 'bear');
  assert.equal(judged(10 * dayMs, 100, null, slow), 'warn');
  assert.equal(judged(11 * dayMs, 100, 10 * dayMs, slow), 'disable');
});
