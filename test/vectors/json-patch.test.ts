/** The official suite of JSON Patch (npm json-patch-test-suite: RFC 6902's own examples and the community's), whole. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';
import { jsonPatch, patchLimitsDefault } from '../../src/resources/document/json-patch.ts';

type Vector = {
  readonly comment?: string;
  readonly doc: never;
  readonly patch: readonly { readonly op: string }[];
  readonly expected?: unknown;
  readonly error?: string;
  readonly disabled?: boolean;
};

const load = createRequire(import.meta.url);

for (const file of ['spec_tests.json', 'tests.json']) {
  describe(`json-patch-test-suite ${file}`, () => {
    const vectors = load(`json-patch-test-suite/${file}`) as Vector[];
    for (const [index, vector] of vectors.entries()) {
      // An entry without a patch is a comment; the suite marks one vector as disabled, because it is open in the RFC.
      if (vector.patch === undefined || vector.disabled === true) continue;
      const title = vector.comment ?? vector.error ?? JSON.stringify(vector.patch).slice(0, 60);
      test(`${index}: ${title}`, () => {
        const before = structuredClone(vector.doc);
        const result = jsonPatch(vector.doc, vector.patch, patchLimitsDefault);
        assert.deepEqual(vector.doc, before, 'the input is never changed');
        if (vector.error !== undefined) assert.equal(result.ok, false, vector.error);
        else {
          assert.ok(result.ok, JSON.stringify(result));
          if ('expected' in vector) assert.deepEqual(result.value, vector.expected);
        }
      });
    }
  });
}

test('runs all 91 vectors of the suite', () => {
  const all = ['spec_tests.json', 'tests.json'].flatMap(
    (file) => load(`json-patch-test-suite/${file}`) as Vector[],
  );
  assert.equal(all.filter(({ patch, disabled }) => patch !== undefined && disabled !== true).length, 91);
});
