import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { formatHttpDate } from '../../../src/http/syntax/http-date.ts';
import { retryAfter } from '../../../src/work/retries.ts';

const now = Date.parse('2026-03-01T12:00:00.250Z');
const dayS = 86_400;

function asked(value: string, secondsMax = dayS): number | null {
  return retryAfter([['retry-after', value]], now, secondsMax);
}

test('reads seconds from the moment of the answer', () => {
  assert.equal(asked('120'), now + 120_000);
  assert.equal(asked(' 1 '), now + 1000);
});

test('reads an HTTP date in each of its forms', () => {
  const time = Date.parse('2026-03-01T13:00:00.000Z');
  for (const value of [
    'Sun, 01 Mar 2026 13:00:00 GMT',
    'Sunday, 01-Mar-26 13:00:00 GMT',
    'Sun Mar  1 13:00:00 2026',
  ]) {
    assert.equal(asked(value), time, value);
  }
});

test('asks for nothing by a date that is over, by no seconds, and by what is neither', () => {
  for (const value of [
    formatHttpDate(now - 1000),
    '0',
    '',
    '-5',
    '+5',
    '1.5',
    '5 s',
    '0x10',
    'soon',
    '٣',
    'Mon, 01 Mar 2026 13:00:00 GMT',
    '2026-03-01T13:00:00Z',
  ]) {
    assert.equal(asked(value), null, value);
  }
});

test('cuts a longer wait to the most that is honoured', () => {
  assert.equal(asked('3600', 60), now + 60_000);
  assert.equal(asked('9'.repeat(400), 60), now + 60_000);
  assert.equal(asked('Fri, 31 Dec 9999 23:59:59 GMT', 60), now + 60_000);
});

test('takes the first field that says something, and no other field', () => {
  assert.equal(
    retryAfter(
      [
        ['x-retry-after', '7'],
        ['retry-after', 'soon'],
        ['retry-after', '5'],
        ['retry-after', '9'],
      ],
      now,
      dayS,
    ),
    now + 5000,
  );
  assert.equal(retryAfter([], now, dayS), null);
});

test('never throws and never goes beyond the bound, whatever the field says', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.integer().map(String)), (value) => {
      const time = asked(value, 60);
      assert.ok(time === null || (time > now && time <= now + 60_000));
    }),
  );
});
