import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileForm } from '../../src/resources/query/form-query.ts';
import { compileJson } from '../../src/resources/query/json-query.ts';
import type { Compiled } from '../../src/resources/query/list-query.ts';
import { askedOf, faultsOf, limits, plain, products, sortNames } from './shop.ts';

const compile = (value: unknown): Compiled => compileJson(value, products, limits);
const filterOf = (filter: unknown) => plain(askedOf(compile({ filter })).filter);

describe('a query document', () => {
  test('that is empty, or all null, asks what an empty query string asks', () => {
    const plainly = { ...askedOf(compileForm([], products, limits)), source: undefined };
    assert.deepEqual(askedOf(compile({})), plainly);
    const nulls = { filter: null, sort: null, limit: null, cursor: null, page: null, fields: null, q: null };
    assert.deepEqual(askedOf(compile(nulls)), plainly);
  });

  test('asks the same as the query string of the same names', () => {
    const document = {
      filter: { price: { in: [1, 100] }, name: 'Lamp' },
      sort: ['-price', 'name'],
      limit: 5,
      page: 2,
      fields: ['name', 'price'],
      q: 'red',
    };
    const text = 'price[in]=1,100&name=Lamp&sort=-price,name&limit=5&page=2&fields=name,price&q=red';
    const pairs = text
      .split('&')
      .map((pair): [string, string] => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]);
    assert.deepEqual(askedOf(compile(document)), {
      ...askedOf(compileForm(pairs, products, limits)),
      source: undefined,
    });
  });

  test('takes comma lists for sort and fields', () => {
    assert.deepEqual(
      askedOf(compile({ sort: '-price,name', fields: 'name,price' })),
      askedOf(compile({ sort: ['-price', 'name'], fields: ['price', 'name'] })),
    );
  });

  test('takes an empty sort for none', () => {
    assert.deepEqual(sortNames(askedOf(compile({ sort: [] })).sort), ['id']);
  });

  test('carries on from a cursor', () => {
    assert.deepEqual(askedOf(compile({ cursor: 'abc' })).position, { from: 'cursor', cursor: 'abc' });
  });
});

describe('a filter', () => {
  const price = (op: string, value: unknown) => ({ op, field: 'price', value });
  const cases: readonly (readonly [title: string, filter: unknown, expected: unknown])[] = [
    ['holds for everything when empty', {}, { op: 'always' }],
    ['compares', { price: 10 }, price('eq', 10)],
    ['finds null', { price: null }, price('eq', null)],
    ['finds what is not null', { price: { ne: null } }, price('ne', null)],
    [
      'joins operators of one field',
      { price: { gte: 10, lt: 20 } },
      { op: 'and', filters: [price('gte', 10), price('lt', 20)] },
    ],
    ['takes eq and ne', { price: { eq: 1 } }, price('eq', 1)],
    ['takes membership', { price: { in: [2, 1, 2] } }, { op: 'in', field: 'price', values: [2, 1] }],
    ['holds for nothing with an empty in', { price: { in: [] } }, { op: 'never' }],
    [
      'takes null among the values',
      { price: { in: [1, null] } },
      { op: 'or', filters: [price('eq', 1), price('eq', null)] },
    ],
    ['matches a pattern', { name: { like: 'a%' } }, { op: 'like', field: 'name', pattern: 'a%' }],
    ['takes an array by membership', { tags: 'a' }, { op: 'has', field: 'tags', value: 'a' }],
    [
      'excludes a member',
      { tags: { ne: 'a' } },
      { op: 'not', filter: { op: 'has', field: 'tags', value: 'a' } },
    ],
    ['finds arrays that are null', { tags: null }, { op: 'eq', field: 'tags', value: null }],
    [
      'joins members and nested parts',
      { price: 1, or: [{ price: 2 }, { price: 3, name: 'a' }] },
      {
        op: 'and',
        filters: [
          price('eq', 1),
          {
            op: 'or',
            filters: [
              price('eq', 2),
              { op: 'and', filters: [price('eq', 3), { op: 'eq', field: 'name', value: 'a' }] },
            ],
          },
        ],
      },
    ],
    ['negates', { not: { price: 1 } }, { op: 'not', filter: price('eq', 1) }],
    ['holds for everything with an empty and', { and: [] }, { op: 'always' }],
    ['holds for nothing with an empty or', { or: [] }, { op: 'never' }],
    ['reaches a nested field', { 'address.city': 'Ulm' }, { op: 'eq', field: 'address.city', value: 'Ulm' }],
    [
      'normalises times',
      { createdAt: { gt: '2026-01-31T10:00:00Z' } },
      { op: 'gt', field: 'createdAt', value: '2026-01-31T10:00:00.000Z' },
    ],
    ['makes minus zero zero', { price: -0 }, price('eq', 0)],
  ];
  for (const [title, filter, expected] of cases) {
    test(`${title}: ${JSON.stringify(filter)}`, () => assert.deepEqual(filterOf(filter), expected));
  }
});

describe('faults', () => {
  const deep = { not: { not: { not: { not: { price: 1 } } } } };
  const cases: readonly (readonly [value: unknown, pointer: string, message: RegExp])[] = [
    [[], '', /^a query must be an object with the members filter, sort, .*, not an array$/],
    ['text', '', /not "text"$/],
    [null, '', /not null$/],
    [{ filtr: {} }, '', /^unknown member "filtr"; members: filter, sort/],
    [{ limit: 'abc' }, '/limit', /^limit must be an integer from 1 to 1000, not "abc"$/],
    [{ limit: 1.5 }, '/limit', /^limit must be an integer/],
    [{ limit: 0 }, '/limit', /not 0$/],
    [{ limit: 1001 }, '/limit', /not 1001$/],
    [{ page: 0 }, '/page', /^page must be an integer/],
    [{ page: '2' }, '/page', /not "2"$/],
    [{ cursor: 5 }, '/cursor', /^cursor takes a string, not 5$/],
    [{ q: ['a'] }, '/q', /^q takes a string, not an array$/],
    [{ sort: 5 }, '/sort', /^sort takes an array of field names, not 5$/],
    [{ sort: ['price', 5] }, '/sort/1', /^sort takes field names, not 5$/],
    [{ sort: ['price', '-prize'] }, '/sort/1', /^unknown field "prize"/],
    [{ sort: new Array(9).fill('price') }, '/sort', /^sort takes at most 8 names, not 9$/],
    [{ fields: ['name', 'prize'] }, '/fields/1', /^unknown field "prize"/],
    [{ fields: [] }, '/fields', /^fields must name at least one field$/],
    [{ fields: {} }, '/fields', /^fields takes an array of field names, not an object$/],
    [{ filter: [] }, '/filter', /^a filter must be an object of fields, and, or and not; it is an array$/],
    [{ filter: { prize: 1 } }, '/filter/prize', /^unknown field "prize"/],
    [{ filter: { 'a/b~c': 1 } }, '/filter/a~1b~0c', /^unknown field/],
    [{ filter: { price: '10' } }, '/filter/price', /^price takes a number, not "10"$/],
    [{ filter: { price: true } }, '/filter/price', /not true$/],
    [{ filter: { name: 5 } }, '/filter/name', /^name takes a string without U\+0000, not 5$/],
    [{ filter: { stock: 1.5 } }, '/filter/stock', /takes an integer/],
    [{ filter: { price: { above: 1 } } }, '/filter/price/above', /^unknown operator "above" for "price"/],
    [{ filter: { price: { null: 1 } } }, '/filter/price/null', /^null takes true or false, not 1$/],
    [{ filter: { price: { gt: null } } }, '/filter/price/gt', /^price takes a number, not null$/],
    [{ filter: { price: {} } }, '/filter/price', /^"price" needs an operator, such as {"eq": ...}$/],
    [{ filter: { price: [1, 2] } }, '/filter/price', /use \{"in": \[...\]\}$/],
    [{ filter: { price: { in: 5 } } }, '/filter/price/in', /^in takes an array of values, not 5$/],
    [{ filter: { price: { in: [1, 'x'] } } }, '/filter/price/in/1', /^price takes a number, not "x"$/],
    [{ filter: { price: { in: [1, 2, 3, 4, 5, 6] } } }, '/filter/price/in', /at most 5 values, not 6$/],
    [{ filter: { name: { like: 'a\\' } } }, '/filter/name/like', /^a pattern must not end/],
    [
      { filter: { address: { city: 'Ulm' } } },
      '/filter/address',
      /^"address" can be selected, not compared$/,
    ],
    [{ filter: { and: { price: 1 } } }, '/filter/and', /^and takes an array of filters, not an object$/],
    [{ filter: { or: [{ price: 1 }, 5] } }, '/filter/or/1', /^a filter must be an object/],
    [{ filter: { not: deep } }, '/filter/not/not/not/not/not', /nest at most 4 levels$/],
    [{ filter: { name: 'a\0b' } }, '/filter/name', /without U\+0000/],
  ];
  for (const [value, pointer, message] of cases) {
    test(`refuses ${JSON.stringify(value).slice(0, 60)} as unprocessable, at "${pointer}"`, () => {
      const [found] = faultsOf(compile(value));
      assert.match(found?.message ?? '', message);
      assert.deepEqual([found?.kind, found?.pointer], ['unprocessable', pointer]);
    });
  }

  test('takes as much nesting as the limit', () => {
    askedOf(compile({ filter: deep }));
  });

  test('takes as many comparisons and connectives as the limit and not one more', () => {
    const parts = (count: number) => ({
      filter: { or: Array.from({ length: count }, () => ({ price: 1 })) },
    });
    askedOf(compile(parts(limits.filterNodesMax - 1)));
    const faults = faultsOf(compile(parts(limits.filterNodesMax)));
    assert.deepEqual(
      faults.map(({ message, pointer }) => [message, pointer]),
      [['a filter takes at most 12 comparisons and connectives', '/filter']],
    );
  });

  test('refuses an empty cursor as malformed', () => {
    assert.equal(faultsOf(compile({ cursor: '' }))[0]?.kind, 'malformed');
  });

  test('points to the parent of a name that is too long to echo', () => {
    const [found] = faultsOf(compile({ filter: { and: [{ ['x'.repeat(70)]: 1 }] } }));
    assert.equal(found?.pointer, '/filter/and/0');
  });
});
