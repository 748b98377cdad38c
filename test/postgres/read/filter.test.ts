/** Texts of filters, which say nothing of the values; test/contract holds what they mean to `matches`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Filter } from '../../../src/model/filter.ts';
import { bindValues, Parameters } from '../../../src/store/postgres/compile/expressions.ts';
import { compileFilter, likePattern, shapeOfFilter } from '../../../src/store/postgres/compile/filter.ts';
import { fields } from '../../contract/fixture.ts';

function compiled(filter: Filter, hidden = false) {
  const parameters = new Parameters(hidden);
  const { shape, key, values } = shapeOfFilter(filter);
  const sql = compileFilter(shape, parameters, { name: 'things', schema: 'public', steered: hidden });
  return { sql, key, values: bindValues(parameters.list, values) };
}

test('writes the same text for every value, and for lists of any length', () => {
  const pairs: readonly (readonly [Filter, Filter])[] = [
    [
      { op: 'eq', field: fields.name, value: 'a' },
      { op: 'eq', field: fields.name, value: `'; DROP TABLE things; --` },
    ],
    [
      { op: 'in', field: fields.price, values: [1] },
      { op: 'in', field: fields.price, values: [1, 2.5, 3] },
    ],
    [
      { op: 'like', field: fields.name, pattern: 'a%' },
      { op: 'like', field: fields.name, pattern: '\\' },
    ],
    [
      { op: 'has', field: fields.tags, value: null },
      { op: 'has', field: fields.tags, value: '"]' },
    ],
    [
      { op: 'search', terms: ['a', 'b'] },
      { op: 'search', terms: ['', `'`] },
    ],
  ];
  for (const [one, other] of pairs) assert.equal(compiled(one).sql, compiled(other).sql);
});

test('gives every mark its type, and hides values of kept statements in subselects', () => {
  const filter: Filter = {
    op: 'and',
    filters: [
      { op: 'gte', field: fields.createdAt, value: '2024-01-01T00:00:00.000Z' },
      { op: 'in', field: fields.name, values: ['a'] },
    ],
  };
  const plain = compiled(filter);
  assert.deepEqual(plain.values, [1_704_067_200_000, ['a']]);
  assert.match(plain.sql, /^\(created_at >= \$1::bigint AND .* = ANY \(\$2::text\[\]\)\)$/);
  assert.match(
    compiled(filter, true).sql,
    /created_at >= \(SELECT \$1::bigint\) .*\(\(SELECT \$2::text\[\]\)::text\[\]\)/,
  );
});

test('never sends U+0000, which no text of PostgreSQL holds, and compares with it all the same', () => {
  const nul = 'a\0b';
  assert.equal(compiled({ op: 'eq', field: fields.name, value: nul }).sql, 'FALSE');
  assert.equal(compiled({ op: 'ne', field: fields.name, value: nul }).sql, 'TRUE');
  assert.equal(compiled({ op: 'in', field: fields.name, values: [nul] }).sql, 'FALSE');
  assert.equal(compiled({ op: 'has', field: fields.tags, value: nul }).sql, 'FALSE');
  assert.equal(compiled({ op: 'like', field: fields.name, pattern: nul }).sql, 'FALSE');
  assert.equal(compiled({ op: 'search', terms: ['a', nul] }).sql, 'FALSE');
  for (const [op, written] of [
    ['gt', '>'],
    ['gte', '>'],
    ['lt', '<='],
    ['lte', '<='],
  ] as const) {
    const { sql, values } = compiled({ op, field: fields.name, value: nul });
    assert.ok(sql.endsWith(` ${written} $1::text`), sql);
    assert.deepEqual(values, ['a']);
  }
});

test('doubles a backslash that ends a pattern, unless it is itself escaped', () => {
  assert.deepEqual(['', '\\', 'a\\', 'a\\\\', '\\\\\\', '\\%'].map(likePattern), [
    '',
    '\\\\',
    'a\\\\',
    'a\\\\',
    '\\\\\\\\',
    '\\%',
  ]);
});
