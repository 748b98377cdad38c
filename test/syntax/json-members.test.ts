/** Members found in the text of an object, against JSON.parse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutMembers, memberSpan, memberSpans, valueAt } from '../../src/http/syntax/json-members.ts';

const name = fc.constantFrom(
  'a',
  'b',
  'data',
  '"',
  '\\',
  '\\"',
  '{',
  ']',
  ',',
  '',
  'é',
  '\n',
  '😀',
  'constructor',
);
const value = fc.jsonValue({ maxDepth: 3 });
const object = fc.dictionary(name, fc.oneof(value, fc.dictionary(name, value), name), {
  noNullPrototype: true,
});

test('finds the text of every member, and of no other', () => {
  fc.assert(
    fc.property(object, fc.array(name), (members, names) => {
      const json = JSON.stringify(members);
      const found = memberSpans(json, names);
      for (const each of names) {
        const span = found.get(each);
        const text = span === undefined ? undefined : json.slice(span.start, span.end);
        assert.equal(text, Object.hasOwn(members, each) ? JSON.stringify(members[each]) : undefined);
        assert.deepEqual(memberSpan(json, each), span);
      }
    }),
  );
});

test('finds the member of the outer object and not its name elsewhere', () => {
  const name = 'customerId';
  for (const before of [
    {},
    { a: 1 },
    { a: '{' },
    { a: [1, ','], b: { customerId: 2, c: [{ customerId: 3 }] } },
  ]) {
    const texts = { one: `,"${name}":`, other: `"${name}":"x"`, '"customerId': 4, [`,"${name}"`]: 5 };
    for (const value of ['x', 'a "quoted" text', ['x', 'y'], null, { customerId: 1 }]) {
      const members = { ...before, ...texts, [name]: value, after: { [name]: 6 } };
      for (const json of [JSON.stringify(members), JSON.stringify(members, undefined, 1)])
        assert.deepEqual(valueAt(json, [name]), value, json);
    }
    assert.equal(valueAt(JSON.stringify({ ...before, ...texts, after: { [name]: 6 } }), [name]), undefined);
  }
  assert.equal(valueAt(`["x",{"a":1,"${name}":2}]`, [name]), undefined);
});

test('leaves members out as deleting them would', () => {
  fc.assert(
    fc.property(object, fc.array(name), (members, names) => {
      const left = { ...members };
      for (const each of names) delete left[each];
      const cut = cutMembers(JSON.stringify(members), names);
      assert.equal(cut.json, JSON.stringify(left));
      assert.deepEqual(
        [...cut.names].sort(),
        [...new Set(names)].filter((name) => Object.hasOwn(members, name)).sort(),
      );
    }),
  );
});

test('makes the value at a path, through objects alone', () => {
  const json = JSON.stringify({ a: { b: [1, { c: 2 }], d: { e: 'x' } }, f: 'text' });
  assert.deepEqual(valueAt(json, ['a', 'b']), [1, { c: 2 }]);
  assert.equal(valueAt(json, ['a', 'd', 'e']), 'x');
  for (const path of [['a', 'b', '0'], ['f', 'length'], ['g'], ['a', 'toString']])
    assert.equal(valueAt(json, path), undefined);
  assert.equal(valueAt('{ "a" : 1 , "b" : [ 1 ] }', ['a']), 1);
  assert.deepEqual(valueAt('{ "a" : 1 , "b" : [ 1 ] }', ['b']), [1]);
});
