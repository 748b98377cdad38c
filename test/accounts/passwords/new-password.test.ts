import assert from 'node:assert/strict';
import test from 'node:test';
import { newPasswordFault } from '../../../src/accounts/account-schemas.ts';

const bounds = { passwordCharactersMin: 8, passwordBytesMax: 64 };
const faultOf = (password: string) => newPasswordFault(password, bounds);

test('takes a password of exactly the least length, counted in characters', () => {
  assert.equal(faultOf('12345678'), undefined);
  assert.equal(faultOf('🔑'.repeat(8)), undefined);
  assert.equal(faultOf('1234567'), 'must be at least 8 characters long');
  assert.equal(faultOf('🔑'.repeat(7)), 'must be at least 8 characters long');
});

test('counts a letter with a combining accent as the one letter that is hashed', () => {
  assert.equal(faultOf('é'.normalize('NFD').repeat(7)), 'must be at least 8 characters long');
});

test('counts a letter that is composed of two as the one that was sent', () => {
  assert.equal('\u0958'.normalize('NFC').length, 2);
  assert.equal(faultOf('\u0958'.repeat(7)), 'must be at least 8 characters long');
  assert.equal(faultOf('\u0958'.repeat(8)), undefined);
});

test('takes a password of exactly the greatest length, counted in octets of UTF-8', () => {
  assert.equal(faultOf('x'.repeat(64)), undefined);
  assert.equal(faultOf('x'.repeat(65)), 'must be at most 64 bytes long');
  assert.equal(faultOf('🔑'.repeat(16)), undefined);
  assert.equal(faultOf('🔑'.repeat(17)), 'must be at most 64 bytes long');
});

test('takes spaces wherever they stand', () => {
  assert.equal(faultOf('  a  b  '), undefined);
});

for (const [what, character] of [
  ['NUL', '\0'],
  ['a line break', '\n'],
  ['DEL', '\u007f'],
  ['a C1 control', '\u0085'],
  ['half of a surrogate pair', '\ud83d'],
]) {
  test(`refuses ${what}, which Basic credentials cannot carry`, () => {
    assert.equal(faultOf(`correct ${character} horse`), 'must not contain control characters');
  });
}
