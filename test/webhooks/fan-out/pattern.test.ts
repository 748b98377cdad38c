/** Patterns of event types, one by one and by the index. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { eventPatternFault, matchesEventPattern, PatternIndex } from '../../../src/model/event.ts';

const cases: readonly (readonly [pattern: string, matching: readonly string[], others: readonly string[]])[] =
  [
    [
      'products.created',
      ['products.created'],
      ['products.created.again', 'products', 'products.create', 'xproducts.created'],
    ],
    [
      'products.*',
      ['products.created', 'products.a.b', 'products.x'],
      ['products', 'products.', 'productsx.a', 'productss.a', 'a.products.b'],
    ],
    ['a.b.*', ['a.b.c', 'a.b.c.d'], ['a.b', 'a.bc', 'a.c.b']],
    ['*', ['products.created', 'endpoint.failing', 'one'], []],
  ];

for (const [pattern, matching, others] of cases) {
  test(`the pattern ${pattern} matches what it says and nothing else`, () => {
    const index = new PatternIndex<string>();
    index.add('it', [pattern]);
    for (const type of matching) {
      assert.equal(matchesEventPattern(pattern, type), true, type);
      assert.deepEqual(index.find(type), ['it'], type);
    }
    for (const type of others) {
      assert.equal(matchesEventPattern(pattern, type), false, type);
      assert.deepEqual(index.find(type), [], type);
    }
  });
}

test('takes patterns of types and stars at their end, and says what is wrong with others', () => {
  for (const fine of ['*', 'a', 'a.b', 'a.*', 'invoice.paid', 'my-app.x_1.*'])
    assert.equal(eventPatternFault(fine), undefined, fine);
  for (const bad of [
    '',
    '.*',
    '**',
    '*.created',
    'a.*.b',
    'a*',
    'a..b',
    '.a',
    'a.',
    'a b',
    'ü',
    'a.*.*',
    `${'a'.repeat(201)}`,
  ]) {
    assert.match(eventPatternFault(bad) ?? '', /^(must|may) have|^must be/, bad);
  }
});

test('finds by the index everyone whose patterns match, once', () => {
  const segment = fc.constantFrom('a', 'b', 'ab', 'c');
  const type = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('.'));
  const pattern = fc.oneof(
    type,
    type.map((text) => `${text}.*`),
    fc.constant('*'),
  );
  fc.assert(
    fc.property(fc.array(fc.array(pattern, { maxLength: 4 }), { maxLength: 8 }), type, (all, wanted) => {
      const index = new PatternIndex<number>();
      for (const [at, patterns] of all.entries()) index.add(at, patterns);
      // One that came and left leaves nothing behind.
      index.add(-1, [wanted, '*']);
      index.remove(-1, [wanted, '*']);
      const expected = all.flatMap((patterns, at) =>
        patterns.some((text) => matchesEventPattern(text, wanted)) ? [at] : [],
      );
      assert.deepEqual([...index.find(wanted)].sort(), expected);
    }),
    { numRuns: 300 },
  );
});
