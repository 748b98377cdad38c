/** Shapes of filters: what SQL text is made from, and by what compiled plans are kept. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Scalar } from '../../src/model/field.ts';
import type { Filter } from '../../src/model/filter.ts';
import { shapeFilter } from '../../src/store/filter-shape.ts';
import { Parameters } from '../../src/store/postgres/compile/expressions.ts';
import { compileFilter as postgresSql, shapeOfFilter } from '../../src/store/postgres/compile/filter.ts';
import { encoding, compileFilter as sqliteSql } from '../../src/store/sqlite/compile/filter.ts';
import { fields } from '../contract/fixture.ts';

const level = { name: 'things', schema: 'public', steered: true };
const scalar = fc.constantFrom<Scalar>('a', 'b', 'a\0', '', 1, 2, 0.5, 2 ** 60, true, false, null);
const field = fc.constantFrom(fields.name, fields.price, fields.live, fields.tags, fields.owner, fields.id);
const comparison = fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte');
const leaf = fc.oneof(
  fc.record({ op: comparison, field, value: scalar }),
  fc.record({ op: fc.constant('in'), field, values: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ op: fc.constant('has'), field, value: scalar }),
  fc.record({ op: fc.constant('like'), field, pattern: fc.constantFrom('a%', '_', '\0') }),
  fc.record({ op: fc.constant('search'), terms: fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 }) }),
  fc.record({ op: fc.constantFrom('always', 'never') }),
) as fc.Arbitrary<Filter>;
const filter = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.record({ op: fc.constantFrom('and', 'or'), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
    fc.record({ op: fc.constant('not'), filter: tie('filter') }),
    fc.record({
      op: fc.constant('related'),
      field: fc.constantFrom(fields.categoryId, fields.parentId, fields.owner),
      table: fc.constantFrom('categories', 'things'),
      filter: tie('filter'),
    }),
  ) as fc.Arbitrary<Filter>,
})).filter;

suite('the shape of a filter', () => {
  test('is the same for other values, and for lists of any length', () => {
    const keyOf = (of: Filter) => shapeFilter(of, encoding).key;
    const values = (count: number) => Array.from({ length: count }, (_, at) => `value ${at}`);
    const list = (count: number): Filter => ({ op: 'in', field: fields.name, values: values(count) });
    assert.equal(keyOf(list(1)), keyOf(list(1000)));
    assert.equal(
      keyOf({ op: 'eq', field: fields.name, value: 'a' }),
      keyOf({ op: 'eq', field: fields.name, value: 'b' }),
    );
    assert.notEqual(
      keyOf({ op: 'eq', field: fields.name, value: null }),
      keyOf({ op: 'eq', field: fields.name, value: 'b' }),
    );
  });

  test('makes one text of SQL in each engine', () => {
    const written = (of: Filter) => {
      const sqlite = shapeFilter(of, encoding);
      const postgres = shapeOfFilter(of);
      return [
        [sqlite.key, sqliteSql(sqlite.shape, [], '"things"')],
        [postgres.key, postgresSql(postgres.shape, new Parameters(true), level)],
      ] as const;
    };
    const textOf = new Map<string, string>();
    fc.assert(
      fc.property(filter, (of) => {
        for (const [engine, [key, sql]] of written(of).entries()) {
          const known = textOf.get(`${engine} ${key}`);
          assert.equal(known ?? sql, sql, key);
          textOf.set(`${engine} ${key}`, sql);
        }
      }),
      { numRuns: 3000 },
    );
    assert.ok(textOf.size > 100);
  });

  test('leaves no value of a client in the SQL', () => {
    const secret = 'Bobby Tables';
    const of: Filter = {
      op: 'and',
      filters: [
        { op: 'eq', field: fields.name, value: secret },
        { op: 'in', field: fields.name, values: [secret, null] },
        { op: 'has', field: fields.tags, value: secret },
        { op: 'like', field: fields.name, pattern: secret },
        { op: 'search', terms: [secret] },
        {
          op: 'related',
          field: fields.categoryId,
          table: 'categories',
          filter: { op: 'eq', field: fields.name, value: secret },
        },
      ],
    };
    assert.ok(!sqliteSql(shapeFilter(of, encoding).shape, [], '"things"').includes(secret));
    assert.ok(!postgresSql(shapeOfFilter(of).shape, new Parameters(true), level).includes(secret));
  });
});
