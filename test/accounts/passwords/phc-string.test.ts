import assert from 'node:assert/strict';
import test from 'node:test';
import { formatPhcString, parsePhcString } from '../../../src/accounts/passwords/hasher.ts';

/** Of test.c of the reference implementation (P-H-C/phc-winner-argon2): version 19, argon2id. */
const reference = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';

test('reads costs, salt and tag of a hash of the reference implementation', () => {
  const hash = parsePhcString(reference);
  assert.deepEqual(hash?.costs, { memoryKibibytes: 256, passes: 2, lanes: 1 });
  assert.equal(hash?.salt.toString(), 'somesalt');
  assert.equal(hash?.tag.toString('hex'), '9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe');
});

test('writes what it reads, character for character', () => {
  const hash = parsePhcString(reference);
  assert.ok(hash);
  assert.equal(formatPhcString(hash), reference);
});

const broken: readonly (readonly [what: string, text: string])[] = [
  ['nothing', ''],
  ['another function', reference.replace('argon2id', 'argon2i')],
  ['another version', reference.replace('v=19', 'v=16')],
  ['no version', reference.replace('$v=19', '')],
  ['parameters in another order', reference.replace('m=256,t=2', 't=2,m=256')],
  ['a leading zero', reference.replace('m=256', 'm=0256')],
  ['no memory', reference.replace('m=256', 'm=0')],
  ['no passes', reference.replace('t=2', 't=0')],
  ['less memory than its lanes need', reference.replace('p=1', 'p=33')],
  ['padding', `${reference}=`],
  ['the other alphabet', reference.replace('/', '_')],
  ['bits beyond the last octet', reference.replace(/4$/, '5')],
  ['a salt that is too short', reference.replace('c29tZXNhbHQ', 'c29tZXNhbA')],
  ['no tag', reference.slice(0, reference.lastIndexOf('$') + 1)],
  ['more behind it', `${reference}$`],
  ['a line break', `${reference}\n`],
];

for (const [what, text] of broken) {
  test(`reads no hash with ${what}`, () => {
    assert.equal(parsePhcString(text), undefined);
  });
}
