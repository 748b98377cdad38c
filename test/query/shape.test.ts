import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseQueryString } from '../../src/http/syntax/query-string.ts';
import { compileForm } from '../../src/resources/query/form-query.ts';
import { compileJson } from '../../src/resources/query/json-query.ts';
import { shapeOf } from '../../src/resources/query/list-query.ts';
import { compileSql } from '../../src/resources/query/sql-query.ts';
import { askedOf, limits, products } from './shop.ts';

const form = (text: string) => shapeOf(askedOf(compileForm(parseQueryString(text) ?? [], products, limits)));
const json = (value: unknown) => shapeOf(askedOf(compileJson(value, products, limits)));
const sql = (text: string) => shapeOf(askedOf(compileSql(text, products, limits)));

describe('the shape', () => {
  const same: readonly (readonly [one: string, other: string])[] = [
    ['name=a&price=1', 'price=1&name=a'],
    ['price=1&price=2', 'price=2&price=1'],
    ['price=1&price=2', 'price[in]=2,1,1'],
    ['price=1', 'price[eq]=1.0'],
    ['fields=name,price', 'fields=price,name,price'],
    ['sort=price', 'sort=price,id,name'],
    ['sort=-price', 'sort=price&order=desc'],
    ['q=red+lamp', 'q=Lamp+RED'],
    ['tags[in]=a,b', 'tags[in]=b,a'],
    ['limit=5&page=2', 'per_page=6&cursor=abc'],
  ];
  for (const [one, other] of same) {
    test(`is the same for ${one} and ${other}`, () => assert.equal(form(one), form(other)));
  }

  const different: readonly string[] = [
    ...['', 'name=a', 'name=b', 'name[ne]=a', 'name[like]=a', 'name[null]=true', 'name[null]=false'],
    ...['categoryId=a', 'tags=a', 'price=1', 'price=2', 'price=1&price=2', 'price[gt]=1', 'price[gte]=1'],
    ...[
      'sort=price',
      'sort=-price',
      'sort=price,name',
      'sort=name,price',
      'fields=name',
      'fields=name,price',
    ],
    ...[
      'q=a',
      'q=b',
      'q=a+b',
      'name=a&price=1',
      'name="a","b"',
      'name=a&name=b',
      'order=desc',
      'name=always',
    ],
  ];
  test('is different for queries that mean something else', () => {
    assert.equal(new Set(different.map(form)).size, different.length);
  });

  test('is the same whichever way the query was asked', () => {
    const shape = form('price[gte]=1&name=a&sort=-price&fields=name');
    assert.equal(
      json({ filter: { name: 'a', price: { gte: 1 } }, sort: ['-price'], fields: ['name'] }),
      shape,
    );
    assert.equal(sql("SELECT name FROM products WHERE name = 'a' AND price >= 1 ORDER BY price DESC"), shape);
  });

  test('is never longer than 256 characters', () => {
    const [one, other] = ['a', 'b'].map((letter) => form(`name=${letter.repeat(5000)}`));
    assert.ok((one?.length ?? 0) <= 256 && one?.startsWith('#'));
    assert.notEqual(one, other);
  });
});
