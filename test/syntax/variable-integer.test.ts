import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodedVariableIntegerBytes,
  readVariableInteger,
  variableIntegerBytes,
  writeVariableInteger,
} from '../../src/http/syntax/capsule.ts';

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'));
}

// RFC 9000 §A.1; the edges of each length.
for (const [hex, value] of [
  ['c2197c5eff14e88c', Number(151_288_809_941_952_652n)],
  ['9d7f3e7d', 494_878_333],
  ['7bbd', 15_293],
  ['25', 37],
  ['4025', 37],
  ['00', 0],
  ['c000000000000000', 0],
  ['3f', 63],
  ['4040', 64],
  ['7fff', 16_383],
  ['80004000', 16_384],
  ['bfffffff', 1_073_741_823],
  ['c000000040000000', 1_073_741_824],
  ['c01fffffffffffff', Number.MAX_SAFE_INTEGER],
] as const) {
  test(`reads ${hex} as ${value}`, () => {
    assert.equal(readVariableInteger(bytesOf(hex), 0), value);
    assert.equal(readVariableInteger(bytesOf(`ff${hex}00`), 1), value);
    assert.equal(variableIntegerBytes(bytesOf(hex)[0] ?? 0), hex.length / 2);
  });
  test(`knows that ${hex} is not all there`, () => {
    for (let length = 0; length < hex.length / 2; length += 1) {
      assert.equal(readVariableInteger(bytesOf(hex).subarray(0, length), 0), undefined);
    }
  });
}

test('reads the largest as a number beyond every bound', () => {
  assert.equal(readVariableInteger(bytesOf('ffffffffffffffff'), 0), 2 ** 62);
});

for (const [value, hex] of [
  [0, '00'],
  [63, '3f'],
  [64, '4040'],
  [16_383, '7fff'],
  [16_384, '80004000'],
  [1_073_741_823, 'bfffffff'],
  [1_073_741_824, 'c000000040000000'],
  [2 ** 32, 'c000000100000000'],
  [Number.MAX_SAFE_INTEGER, 'c01fffffffffffff'],
] as const) {
  test(`writes ${value} as ${hex}`, () => {
    const bytes = new Uint8Array(10).fill(0xff);
    const end = writeVariableInteger(bytes, 1, value);
    assert.equal(Buffer.from(bytes.subarray(1, end)).toString('hex'), hex);
    assert.equal(encodedVariableIntegerBytes(value), hex.length / 2);
    assert.equal(bytes[end], end < 10 ? 0xff : undefined);
  });
}
