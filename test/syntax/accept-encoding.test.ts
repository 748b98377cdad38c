import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acceptsCoding, preferredCoding } from '../../src/http/syntax/accept.ts';

const offers = ['br', 'gzip'];

test('takes the examples of RFC 9110 §12.5.3', () => {
  assert.equal(preferredCoding('compress, gzip', offers), 'gzip');
  assert.equal(preferredCoding('', offers), 'identity');
  assert.equal(preferredCoding('*', offers), 'br');
  assert.equal(preferredCoding('compress;q=0.5, gzip;q=1.0', ['compress', 'gzip']), 'gzip');
  assert.equal(preferredCoding('gzip;q=1.0, identity; q=0.5, *;q=0', offers), 'gzip');
});

test('sends identity when no header shows that another coding can be undone, or it is malformed', () => {
  for (const value of [undefined, 'gzip;q=2', 'gzip;level=1', 'gzip br', ';q=1', 'gzip;q =1']) {
    assert.equal(preferredCoding(value, offers), 'identity', String(value));
  }
});

test('keeps identity acceptable unless it is refused by name or by the wildcard', () => {
  assert.equal(preferredCoding('zstd', offers), 'identity');
  assert.equal(preferredCoding('gzip;q=0.001', offers), 'gzip');
  assert.equal(preferredCoding('gzip;q=0.5, identity', offers), 'identity');
  assert.equal(preferredCoding('zstd, identity;q=0', offers), undefined);
  assert.equal(preferredCoding('zstd, *;q=0', offers), undefined);
  assert.equal(preferredCoding('identity;q=0.1, *;q=0', offers), 'identity');
});

test('resolves ties by the order of the offers, and knows x-gzip for gzip', () => {
  assert.equal(preferredCoding('gzip, br', offers), 'br');
  assert.equal(preferredCoding('gzip, br', ['identity', 'gzip']), 'gzip');
  assert.equal(preferredCoding('X-GZIP', offers), 'gzip');
  assert.equal(preferredCoding('br;Q=0.2, gzip;q=0.3', offers), 'gzip');
});

test('accepts a coding that has a weight, and identity unless it is refused', () => {
  const accepted = (value: string | undefined) =>
    ['br', 'gzip', 'identity'].filter((coding) => acceptsCoding(value, coding));
  assert.deepEqual(accepted('gzip'), ['gzip', 'identity']);
  assert.deepEqual(accepted('x-gzip, *;q=0'), ['gzip']);
  assert.deepEqual(accepted('*'), ['br', 'gzip', 'identity']);
  assert.deepEqual(accepted('br;q=0, *'), ['gzip', 'identity']);
  for (const value of [undefined, '', 'gzip;q=2']) assert.deepEqual(accepted(value), ['identity']);
});
