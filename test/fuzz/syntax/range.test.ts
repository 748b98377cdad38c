/** Any list of ranges: the extents are those of the octets that the ranges name, none of them twice, and not more than there may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { partsMax, selectExtents } from '../../../src/http/syntax/range.ts';
import { bounds } from './bounds.ts';

const bytes = 60;
const position = fc.integer({ min: 0, max: bytes + 5 });
const spec = fc.oneof(
  fc.tuple(position, position).map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const),
  position.map((first) => [first, undefined] as const),
  position.map((last) => [undefined, last] as const),
);

/** Each octet that a range names, the way the RFC says it, one by one. */
function named(specs: readonly (readonly [number | undefined, number | undefined])[]): ReadonlySet<number> {
  const octets = new Set<number>();
  for (const [first, last] of specs) {
    const start = first ?? Math.max(0, bytes - (last ?? 0));
    const end = first === undefined ? bytes - 1 : Math.min(last ?? bytes - 1, bytes - 1);
    for (let at = start; at <= end; at += 1) octets.add(at);
  }
  return octets;
}

test('selects each octet that a range names, once, in at most 16 extents that are apart', () => {
  fc.assert(
    fc.property(fc.array(spec, { minLength: 1, maxLength: 24 }), (specs) => {
      const text = specs.map(([first = '', last = '']) => `${first}-${last}`).join(', ');
      const octets = named(specs);
      const extents = selectExtents(`bytes=${text}`, bytes);
      if (extents === undefined) {
        const starts = [...octets].filter((at) => !octets.has(at - 1));
        assert.ok(starts.length > partsMax, text);
        return;
      }
      assert.ok(extents.length <= partsMax);
      const found = extents.flatMap(({ first, end }) =>
        Array.from({ length: end - first }, (_, at) => first + at),
      );
      assert.deepEqual(
        [...found].sort((one, other) => one - other),
        [...octets].sort((one, other) => one - other),
        text,
      );
      const ends = new Set(extents.map(({ end }) => end));
      assert.ok(extents.every(({ first }) => !ends.has(first)));
    }),
    bounds,
  );
});
