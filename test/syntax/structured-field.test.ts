import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAcceptQuery, parseAcceptQuery } from '../../src/http/syntax/accept.ts';
import { formatDeprecation, parseIdempotencyKey } from '../../src/http/syntax/structured-field.ts';

const key = '8e03978e-40d5-43dd-bc93-6894a57f9324';

test('takes an idempotency key as a String or bare, as the same key', () => {
  assert.equal(parseIdempotencyKey(`"${key}"`), key);
  assert.equal(parseIdempotencyKey(key), key);
  assert.equal(parseIdempotencyKey(`  "${key}";v=1 `), key);
  assert.equal(parseIdempotencyKey('"a\\"b\\\\c, d"'), 'a"b\\c, d');
});

test('bounds an idempotency key at 255 characters in both forms', () => {
  const longest = 'k'.repeat(255);
  assert.equal(parseIdempotencyKey(longest), longest);
  assert.equal(parseIdempotencyKey(`"${longest}"`), longest);
  assert.equal(parseIdempotencyKey(`"${'\\"'.repeat(255)}"`), '"'.repeat(255));
  assert.equal(parseIdempotencyKey(`${longest}k`), undefined);
  assert.equal(parseIdempotencyKey(`"${longest}k"`), undefined);
  assert.equal(parseIdempotencyKey('k'.repeat(100_000)), undefined);
});

test('refuses an empty or malformed idempotency key', () => {
  for (const value of [
    '',
    ' ',
    '""',
    '"a',
    '"a"b',
    'a"b',
    'a,b',
    'a;b',
    'a b',
    'é',
    '"é"',
    '"a", "b"',
    '"a\\b"',
  ]) {
    assert.equal(parseIdempotencyKey(value), undefined, value);
  }
});

test('writes Accept-Query as Tokens where it can and Strings where it must', () => {
  const types = [
    { type: 'application/sql', parameters: { Charset: 'UTF-8', 'b!d': 'x' } },
    { type: '*/*' },
    { type: '3gpp/x' },
  ];
  assert.equal(formatAcceptQuery(types), 'application/sql;charset="UTF-8", */*, "3gpp/x"');
});

test('reads the Accept-Query of RFC 10008 §3, Tokens and Strings alike', () => {
  const read = parseAcceptQuery('"application/jsonpath", Application/sql;charset="UTF-8"') ?? [];
  assert.deepEqual(
    read.map(({ type, parameters }) => [type, ...parameters]),
    [['application/jsonpath'], ['application/sql', ['charset', 'UTF-8']]],
  );
  for (const value of ['a/b,', 'a/b;q=1', '("a")', '1', '?1', 'a/b;=', 'é']) {
    assert.equal(parseAcceptQuery(value), undefined, value);
  }
});

test('writes the Deprecation example of RFC 9745 §2.1', () => {
  assert.equal(formatDeprecation(1_688_169_599_000), '@1688169599');
  assert.equal(formatDeprecation(-1), '@-1');
});
