/** The text of API keys. */
import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { digestOfKey, kindOfKey, makeKey, prefixOfKey } from '../../../src/accounts/keys/key-rows.ts';

test('a key has 256 random bits in base64url behind a mark of its kind', () => {
  const bits = Buffer.alloc(32, 0xa5);
  const drawn: number[] = [];
  const random = (count: number) => {
    drawn.push(count);
    return bits;
  };
  assert.equal(makeKey('secret', random), `sk_${bits.toString('base64url')}`);
  assert.equal(makeKey('publishable', random), `pk_${bits.toString('base64url')}`);
  assert.deepEqual(drawn, [32, 32]);
  assert.equal(makeKey('secret', randomBytes).length, 46);
});

test('a text tells its kind, and only where it could have been made here', () => {
  for (const kind of ['secret', 'publishable'] as const) {
    assert.equal(kindOfKey(makeKey(kind, randomBytes)), kind);
  }
  const text = makeKey('secret', randomBytes);
  for (const other of [`SK_${text.slice(3)}`, `${text}a`, text.slice(1), `sk_${'+'.repeat(43)}`, '']) {
    assert.equal(kindOfKey(other), undefined, other);
  }
});

test('people see seven characters, and the store a digest', () => {
  const text = makeKey('secret', randomBytes);
  assert.equal(prefixOfKey(text), text.slice(0, 7));
  assert.equal(digestOfKey(text).toString('base64url'), hash('sha256', text, 'base64url'));
});
