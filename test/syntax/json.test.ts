import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonDepthCeiling, parseJson } from '../../src/http/syntax/json.ts';

const limits = { depthMax: 4, keysMax: 40 };

function refusal(text: string): string {
  const result = parseJson(text, limits);
  return result.ok ? 'accepted' : `${result.message} at ${result.offset}`;
}

test('gives the value that JSON.parse gives', () => {
  const texts = [
    'null',
    ' true ',
    'false',
    '0',
    '-0',
    '-1.5e+3',
    '""',
    '[]',
    '{}',
    '[1,2 , 3]',
    '{"a":{"b":[null]}}',
  ];
  const strings = [
    '"\\u0041\\n\\"\\\\\\/\\b\\f\\r\\t"',
    '"é😀"',
    '"\\ud83d\\ude00"',
    '"\x7f"',
    '{"":0,"\\u0000":1}',
  ];
  const numbers = [
    '9007199254740991',
    '9007199254740992',
    '-10000000000000000000000',
    '-38283190947902570',
    '0.1',
    '1E30',
  ];
  for (const text of [
    ...texts,
    ...strings,
    ...numbers,
    '3.141592653589793238462643383279',
    '0e999',
    '5e-324',
  ]) {
    assert.deepEqual(parseJson(text, limits), { ok: true, value: JSON.parse(text) }, text);
  }
});

test('refuses malformed text, naming the offset', () => {
  assert.equal(refusal(''), 'unexpected end of the JSON text at 0');
  assert.equal(refusal('{"a":1,}'), 'expected a member name at 7');
  assert.equal(refusal('{a:1}'), 'expected a member name at 1');
  assert.equal(refusal('{"a" 1}'), 'expected a colon at 5');
  assert.equal(refusal('{"a":1 "b":2}'), 'expected a comma or the end of the object at 7');
  assert.equal(refusal('[1 2]'), 'expected a comma or the end of the array at 3');
  assert.equal(refusal('[1,]'), 'expected a value at 3');
  assert.equal(refusal('[1'), 'unexpected end of the JSON text at 2');
  assert.equal(refusal('{"a":'), 'unexpected end of the JSON text at 5');
  assert.equal(refusal('tru'), 'expected a value at 0');
  assert.equal(refusal('NaN'), 'expected a value at 0');
  assert.equal(refusal("'a'"), 'expected a value at 0');
  assert.equal(refusal('1 2'), 'text after the JSON value at 2');
  assert.equal(refusal('{} \0'), 'text after the JSON value at 3');
  assert.equal(refusal('"a'), 'unexpected end of the JSON text at 2');
  assert.equal(refusal('"\\'), 'bad escape at 1');
  assert.equal(refusal('"\\x"'), 'bad escape at 1');
  assert.equal(refusal('"\\u12g4"'), 'bad escape at 1');
  assert.equal(refusal('"a\tb"'), 'control character in a string at 2');
  assert.equal(refusal('\u00a01'), 'expected a value at 0');
  for (const text of ['01', '-', '1.', '.5', '1e', '1e+', '-01', '+1', '0x1'])
    assert.notEqual(refusal(text), 'accepted', text);
});

test('refuses a byte order mark and lone surrogates, raw or escaped', () => {
  assert.equal(refusal('\ufeff{}'), 'byte order mark before the JSON text at 0');
  assert.equal(refusal('"😀\ud800"'), 'lone surrogate at 3');
  assert.equal(refusal('["\udc00"]'), 'lone surrogate at 2');
  assert.equal(refusal('"\\ud800"'), 'lone surrogate at 1');
  assert.equal(refusal('"\\udc00\\ud800"'), 'lone surrogate at 1');
  assert.equal(refusal('"\\ud800\\u0041"'), 'lone surrogate at 1');
  assert.equal(refusal('{"a\\ud800":1}'), 'lone surrogate at 3');
});

test('refuses a member name given twice, in whatever spelling and however many members there are', () => {
  assert.equal(refusal('{"a":1,"a":2}'), 'duplicate member name at 7');
  assert.equal(refusal('{"a":1,"\\u0061":2}'), 'duplicate member name at 7');
  assert.equal(refusal('{"\\u0061":1,"a":2}'), 'duplicate member name at 12');
  assert.equal(refusal('{"a":{"b":1},"c":[{"b":1,"b":2}]}'), 'duplicate member name at 25');
  assert.equal(refusal('{"x":{"a":1},"a":{"a":1}}'), 'accepted');
  for (const count of [2, 15, 16, 17, 30]) {
    const members = Array.from({ length: count }, (_, index) => `"k${index}":{"k0":0}`);
    assert.equal(refusal(`{${members.join()}}`), 'accepted');
    for (const again of [0, count >> 1, count - 1]) {
      assert.match(refusal(`{${members.join()},"\\u006b${again}":0}`), /^duplicate member name/);
      assert.match(refusal(`{${members.join()},"k${again}":0}`), /^duplicate member name/);
    }
  }
});

test('refuses a member named __proto__, also escaped and after many others', () => {
  assert.equal(refusal('{"__proto__":1}'), 'a member may not be named __proto__ at 1');
  assert.equal(refusal('{"\\u005f_proto__":1}'), 'a member may not be named __proto__ at 1');
  const many = Array.from({ length: 20 }, (_, index) => `"k${index}":0`).join();
  assert.match(refusal(`{${many},"__proto__":1}`), /^a member may not be named/);
  assert.equal(refusal('{"__proto":1,"__proto__x":2,"a":"__proto__"}'), 'accepted');
});

test('refuses numbers that a double cannot hold', () => {
  for (const text of ['1e400', '-1e400', '1e-400', '9'.repeat(400)]) {
    assert.equal(refusal(text), 'number beyond the range of a double at 0', text);
  }
  for (const text of ['9007199254740993', '10000000000000000000001'])
    assert.equal(refusal(text), 'integer that a double cannot keep exactly (send it as a string) at 0');
  assert.equal(refusal('9007199254740993.0'), 'accepted');
  assert.equal(refusal(`1${'0'.repeat(400)}e-400`), 'accepted');
  assert.equal(refusal(`0.${'0'.repeat(400)}1`), 'number beyond the range of a double at 0');
});

test('holds the limits on nesting and members at their edge', () => {
  assert.equal(refusal('[[[[]]]]'), 'accepted');
  assert.equal(refusal('[[[[[]]]]]'), 'nested deeper than 4 levels at 4');
  assert.equal(refusal('{"a":[{"a":[{}]}]}'), 'nested deeper than 4 levels at 12');
  const members = Array.from({ length: 41 }, (_, index) => `"k${index}":0`);
  assert.equal(refusal(`{${members.slice(1).join()}}`), 'accepted');
  assert.match(refusal(`{${members.join()}}`), /^more than 40 members in one object/);
  const deep = parseJson('['.repeat(1_000_000), { depthMax: Number.POSITIVE_INFINITY, keysMax: 1 });
  assert.deepEqual(deep, { ok: false, message: 'nested deeper than 1000 levels', offset: jsonDepthCeiling });
});
