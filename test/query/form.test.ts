import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseQueryString } from '../../src/http/syntax/query-string.ts';
import { compileForm } from '../../src/resources/query/form-query.ts';
import type { Compiled } from '../../src/resources/query/list-query.ts';
import { askedOf, faultsOf, limits, plain, products, sortNames } from './shop.ts';

function compile(text: string): Compiled {
  const pairs = parseQueryString(text);
  assert.ok(pairs, 'the query string of a test must parse');
  return compileForm(pairs, products, limits);
}

const filterOf = (text: string) => plain(askedOf(compile(text)).filter);
const sortOf = (text: string) => sortNames(askedOf(compile(text)).sort).join(' ');
const fault = (text: string) => faultsOf(compile(text))[0];

describe('an empty query', () => {
  test('asks for the first page of everything, ordered by id', () => {
    assert.deepEqual(askedOf(compile('')), {
      filter: { op: 'always' },
      sort: [{ field: products.fields.get('id'), direction: 'asc' }],
      limit: 20,
      position: { from: 'start' },
      select: undefined,
      page: undefined,
      source: [],
    });
  });

  test('stays empty with a credential in api_key, which no link repeats', () => {
    assert.deepEqual(compile('api_key=sk_secret&api_key=again'), compile(''));
  });
});

describe('filters', () => {
  const cases: readonly (readonly [title: string, text: string, filter: unknown])[] = [
    ['compares a string', 'name=Lamp', { op: 'eq', field: 'name', value: 'Lamp' }],
    ['takes an empty value as the empty string', 'name=', { op: 'eq', field: 'name', value: '' }],
    ['compares with the text null', 'name=null', { op: 'eq', field: 'name', value: 'null' }],
    ['finds what is absent or null', 'price[null]=true', { op: 'eq', field: 'price', value: null }],
    ['finds what is there', 'tags[null]=false', { op: 'ne', field: 'tags', value: null }],
    ['reads a number', 'price=1.50', { op: 'eq', field: 'price', value: 1.5 }],
    ['reads a number with an exponent', 'price=1e2', { op: 'eq', field: 'price', value: 100 }],
    ['reads an integer', 'stock=-3', { op: 'eq', field: 'stock', value: -3 }],
    ['reads a boolean', 'published=false', { op: 'eq', field: 'published', value: false }],
    [
      'reads a date as midnight in UTC',
      'createdAt[gte]=2026-01-31',
      { op: 'gte', field: 'createdAt', value: '2026-01-31T00:00:00.000Z' },
    ],
    [
      'widens a repeated field to any of its values',
      'price=1&price=2',
      { op: 'in', field: 'price', values: [1, 2] },
    ],
    ['keeps one of equal values', 'price=1&price=1.0', { op: 'eq', field: 'price', value: 1 }],
    ['splits in at commas', 'price[in]=1,100', { op: 'in', field: 'price', values: [1, 100] }],
    ['adds up a repeated in', 'price[in]=1,2&price[in]=3', { op: 'in', field: 'price', values: [1, 2, 3] }],
    ['does not split an equality at commas', 'name=a,b', { op: 'eq', field: 'name', value: 'a,b' }],
    ['takes eq for what it is', 'name[eq]=a', { op: 'eq', field: 'name', value: 'a' }],
    ['negates', 'name[ne]=a', { op: 'ne', field: 'name', value: 'a' }],
    ['matches a pattern', 'name[like]=La%25', { op: 'like', field: 'name', pattern: 'La%' }],
    [
      'joins different conditions',
      'price[gt]=1&price[lte]=9&name=a',
      {
        op: 'and',
        filters: [
          { op: 'gt', field: 'price', value: 1 },
          { op: 'lte', field: 'price', value: 9 },
          { op: 'eq', field: 'name', value: 'a' },
        ],
      },
    ],
    [
      'narrows with a repeated operator that is no equality',
      'name[ne]=a&name[ne]=b',
      {
        op: 'and',
        filters: [
          { op: 'ne', field: 'name', value: 'a' },
          { op: 'ne', field: 'name', value: 'b' },
        ],
      },
    ],
    ['takes an array field by membership', 'tags=new', { op: 'has', field: 'tags', value: 'new' }],
    [
      'takes any of several members',
      'sizes[in]=1,2',
      {
        op: 'or',
        filters: [
          { op: 'has', field: 'sizes', value: 1 },
          { op: 'has', field: 'sizes', value: 2 },
        ],
      },
    ],
    ['excludes a member', 'tags[ne]=old', { op: 'not', filter: { op: 'has', field: 'tags', value: 'old' } }],
    ['reaches a nested field', 'address.city=Ulm', { op: 'eq', field: 'address.city', value: 'Ulm' }],
    ['reaches a field named like a parameter', 'limit[eq]=5', { op: 'eq', field: 'limit', value: 5 }],
    ['folds and splits search terms', 'q=Red+LAMP+red', { op: 'search', terms: ['red', 'lamp'] }],
    ['takes a blank search for none', 'q=+', { op: 'always' }],
  ];
  for (const [title, text, filter] of cases) {
    test(`${title}: ${text}`, () => assert.deepEqual(filterOf(text), filter));
  }
});

describe('sort', () => {
  const cases: readonly (readonly [title: string, text: string, keys: string])[] = [
    ['ends with the id', 'sort=price', 'price id'],
    ['gives the id the direction of the last key', 'sort=name,-price', 'name -price -id'],
    ['takes order for keys without a prefix', 'sort=price,name&order=desc', '-price -name -id'],
    ['leaves a prefixed key descending', 'sort=-price,name&order=asc', '-price name id'],
    ['takes order=desc beside a prefix', 'sort=-price,name&order=desc', '-price -name -id'],
    ['takes order alone for the id', 'order=desc', '-id'],
    ['drops what comes after the id', 'sort=price,-id,name', 'price -id'],
  ];
  for (const [title, text, keys] of cases) test(`${title}: ${text}`, () => assert.equal(sortOf(text), keys));
});

describe('pages', () => {
  test('takes limit, and per_page for the same', () => {
    assert.equal(askedOf(compile('limit=1')).limit, 1);
    assert.equal(askedOf(compile('per_page=1000')).limit, 1000);
  });

  test('takes the first page for the start, and keeps its number for links', () => {
    const asked = askedOf(compile('page=1'));
    assert.deepEqual(asked.position, { from: 'start' });
    assert.equal(asked.page, 1);
  });

  test('takes a later page by number', () => {
    assert.deepEqual(askedOf(compile('page=3&limit=5')).position, { from: 'page', page: 3 });
  });

  test('lets a cursor decide and a page number beside it only label', () => {
    const asked = askedOf(compile('page=3&cursor=abc&sort=price'));
    assert.deepEqual(asked.position, { from: 'cursor', cursor: 'abc' });
    assert.equal(asked.page, 3);
  });

  test('gives links everything but the place and the credential', () => {
    const { source } = askedOf(compile('page=3&name=a&cursor=abc&sort=price&api_key=sk_x&limit=5'));
    assert.deepEqual(source, [
      ['name', 'a'],
      ['sort', 'price'],
      ['limit', '5'],
    ]);
  });
});

test('selects fields in the order of the collection, each once', () => {
  const names = askedOf(compile('fields=price,address.city,name,price')).select?.map(({ name }) => name);
  assert.deepEqual(names, ['name', 'price', 'address.city']);
});

describe('faults', () => {
  const cases: readonly (readonly [text: string, parameter: string, message: RegExp])[] = [
    ['prize=1', 'prize', /^unknown field "prize"; fields: id, name, price/],
    ['prize[gt]=1', 'prize[gt]', /^unknown field "prize"/],
    ['=1', '', /^unknown field ""/],
    ['price[gt=1', 'price[gt', /^unknown field "price\[gt"/],
    [
      'price[above]=1',
      'price[above]',
      /^unknown operator "above" for "price"; operators: eq, ne, gt, gte, lt, lte, in, null$/,
    ],
    ['price[like]=1', 'price[like]', /^unknown operator "like"/],
    ['tags[gt]=a', 'tags[gt]', /^unknown operator "gt" for "tags"; operators: eq, ne, in, null$/],
    ['address=x', 'address', /^"address" can be selected, not compared$/],
    ['price=abc', 'price', /^price takes a number, not "abc"$/],
    ['price=', 'price', /^price takes a number, not ""$/],
    ['price=01', 'price', /takes a number/],
    ['price=+1', 'price', /takes a number/],
    ['price=NaN', 'price', /takes a number/],
    ['price=1e999', 'price', /takes a number/],
    ['price=12345678901234567890', 'price', /takes a number/],
    ['price=0x10', 'price', /takes a number/],
    ['stock=1.5', 'stock', /^stock takes an integer, not "1.5"$/],
    ['stock=-9007199254740993', 'stock', /not "-9007199254740993"; a double cannot keep it exactly$/],
    ['price[in]=1,,2', 'price[in]', /^price takes a number, not ""$/],
    ['published=yes', 'published', /^published takes true or false, not "yes"$/],
    ['price[null]=maybe', 'price[null]', /^price\[null\] takes true or false, not "maybe"$/],
    ['createdAt=yesterday', 'createdAt', /^createdAt takes a day, or an RFC 3339 date and time such as/],
    ['createdAt=2026-02-30', 'createdAt', /takes a day, or an RFC 3339 date and time/],
    ['name=a%00b', 'name', /^name takes a string without U\+0000/],
    ['name[like]=a%5C', 'name[like]', /^a pattern must not end in the escape character/],
    [
      `name[like]=${'a'.repeat(1001)}`,
      'name[like]',
      /^a pattern must have at most 1000 characters, not 1001$/,
    ],
    ['limit=0', 'limit', /^limit must be an integer from 1 to 1000, not "0"$/],
    ['limit=1001', 'limit', /^limit must be an integer from 1 to 1000/],
    ['limit=abc', 'limit', /^limit must be an integer/],
    ['limit=1.0', 'limit', /^limit must be an integer/],
    ['limit=', 'limit', /^limit must be an integer/],
    ['per_page=-1', 'per_page', /^per_page must be an integer/],
    ['limit=1&per_page=1', 'per_page', /^limit and per_page are the same/],
    ['page=0', 'page', /^page must be an integer from 1 to 1000000000, not "0"$/],
    ['page=1000000001', 'page', /^page must be an integer/],
    ['limit=1&limit=1', 'limit', /^limit is given more than once$/],
    ['sort=price&sort=-price', 'sort', /^sort names "price" twice$/],
    ['sort=price&sort=', 'sort', /^sort has an empty field name$/],
    ['fields=name&fields=prize', 'fields', /^unknown field "prize"/],
    ['limit[]=1', 'limit[]', /^unknown operator "" for "limit"/],
    ['order=asc&order=asc', 'order', /^order is given more than once$/],
    ['cursor=a&cursor=b', 'cursor', /^cursor is given more than once$/],
    ['q=a&q=b', 'q', /^q is given more than once$/],
    ['sort=prize', 'sort', /^unknown field "prize"/],
    ['sort=', 'sort', /^sort has an empty field name$/],
    ['sort=price,', 'sort', /^sort has an empty field name$/],
    ['sort=--price', 'sort', /^unknown field "-price"/],
    ['sort=price,-price', 'sort', /^sort names "price" twice$/],
    ['sort=tags', 'sort', /^cannot sort by "tags"; sortable fields: id, name/],
    ['sort=address', 'sort', /^cannot sort by "address"/],
    [
      'sort=name,price,categoryId,stock,published,address.city,limit,and,createdAt',
      'sort',
      /^sort takes at most 8 fields$/,
    ],
    ['order=up', 'order', /^order must be asc or desc, not "up"$/],
    ['fields=', 'fields', /^fields has an empty field name$/],
    ['fields=name,prize', 'fields', /^unknown field "prize"/],
    ['q=a+b+c+d', 'q', /^q takes at most 3 words, not 4$/],
    [`q=${'a'.repeat(201)}`, 'q', /^a word of q must have at most 200 characters/],
    ['price[in]=1,2,3,4,5,6', 'price[in]', /^"price" takes at most 5 values$/],
    ['price=1&price=2&price=3&price=4&price=5&price=6', 'price', /^"price" takes at most 5 values$/],
  ];
  for (const [text, parameter, message] of cases) {
    test(`refuses ${text.slice(0, 60)} as unprocessable`, () => {
      const found = fault(text);
      assert.match(found?.message ?? '', message);
      assert.equal(found?.kind, 'unprocessable');
      assert.equal(found?.parameter, parameter);
      assert.equal(found?.pointer, undefined);
    });
  }

  test('refuses an empty cursor as malformed', () => {
    assert.deepEqual(fault('cursor='), {
      kind: 'malformed',
      message: 'cursor is empty; use nextCursor of a page',
      parameter: 'cursor',
    });
  });

  test('refuses q where nothing can be searched', () => {
    const compiled = compileForm([['q', 'a']], { ...products, searched: false }, limits);
    assert.equal(faultsOf(compiled)[0]?.message, 'products has no text to search with q');
  });

  test('takes as many filters as the limit and not one more', () => {
    const filters = Array.from({ length: limits.filterNodesMax }, (_, index) => `name[ne]=${index}`).join(
      '&',
    );
    askedOf(compile(filters));
    assert.equal(fault(`${filters}&price=1`)?.message, 'a query takes at most 12 filters');
  });

  test('takes as many values as the limit', () => {
    assert.deepEqual(filterOf('price[in]=1,2,3,4,5'), { op: 'in', field: 'price', values: [1, 2, 3, 4, 5] });
  });

  test('tells several faults at once, and no more than the limit', () => {
    assert.equal(faultsOf(compile('a=1&limit=0&sort=b')).length, 3);
    assert.equal(faultsOf(compile('a=1&b=1&c=1&d=1&e=1&f=1&g=1')).length, limits.validationErrorsMax);
  });

  test('echoes at most 64 characters and cuts no character in half', () => {
    const { message, parameter } = fault(`${'x'.repeat(62)}%F0%9F%98%80${'x'.repeat(5000)}=1`) ?? {};
    const start = `unknown field "${'x'.repeat(62)}…"; fields: `;
    assert.ok(message?.startsWith(start), String(message));
    assert.ok(message?.isWellFormed());
    assert.ok((parameter?.length ?? 0) <= 64);
  });

  test('lists no more field names than a message may hold', () => {
    const many = new Map(
      Array.from({ length: 1000 }, (_, index) => {
        const name = `field${index}`;
        return [name, { name, path: [name], type: 'string' as const }];
      }),
    );
    const compiled = compileForm([['nope', '1']], { table: 't', fields: many, searched: false }, limits);
    const message = faultsOf(compiled)[0]?.message ?? '';
    assert.ok(message.endsWith(', ...') && message.length < 400, message);
  });
});
