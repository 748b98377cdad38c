/** The examples of RFC 7396, Appendix A: original, patch, result. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergePatch } from '../../src/resources/document/propose.ts';

const vectors: readonly (readonly [original: string, patch: string, result: string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];

for (const [original, patch, expected] of vectors) {
  test(`merges ${patch} into ${original} as ${expected} (RFC 7396 Appendix A)`, () => {
    const target = JSON.parse(original);
    assert.deepEqual(mergePatch(target, JSON.parse(patch)), JSON.parse(expected));
    assert.deepEqual(target, JSON.parse(original), 'the target is never changed');
  });
}

test('covers the 15 examples of the appendix', () => assert.equal(vectors.length, 15));

test('takes a member named __proto__ for data and no prototype', () => {
  const patch = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  const merged = mergePatch({}, patch);
  assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  assert.equal(JSON.stringify(merged), JSON.stringify(patch));
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});
