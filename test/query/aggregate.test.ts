/** Aggregate queries (§4.18): the same compiled form from JSON and SQL, and what both refuse. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileJson } from '../../src/resources/query/json-query.ts';
import { type Asked, shapeOf } from '../../src/resources/query/list-query.ts';
import { compileSql } from '../../src/resources/query/sql-query.ts';
import { askedOf, faultsOf, fields, limits, plain, products, sortNames } from './shop.ts';

const json = (value: unknown, target = products) => compileJson(value, target, limits);
const sql = (text: string, target = products) => compileSql(text, target, limits);

/** What a query computes, by names. */
function described(asked: Asked) {
  const { aggregation, sort } = asked;
  assert.ok(aggregation !== undefined);
  return {
    groupBy: aggregation.groupBy.map(({ name }) => name),
    measures: aggregation.measures.map((each) =>
      each.of === 'rows' ? 'rows' : `${each.of} ${each.field.name}`,
    ),
    shown: aggregation.shown.map(({ name }) => name),
    having: plain(aggregation.having),
    sort: sortNames(sort),
  };
}

describe('an aggregate query', () => {
  test('is the same in JSON and in SQL', () => {
    const written = json({
      filter: { published: true },
      groupBy: ['categoryId'],
      aggregate: { count: true, avg: ['price'] },
      having: { count: { gt: 2 } },
      sort: ['-avg_price'],
      limit: 5,
    });
    const selected = sql(
      `SELECT categoryId, count(*), avg(price) FROM products WHERE published = true
        GROUP BY categoryId HAVING count(*) > 2 ORDER BY avg(price) DESC LIMIT 5`,
    );
    const wanted = {
      groupBy: ['categoryId'],
      measures: ['rows', 'avg price'],
      shown: ['categoryId', 'count', 'avg_price'],
      having: { op: 'gt', field: 'count', value: 2 },
      sort: ['-avg_price', 'categoryId'],
    };
    assert.deepEqual(described(askedOf(written)), wanted);
    assert.deepEqual(described(askedOf(selected)), wanted);
    assert.equal(shapeOf(askedOf(written)), shapeOf(askedOf(selected)));
    assert.equal(askedOf(written).limit, 5);
  });

  test('names its results, in JSON by an object and in SQL by AS', () => {
    const wanted = { groupBy: [], measures: ['sum stock', 'max createdAt'], shown: ['left', 'newest'] };
    const written = json({ aggregate: { sum: { left: 'stock' }, max: { newest: 'createdAt' } } });
    const selected = sql('SELECT sum(stock) AS left_, max(createdAt) newest FROM products');
    assert.deepEqual(described(askedOf(written)), { ...wanted, having: { op: 'always' }, sort: [] });
    assert.deepEqual(described(askedOf(selected)).shown, ['left_', 'newest']);
  });

  test('counts resources by true, and values by a field', () => {
    const asked = askedOf(json({ aggregate: { count: { all: true, named: 'name' } } }));
    assert.deepEqual(described(asked).measures, ['rows', 'count name']);
    assert.deepEqual(described(askedOf(sql('SELECT count(*), count(name) FROM products'))).shown, [
      'count',
      'count_name',
    ]);
  });

  test('groups without computing, which gives the distinct values', () => {
    assert.deepEqual(described(askedOf(json({ groupBy: 'stock' }))).shown, ['stock']);
    assert.deepEqual(described(askedOf(sql('SELECT stock AS n FROM products GROUP BY stock'))).shown, ['n']);
  });

  test('filters and orders in SQL by an aggregate that it does not select', () => {
    const asked = askedOf(
      sql(`SELECT categoryId FROM products GROUP BY categoryId
        HAVING sum(stock) > 10 AND NOT (count(*) = 1) AND categoryId <> 'x' ORDER BY max(price) DESC`),
    );
    const found = described(asked);
    assert.deepEqual(found.measures, ['max price', 'sum stock', 'rows']);
    assert.deepEqual(found.shown, ['categoryId']);
    assert.deepEqual(found.sort, ['-max(price)', 'categoryId']);
  });

  test('shows the columns of SQL in the order of SELECT, under their names', () => {
    const asked = askedOf(
      sql(
        'SELECT count(*) n, address.city AS city, stock FROM products GROUP BY stock, address.city ORDER BY city, n',
      ),
    );
    assert.deepEqual(described(asked).shown, ['n', 'city', 'stock']);
    assert.deepEqual(described(asked).sort, ['address.city', 'n', 'stock']);
  });

  test('has a shape of its own for each difference', () => {
    const base = { groupBy: ['stock'], aggregate: { count: true } };
    const others = [
      { ...base, groupBy: ['name'] },
      { ...base, aggregate: { count: { n: true } } },
      { ...base, aggregate: { count: ['name'] } },
      { ...base, having: { count: 1 } },
      { ...base, having: { count: 2 } },
      { ...base, sort: ['-count'] },
      { ...base, filter: { stock: 1 } },
      { filter: {} },
    ];
    const shapes = [base, ...others].map((each) => shapeOf(askedOf(json(each))));
    assert.equal(new Set(shapes).size, shapes.length);
  });
});

describe('an aggregate query in JSON', () => {
  const refusals: readonly (readonly [unknown, string, RegExp])[] = [
    [{ aggregate: {} }, '', /computes at least one value/],
    [{ having: { count: 1 } }, '/having/count', /unknown field "count"/],
    [{ aggregate: 5 }, '/aggregate', /takes an object of count, sum, avg, min, max, not 5/],
    [{ aggregate: { median: ['price'] } }, '/aggregate', /unknown function "median"/],
    [{ aggregate: { sum: true } }, '/aggregate/sum', /takes a field, not true/],
    [{ aggregate: { sum: ['name'] } }, '/aggregate/sum/0', /"name" is not one; numbers: price, stock, limit/],
    [{ aggregate: { max: ['tags'] } }, '/aggregate/max/0', /"tags" is an array or an object/],
    [{ aggregate: { max: ['secret'] } }, '/aggregate/max/0', /unknown field "secret"/],
    [{ groupBy: ['address'] }, '/groupBy/0', /"address" is an array or an object/],
    [{ groupBy: ['name', 'name'] }, '/groupBy/1', /names "name" twice/],
    [
      { groupBy: ['name'], aggregate: { min: { name: 'price' } } },
      '/aggregate/min',
      /two results are named "name"/,
    ],
    [{ aggregate: { min: { 'a b': 'price' } } }, '/aggregate/min', /the name of a result/],
    [{ aggregate: { min: { and: 'price' } } }, '/aggregate/min', /the name of a result/],
    [{ aggregate: { count: true }, fields: ['name'] }, '/fields', /an aggregate query has results/],
    [{ aggregate: { count: true }, sort: ['name'] }, '/sort/0', /unknown field "name"; fields: count/],
    [{ aggregate: { count: true }, having: { count: 'x' } }, '/having/count', /takes an integer/],
    [
      { aggregate: { count: ['name', 'price', 'stock', 'limit', 'id', 'createdAt', 'and'] } },
      '/aggregate/count/6',
      /at most 6/,
    ],
  ];
  for (const [value, pointer, message] of refusals) {
    test(`is unprocessable: ${JSON.stringify(value)}`, () => {
      const [found] = faultsOf(json(value));
      assert.equal(found?.kind, 'unprocessable');
      assert.match(found?.message ?? '', message);
      assert.equal(found?.pointer ?? '', pointer);
    });
  }
});

describe('an aggregate query in SQL', () => {
  const refusals: readonly (readonly [string, RegExp])[] = [
    ['SELECT name, count(*) FROM products', /"name" must be in GROUP BY/],
    ['SELECT *, count(*) FROM products', /GROUP BY and aggregates, not \*/],
    ['SELECT sum(*) FROM products', /sum takes a field/],
    ['SELECT sum(name) FROM products', /"name" is not one/],
    ['SELECT sum(price, stock) FROM products', /write sum as sum\(field\)/],
    ['SELECT sum(price + 1) FROM products', /sum takes a field, not the operator \+/],
    ['SELECT sum(sum(price)) FROM products', /an aggregate takes a field/],
    ['SELECT count(DISTINCT name) FROM products', /DISTINCT is not allowed/],
    ['SELECT count(*) FILTER (WHERE price > 1) FROM products', /the function filter is not allowed/],
    ['SELECT sum(price) OVER () FROM products', /the function over is not allowed/],
    ['SELECT max(tags) FROM products', /"tags" is an array/],
    ['SELECT count(*) FROM products GROUP BY 1', /GROUP BY takes fields, not a literal/],
    ['SELECT count(*) FROM products GROUP BY secret', /unknown field "secret"/],
    ['SELECT count(*) FROM products WHERE count(*) > 1', /the function count is not allowed in a condition/],
    ['SELECT stock FROM products GROUP BY stock HAVING secret > 1', /unknown field "secret"/],
    ['SELECT stock FROM products GROUP BY stock HAVING sum(secret) > 1', /unknown field "secret"/],
    ['SELECT stock FROM products GROUP BY stock HAVING stddev(price) > 1', /the function stddev/],
    ['SELECT stock FROM products GROUP BY stock ORDER BY price', /unknown field "price"; fields: stock/],
    ['SELECT count(*) n, sum(price) n FROM products', /two results are named "n"/],
  ];
  for (const [text, message] of refusals) {
    test(`is unprocessable: ${text}`, () => {
      const [found] = faultsOf(sql(text));
      assert.equal(found?.kind, 'unprocessable');
      assert.match(found?.message ?? '', message);
    });
  }
});

test('names only the fields that aggregates may name, where others are given', () => {
  const createdAt = fields.get('createdAt');
  assert.ok(createdAt !== undefined);
  const target = { ...products, aggregated: new Map([['createdAt', createdAt]]) };
  const refused =
    /"price" cannot be aggregated, because the collection changes what is read; fields: createdAt/;
  for (const compiled of [
    json({ aggregate: { max: ['price'] } }, target),
    json({ groupBy: ['price'] }, target),
    sql('SELECT max(price) FROM products', target),
    sql('SELECT createdAt FROM products GROUP BY createdAt ORDER BY min(price)', target),
  ]) {
    assert.match(faultsOf(compiled)[0]?.message ?? '', refused);
  }
  askedOf(json({ filter: { price: 1 }, aggregate: { count: true, max: ['createdAt'] } }, target));
});
