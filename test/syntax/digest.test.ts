import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { formatDigest, parseDigests, wantsDigest } from '../../src/http/syntax/digest.ts';

const hello = '{"hello": "world"}\n';
const sha256 = 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:';
const sha512 =
  'sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:';

function digestOf(algorithm: 'sha256' | 'sha512'): Uint8Array {
  return new Uint8Array(createHash(algorithm).update(hello).digest());
}

test('reads and writes the digests of RFC 9530 §B', () => {
  assert.deepEqual(parseDigests(sha256), new Map([['sha-256', digestOf('sha256')]]));
  const both = parseDigests(`${sha512}, ${sha256}`);
  assert.deepEqual(both?.get('sha-512'), digestOf('sha512'));
  assert.deepEqual(both?.get('sha-256'), digestOf('sha256'));
  assert.equal(formatDigest('sha-256', digestOf('sha256')), sha256);
  assert.equal(formatDigest('sha-512', digestOf('sha512')), sha512);
});

test('writes the octets of a view, not of the memory behind it', () => {
  const behind = new Uint8Array(64);
  behind.set(digestOf('sha256'), 8);
  assert.equal(formatDigest('sha-256', behind.subarray(8, 40)), sha256);
});

test('passes over other algorithms and parameters, and takes the last of a repeated one', () => {
  assert.deepEqual(parseDigests('md5=:YWJj:, unixsum=30637'), new Map());
  assert.deepEqual(parseDigests(`${sha256};a=1`)?.size, 1);
  const other = sha256.replace('RK', 'AA');
  assert.deepEqual(parseDigests(`${other}, ${sha256}`)?.get('sha-256'), digestOf('sha256'));
});

test('refuses a malformed field, and a digest of another length or type', () => {
  for (const value of [
    ...['sha-256', 'sha-256=1', 'sha-256="YWJj"', 'sha-256=:YWJj:', 'sha-256=()', 'sha-256=:*:', 'a b'],
    ...[sha256.replace('sha-256', 'sha-512'), `${sha256},`, `${sha256}, sha-512=?1`, 'SHA-256=:YWJj:'],
  ]) {
    assert.equal(parseDigests(value), undefined, value);
  }
});

test('reads the wish of Want-Repr-Digest (RFC 9530 §4)', () => {
  for (const value of ['sha-256=1', 'sha-256=10', 'sha-512=3, sha-256=10, unixsum=0', 'sha-256=1;a'])
    assert.ok(wantsDigest(value, 'sha-256'), value);
  for (const value of [
    '',
    'sha-256=0',
    'sha-512=3',
    'sha-256',
    'sha-256=11',
    'sha-256=-1',
    'sha-256=1.5',
    '=',
  ]) {
    assert.ok(!wantsDigest(value, 'sha-256'), value);
  }
});
