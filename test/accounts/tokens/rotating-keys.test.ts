/** When keys that rotate are created, and for how long they are published before they sign. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leadMs, nextSignsFrom } from '../../../src/accounts/tokens/rotating-keys.ts';

const start = Date.UTC(2030, 0, 1);
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const period = 30 * 86_400;

test('a key is published a tenth of its period before it signs, an hour at least where the period allows it', () => {
  assert.equal(leadMs(period), 3 * dayMs);
  assert.equal(leadMs(10 * 3600), hourMs);
  assert.equal(leadMs(5 * 3600), hourMs);
  assert.equal(leadMs(3600), hourMs / 2);
  assert.equal(leadMs(60), minuteMs / 2);
});

test('the next key is made when its lead begins, once, and late rather than without a lead', () => {
  const first = { signsFrom: start };
  const due = start + 30 * dayMs;
  assert.equal(nextSignsFrom([], period, start), start);
  assert.equal(nextSignsFrom([first], period, due - 3 * dayMs - 1), undefined);
  assert.equal(nextSignsFrom([first], period, due - 3 * dayMs), due);
  assert.equal(nextSignsFrom([first], period, due + 100 * dayMs), due + 103 * dayMs);
  assert.equal(nextSignsFrom([first, { signsFrom: due }], period, due - 1), undefined);
});
