import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../../../src/http/syntax/json.ts';
import { mergePatch } from '../../../src/resources/document/propose.ts';
import { bounds, tree } from './bounds.ts';

/** RFC 7396 §2 as it is printed: over lists of members, and destructive on its own copy. */
function model(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const members = new Map<string, unknown>(isObject ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, model(members.get(name), value));
  }
  return Object.fromEntries(members);
}

/** The patch that makes `after` of `before`, where there is one: RFC 7396 §1 cannot express nulls in `after`. */
function difference(before: Json | undefined, after: Json): Json {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject(after)) return after;
  const from = isObject(before) ? (before as Record<string, Json>) : {};
  const patch: Record<string, Json> = {};
  for (const name of Object.keys(from)) if (!Object.hasOwn(after as object, name)) patch[name] = null;
  for (const [name, value] of Object.entries(after as Record<string, Json>)) {
    patch[name] = difference(Object.hasOwn(from, name) ? from[name] : undefined, value);
  }
  return patch;
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value ?? 0;
  const entries = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutNulls(member)]));
}

test('a merge patch does what the pseudo-code of RFC 7396 does, and changes neither argument', () => {
  fc.assert(
    fc.property(tree, tree, (target, patch) => {
      const before = JSON.stringify([target, patch]);
      assert.deepEqual(mergePatch(target, patch), model(target, patch));
      assert.equal(JSON.stringify([target, patch]), before);
    }),
    bounds,
  );
});

test('a merge patch applied twice is the same as once', () => {
  fc.assert(
    fc.property(tree, tree, (target, patch) => {
      const once = mergePatch(target, patch);
      assert.deepEqual(mergePatch(once, patch), once);
    }),
    bounds,
  );
});

test('every document without nulls is reached from every other by their difference', () => {
  fc.assert(
    fc.property(tree, tree, (before, given) => {
      const after = withoutNulls(given);
      assert.deepEqual(mergePatch(before, difference(before, after)), after);
    }),
    bounds,
  );
});
