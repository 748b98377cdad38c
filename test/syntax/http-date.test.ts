import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpDateCache, formatHttpDate, parseHttpDate } from '../../src/http/syntax/http-date.ts';

const now = Date.UTC(2026, 10, 21);
const then = Date.UTC(1994, 10, 6, 8, 49, 37);

test('reads the three forms of RFC 9110 §5.6.7', () => {
  assert.equal(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT', now), then);
  assert.equal(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', now), then);
  assert.equal(parseHttpDate('Sun Nov  6 08:49:37 1994', now), then);
  assert.equal(parseHttpDate('Wed Nov 16 08:49:37 1994', now), Date.UTC(1994, 10, 16, 8, 49, 37));
});

test('places a two-digit year at most 50 years ahead of now', () => {
  const noon2026 = Date.UTC(2026, 5, 15, 12);
  // 15 June 2076 is a Monday, 16 June 2076 a Tuesday, 16 June 1976 a Wednesday.
  assert.equal(parseHttpDate('Monday, 15-Jun-76 12:00:00 GMT', noon2026), Date.UTC(2076, 5, 15, 12));
  assert.equal(parseHttpDate('Wednesday, 16-Jun-76 12:00:00 GMT', noon2026), Date.UTC(1976, 5, 16, 12));
  assert.equal(parseHttpDate('Tuesday, 16-Jun-76 12:00:00 GMT', noon2026), undefined);
  assert.equal(parseHttpDate('Saturday, 01-Jan-05 00:00:00 GMT', Date.UTC(2095, 0, 1)), undefined);
  assert.equal(parseHttpDate('Thursday, 01-Jan-05 00:00:00 GMT', Date.UTC(2095, 0, 1)), Date.UTC(2105, 0, 1));
});

test('refuses a wrong weekday, a day or time that does not exist, another zone and another case', () => {
  const bad = [
    'Mon, 06 Nov 1994 08:49:37 GMT',
    'Sun, 31 Nov 1994 08:49:37 GMT',
    'Sun, 29 Feb 2026 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:37 GMT',
    'Sun, 06 Nov 1994 08:49:61 GMT',
    'Sun, 06 Nov 1994 08:49:60 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'sun, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 nov 1994 08:49:37 GMT',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 06-Nov-1994 08:49:37 GMT',
    'Sun, 06 Nov 94 08:49:37 GMT',
    'Sun, 06 Nov +994 08:49:37 GMT',
    'Sun Nov 06 08:49:37 94',
    'Sun, 7 Sep 2025, 00:00:00 GMT',
    '1994-11-06T08:49:37Z',
    '',
    '0',
  ];
  for (const value of bad) assert.equal(parseHttpDate(value, now), undefined, value);
});

test('takes a leap second at 23:59:60 as the next midnight', () => {
  assert.equal(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT', now), Date.UTC(2017, 0, 1));
});

test('writes IMF-fixdate, rounded down, and stays within four-digit years', () => {
  assert.equal(formatHttpDate(then + 999), 'Sun, 06 Nov 1994 08:49:37 GMT');
  assert.equal(formatHttpDate(Number.POSITIVE_INFINITY), 'Fri, 31 Dec 9999 23:59:59 GMT');
  assert.equal(formatHttpDate(Number.NaN), 'Sat, 01 Jan 0000 00:00:00 GMT');
  assert.equal(parseHttpDate('Sat, 01 Jan 0000 00:00:00 GMT', now), -62_167_219_200_000);
});

test('the cache writes what formatHttpDate writes, also past its size', () => {
  for (const sizeMax of [0, 1, 3]) {
    const format = createHttpDateCache(sizeMax);
    for (const ms of [0, 999, 1000, 5000, 0, 9000, 1000, 12_345, 12_999]) {
      assert.equal(format(ms), formatHttpDate(ms));
    }
  }
});
