import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Compiled } from '../../src/resources/query/list-query.ts';
import { compileSql } from '../../src/resources/query/sql-query.ts';
import { sqlTokensMax } from '../../src/resources/query/sql-scan.ts';
import { askedOf, faultsOf, limits, plain, products, sortNames } from './shop.ts';

const compile = (text: string): Compiled => compileSql(text, products, limits);
const filterOf = (where: string) => plain(askedOf(compile(`SELECT * FROM products WHERE ${where}`)).filter);
const namesOf = (text: string) => askedOf(compile(text)).select?.map(({ name }) => name);
const sortOf = (order: string) =>
  sortNames(askedOf(compile(`SELECT * FROM products ORDER BY ${order}`)).sort).join(' ');

describe('SELECT', () => {
  test('of everything asks for the first page, ordered by id', () => {
    const asked = askedOf(compile('SELECT * FROM products'));
    assert.deepEqual(
      { ...asked, sort: sortNames(asked.sort) },
      {
        filter: { op: 'always' },
        sort: ['id'],
        limit: 20,
        position: { from: 'start' },
        select: undefined,
        page: undefined,
        source: undefined,
      },
    );
  });

  const texts: readonly (readonly [text: string, names: readonly string[] | undefined])[] = [
    ['SELECT price, name FROM products', ['name', 'price']],
    ['select NAME from PRODUCTS', ['name']],
    ['SELECT categoryId FROM products', ['categoryId']],
    ['SELECT "categoryId" FROM "products"', ['categoryId']],
    ['SELECT p.name, products.price FROM products AS p', ['name', 'price']],
    ['SELECT p.* FROM products p', undefined],
    ['SELECT *, name FROM products', undefined],
    ['SELECT address.city, "address.city", products.address FROM products', ['address', 'address.city']],
    ['SELECT ALL name FROM products;', ['name']],
    ["SELECT name -- it's a comment\nFROM /* nested /* ' */ \" */ products", ['name']],
  ];
  for (const [text, names] of texts) {
    test(`reads the fields of ${JSON.stringify(text)}`, () => assert.deepEqual(namesOf(text), names));
  }

  test('takes ORDER BY, LIMIT and OFFSET', () => {
    assert.equal(sortOf('price DESC, name'), '-price name id');
    assert.equal(sortOf('price ASC NULLS FIRST, "createdAt" DESC NULLS LAST'), 'price -createdAt -id');
    const asked = askedOf(compile('SELECT * FROM products LIMIT 5 OFFSET 10'));
    assert.equal(asked.limit, 5);
    assert.deepEqual(asked.position, { from: 'offset', offset: 10 });
    assert.deepEqual(askedOf(compile('SELECT * FROM products OFFSET 0')).position, { from: 'start' });
  });
});

describe('WHERE', () => {
  const price = (op: string, value: unknown) => ({ op, field: 'price', value });
  const there = { op: 'ne', field: 'price', value: null };
  const and = (...filters: readonly unknown[]) => ({ op: 'and', filters });
  const or = (...filters: readonly unknown[]) => ({ op: 'or', filters });
  const not = (filter: unknown) => ({ op: 'not', filter });
  const cases: readonly (readonly [where: string, filter: unknown])[] = [
    ['price = 10', price('eq', 10)],
    ['price <> 10', and(price('ne', 10), there)],
    ['price != 10', and(price('ne', 10), there)],
    ['price < 1.5', price('lt', 1.5)],
    ['10 <= price', price('gte', 10)],
    ['price > -5', price('gt', -5)],
    ['price > - 5', price('gt', -5)],
    ['price > 1e2', price('gt', 100)],
    ['price > -1.5E-3', price('gt', -0.0015)],
    ['price IN (.5e1, 2.e+2, 123456.789e-2)', { op: 'in', field: 'price', values: [5, 200, 1234.56789] }],
    ['price < 1e300', price('lt', 1e300)],
    ['price < 123456789012345680000', price('lt', 123_456_789_012_345_680_000)],
    ['NOT price = 10', and(price('ne', 10), there)],
    ['NOT (price > 1 AND price < 9)', or(price('lte', 1), price('gte', 9))],
    ['NOT NOT price = 10', price('eq', 10)],
    ['price = NULL', { op: 'never' }],
    ['NOT price = NULL', { op: 'never' }],
    ['price IS NULL', price('eq', null)],
    ['price IS NOT NULL', there],
    ['NOT price IS NULL', there],
    ['tags IS NULL', { op: 'eq', field: 'tags', value: null }],
    ['price IN (1)', price('eq', 1)],
    ['price IN (1, 2, 1)', { op: 'in', field: 'price', values: [1, 2] }],
    ['price IN (1, NULL)', price('eq', 1)],
    ['price NOT IN (1, 2)', and(not({ op: 'in', field: 'price', values: [1, 2] }), there)],
    ['price NOT IN (1, NULL)', { op: 'never' }],
    ['price BETWEEN 1 AND 9', and(price('gte', 1), price('lte', 9))],
    ['price NOT BETWEEN 1 AND 9', or(price('lt', 1), price('gt', 9))],
    ['price NOT BETWEEN NULL AND 9', price('gt', 9)],
    ["name LIKE 'L%'", { op: 'like', field: 'name', pattern: 'L%' }],
    [
      "name NOT LIKE 'L%'",
      and(not({ op: 'like', field: 'name', pattern: 'L%' }), { op: 'ne', field: 'name', value: null }),
    ],
    ["name = 'it''s'", { op: 'eq', field: 'name', value: "it's" }],
    ["name = 'SELECT (( -- /* '", { op: 'eq', field: 'name', value: 'SELECT (( -- /* ' }],
    ['published', { op: 'eq', field: 'published', value: true }],
    ['NOT published', { op: 'eq', field: 'published', value: false }],
    ['published IS NOT TRUE', not({ op: 'eq', field: 'published', value: true })],
    ['published IS FALSE', { op: 'eq', field: 'published', value: false }],
    ['(price > 1) IS NOT TRUE', not(price('gt', 1))],
    ["'new' = ANY(tags)", { op: 'has', field: 'tags', value: 'new' }],
    ["'new' = SOME (tags)", { op: 'has', field: 'tags', value: 'new' }],
    [
      "NOT 'new' = ANY(tags)",
      and(not({ op: 'has', field: 'tags', value: 'new' }), not({ op: 'has', field: 'tags', value: null }), {
        op: 'ne',
        field: 'tags',
        value: null,
      }),
    ],
    ['1 = 1', { op: 'always' }],
    ['1 = 2 OR price = 1', price('eq', 1)],
    ['true', { op: 'always' }],
    ['NOT (false OR NULL)', { op: 'never' }],
    ['"and" = \'x\'', { op: 'eq', field: 'and', value: 'x' }],
    ["address.city = 'Ulm'", { op: 'eq', field: 'address.city', value: 'Ulm' }],
    ["createdat >= '2026-01-31'", { op: 'gte', field: 'createdAt', value: '2026-01-31T00:00:00.000Z' }],
    [
      "price = 1 OR price = 2 AND name = 'a'",
      or(price('eq', 1), and(price('eq', 2), { op: 'eq', field: 'name', value: 'a' })),
    ],
  ];
  for (const [where, filter] of cases) {
    test(`compiles ${where}`, () => assert.deepEqual(filterOf(where), filter));
  }
});

describe('the grammar', () => {
  const same: readonly (readonly [where: string, other: string])[] = [
    ['NOT published AND price = 1', '(NOT published) AND (price = 1)'],
    ['NOT price = 1 OR published', '(NOT (price = 1)) OR published'],
    ['published OR NOT published AND price = 1', 'published OR ((NOT published) AND price = 1)'],
    [
      'price = 1 AND stock = 2 OR stock = 3 AND price = 4',
      '(price = 1 AND stock = 2) OR (stock = 3 AND price = 4)',
    ],
    ['price BETWEEN 1 AND 2 AND published', '(price BETWEEN 1 AND 2) AND published'],
    ['NOT price NOT BETWEEN 1 AND 2 OR published', '(price BETWEEN 1 AND 2) OR published'],
    ['NOT name IS NULL AND published', '(name IS NOT NULL) AND published'],
    ['name NOTNULL AND price ISNULL', 'name IS NOT NULL AND price IS NULL'],
    ["name ~~ 'a%' AND name !~~ 'b%'", "name LIKE 'a%' AND name NOT LIKE 'b%'"],
    ["name ~~* 'Ä%' AND name !~~* 'b%'", "name ILIKE 'ä%' AND name NOT ILIKE 'B%'"],
    ['price IN(1,-2)AND stock>=+3', 'price IN (1, -2) AND stock >= 3'],
    ['price = 1and stock = 2', 'price = 1 AND stock = 2'],
  ];
  for (const [where, other] of same) {
    test(`reads ${where} as ${other}`, () => assert.deepEqual(filterOf(where), filterOf(other)));
  }

  const limited: readonly (readonly [clause: string, limit: number, offset: number | undefined])[] = [
    ['OFFSET 3 LIMIT 5', 5, 3],
    ['OFFSET 3 ROWS FETCH FIRST 5 ROWS ONLY', 5, 3],
    ['FETCH NEXT 1 ROW ONLY OFFSET 1 ROW', 1, 1],
    ['LIMIT (7) OFFSET +2', 7, 2],
  ];
  for (const [clause, limit, offset] of limited) {
    test(`reads ${clause}`, () => {
      const asked = askedOf(compile(`SELECT * FROM products ${clause}`));
      assert.deepEqual([asked.limit, asked.position], [limit, { from: 'offset', offset }]);
    });
  }

  test('takes reserved words as names in quotes and after a dot, and other words anywhere', () => {
    const target = { ...products, fields: new Map(products.fields) };
    for (const name of ['between', 'first', 'count', 'date', 'order'])
      target.fields.set(name, { name, path: [name], type: 'boolean' });
    const text = `SELECT p.order, first FROM products p WHERE between OR p.limit = 1 OR count AND NOT date
      GROUP BY first, p.order, "limit"`;
    const { aggregation } = askedOf(compileSql(text, target, limits));
    assert.deepEqual(
      aggregation?.groupBy.map(({ name }) => name),
      ['first', 'order', 'limit'],
    );
    for (const word of ['order', 'limit', 'user', 'end']) {
      const [found] = faultsOf(compile(`SELECT * FROM products WHERE ${word} = 1`));
      assert.match(
        found?.message ?? '',
        /does not parse at line 1, column 30;|the keyword user is not allowed/,
      );
    }
  });
});

describe('what does not parse', () => {
  const texts: readonly (readonly [text: string, message: RegExp])[] = [
    ['', /^the query is empty$/],
    ['-- nothing', /^the query is empty$/],
    ['hello', /^the query does not start with SELECT; the form is SELECT/],
    ['(SELECT name FROM products)', /^the query does not start with SELECT/],
    [';', /^the query does not start with SELECT/],
    ['SELECT * FORM products', /^the query does not parse at line 1, column/],
    ['SELECT * FROM products\nWHERE price = ', /^the query (ends too early|does not parse)/],
    ['SELECT * FROM products WHERE price == 1', /^the query does not parse at line 1/],
    ['SELECT * FROM products WHERE (price = 1', /^the query (ends too early|does not parse)/],
    ['SELECT * FROM products WHERE price = 1)', /^a closing parenthesis has no opening one$/],
    ["SELECT * FROM products WHERE name = 'x", /^a string is not closed$/],
    ["SELECT * FROM products WHERE name = 'x''", /^a string is not closed$/],
    ['SELECT "name FROM products', /^a quoted name is not closed$/],
    ['SELECT * /* FROM products', /^a comment is not closed$/],
    ['SELECT * FROM products \u0000', /^the query does not parse/],
    ['SELECT * FROM products WHERE price = 1e', /^the query/],
    ['SELECT * FORM products', /^the query does not parse at line 1, column 15; the form is/],
    ["SELECT * /* a\nb */ FROM products -- c\nWHERE name = 'd\ne' price", /at line 4, column 4; the form is/],
    ['SELECT * FROM products WHERE a.b.c.d.e = 1e2 price', /at line 1, column 46; the form is/],
    ['SELECT * FROM products WHERE', /^the query ends too early; the form is SELECT/],
    ['SELECT * FROM products WHERE name = NOT published', /at line 1, column 37;/],
    ["SELECT * FROM products WHERE name LIKE 'a' ESCAPE 'b'", /at line 1, column 44;/],
    ['SELECT * FROM products WHERE price IS UNKNOWN', /at line 1, column 39;/],
    ['SELECT "" FROM products', /at line 1, column 8;/],
    ['SELECT "*" FROM products', /at line 1, column 8;/],
    ['SELECT * FROM products LIMIT 1 LIMIT 2', /at line 1, column 32;/],
    ['SELECT * FROM products LIMIT 1 OFFSET 2 OFFSET 3', /at line 1, column 41;/],
    ['SELECT * FROM products HAVING count(*) > 1', /at line 1, column 24;/],
    ['SELECT * FROM (products)', /at line 1, column 15;/],
  ];
  for (const [text, message] of texts) {
    test(`is malformed: ${JSON.stringify(text)}`, () => {
      const compiled = compile(text);
      const [found] = faultsOf(compiled);
      assert.match(found?.message ?? '', message);
      assert.equal(found?.kind, 'malformed');
    });
  }
});

describe('what parses and is not taken', () => {
  const where = (condition: string) => `SELECT * FROM products WHERE ${condition}`;
  const texts: readonly (readonly [text: string, message: RegExp])[] = [
    ['SELECT * FROM products WHERE price = 1e400', /^1e400: number beyond the range of a double$/],
    ['INSERT INTO products VALUES (1)', /^INSERT is not allowed in a query; the form is SELECT fields FROM/],
    ['DELETE FROM products', /^DELETE is not allowed/],
    ['UPDATE products SET price = 1', /^UPDATE is not allowed/],
    ['DROP TABLE products', /^DROP is not allowed/],
    ['WITH x AS (SELECT 1) SELECT * FROM products', /^WITH is not allowed/],
    ['VALUES (1)', /^VALUES is not allowed/],
    ['EXPLAIN SELECT * FROM products', /^EXPLAIN is not allowed/],
    ['SELECT 1; SELECT 2', /^only one statement is allowed$/],
    ['SELECT * FROM products; DROP TABLE products', /^only one statement is allowed$/],
    ['SELECT * FROM users', /^unknown table "users"; this resource is products$/],
    ['SELECT * FROM public.products', /^unknown table "public.products"/],
    ['SELECT * FROM products, users', /^a join is not allowed; FROM takes only products$/],
    ['SELECT * FROM products JOIN users ON true', /^JOIN is not allowed/],
    ['SELECT * FROM (SELECT * FROM products) p', /^a subquery is not allowed/],
    ['SELECT * FROM generate_series(1, 2)', /^the function generate_series is not allowed/],
    ['SELECT * FROM products p (a, b)', /is not allowed/],
    ['SELECT * FROM products UNION SELECT * FROM products', /^UNION is not allowed/],
    ['SELECT DISTINCT name FROM products', /^DISTINCT is not allowed/],
    ['SELECT * FROM products FOR UPDATE', /^FOR UPDATE or FOR SHARE is not allowed/],
    ['SELECT name INTO x FROM products', /^INTO is not allowed/],
    ['SELECT stddev(price) FROM products', /^the function stddev is not allowed/],
    ['SELECT "count"(*) FROM products', /^a function is not allowed/],
    ['SELECT 1 FROM products', /^SELECT takes \* or fields, not a literal here$/],
    ['SELECT name AS title FROM products', /^a field cannot be renamed to "title"$/],
    ['SELECT FROM products', /^SELECT takes \* or fields$/],
    ['SELECT', /^FROM products is missing$/],
    ['SELECT *', /^FROM products is missing$/],
    ['SELECT prize FROM products', /^unknown field "prize"; fields: id, name/],
    ['SELECT u.* FROM products', /^unknown field "u\.\*"/],
    ['SELECT * FROM products ORDER BY prize', /^unknown field "prize"/],
    ['SELECT * FROM products ORDER BY 1', /^ORDER BY takes fields, not a literal here$/],
    ['SELECT * FROM products ORDER BY tags', /^cannot sort by "tags"/],
    ['SELECT * FROM products ORDER BY price, price', /^sort names "price" twice$/],
    ['SELECT * FROM products ORDER BY price NULLS LAST', /^null sorts before every value/],
    ['SELECT * FROM products LIMIT 0', /^LIMIT must be an integer from 1 to 1000, not 0$/],
    ['SELECT * FROM products LIMIT 1001', /^LIMIT must be an integer from 1 to 1000, not 1001$/],
    ['SELECT * FROM products LIMIT NULL', /^LIMIT must be an integer/],
    ['SELECT * FROM products LIMIT price', /^LIMIT must be an integer .* not a field here$/],
    ['SELECT * FROM products OFFSET -1', /^OFFSET must be an integer of at least 0, not -1$/],
    [where('prize = 1'), /^unknown field "prize"/],
    [where("price = '10'"), /^price takes a number, not "10"$/],
    [where('name = 5'), /^name takes a string/],
    [
      where('price = 12345678901234567890'),
      /^12345678901234567890: integer that a double cannot keep exactly/,
    ],
    [where('price = stock'), /^two fields cannot be compared with each other$/],
    [where("address = 'x'"), /^"address" can be selected, not compared$/],
    [where('address IS NULL'), /^"address" can be selected, not compared$/],
    [where("tags = 'x'"), /^"tags" is an array; compare it as 'value' = ANY \(tags\)$/],
    [where("tags IN ('x')"), /^"tags" is an array/],
    [where("'x' = ANY(name)"), /^ANY takes an array field; "name" is not one$/],
    [where("'x' <> ANY(tags)"), /^write ANY as 'value' = ANY \(field\)$/],
    [where('NULL = ANY(tags)'), /^write ANY as/],
    [where("'x' = ALL(tags)"), /^the function all is not allowed/],
    [where('name'), /^"name" is not a condition; compare it with a literal$/],
    [where('lower(name) = 1'), /^the function lower is not allowed/],
    [where('price + 1 = 2'), /^the operator \+ here is not allowed in a condition$/],
    [where("name || 'a' = 'b'"), /^the operator \|\| here is not allowed/],
    [where("price ILIKE 'a'"), /^ILIKE takes a string field; "price" is not one$/],
    [where('name ILIKE name'), /^write ILIKE as field ILIKE 'pattern'$/],
    [where("name ~ 'a'"), /^the operator ~ here is not allowed/],
    [where("price LIKE '1%'"), /^LIKE takes a string field; "price" is not one$/],
    [where("name LIKE 'a\\'"), /^a pattern must not end in the escape character/],
    [where('name LIKE name'), /^write LIKE as field LIKE 'pattern'$/],
    [where('price = $1'), /^a parameter or a dollar-quoted string is not allowed/],
    [where('name = $$x$$'), /^a parameter or a dollar-quoted string is not allowed/],
    [where("name = E'x'"), /^E'\.\.\.' is not allowed/],
    [where("price = '1'::int"), /^a cast or a parameter is not allowed/],
    [where("createdAt > date '2026-01-31'"), /^a cast is not allowed/],
    [where('price = CAST(1 AS int)'), /^CAST is not allowed/],
    [where('CASE WHEN true THEN true END'), /^CASE is not allowed/],
    [where('price IN (SELECT 1)'), /^a subquery is not allowed/],
    [where('EXISTS (SELECT 1)'), /^the function exists is not allowed/],
    [where('price IN ((1))'), /^IN takes a list of literals$/],
    [where('price IN (1, stock)'), /^IN takes a list of literals, not a field here$/],
    [where('price IN (1, 2, 3, 4, 5, 6)'), /^IN takes at most 5 values, not 6$/],
    [where('price = ARRAY[1]'), /^ARRAY is not allowed/],
    [where('tags[1] = 1'), /^an array or a subscript is not allowed/],
    [where('(price, stock) = (1, 2)'), /^a row of values is not allowed/],
    [where('current_user = name'), /^the keyword current_user is not allowed/],
    [where('price OPERATOR(pg_catalog.=) 1'), /^the function operator is not allowed/],
    [where('1 < 2'), /^a literal must be compared with a field$/],
    [where('price -1 = 2'), /^the operator - here is not allowed in a condition$/],
    [where("name -> 'a' = 'b'"), /^the operator -> here is not allowed in a condition$/],
    [where('price = 1 = true'), /^the operator = here is not allowed in a condition$/],
    [where('price = 00012345678901234567890'), /^12345678901234567890: integer that a double cannot keep/],
    [where(`price = ${'9'.repeat(400)}.5`), /^9{63}…: number beyond the range of a double$/],
  ];
  for (const [text, message] of texts) {
    test(`is unprocessable: ${text}`, () => {
      const [found] = faultsOf(compile(text));
      assert.match(found?.message ?? '', message);
      assert.equal(found?.kind, 'unprocessable');
    });
  }

  test('names as many faults as it finds', () => {
    const faults = faultsOf(compile('SELECT a FROM products WHERE b = 1 AND c = 2 ORDER BY d'));
    assert.equal(faults.length, 4);
  });
});

describe('bounds', () => {
  const where = (condition: string) => `SELECT * FROM products WHERE ${condition}`;

  test('a text has at most sqlCharactersMax characters', () => {
    const base = 'SELECT * FROM products';
    askedOf(compile(base.padEnd(limits.sqlCharactersMax)));
    const [found] = faultsOf(compile(base.padEnd(limits.sqlCharactersMax + 1)));
    assert.equal(found?.message, 'a query in SQL has at most 2000 characters');
  });

  test('a text has at most sqlTokensMax words and signs', () => {
    const wide = { ...limits, filterNodesMax: 1000, inValuesMax: 1000 };
    const list = (count: number) => where(`price IN (${'1,'.repeat(count - 1)}1)`);
    // Eight tokens stand around the list, and n values have n - 1 commas.
    const fitting = Math.floor((sqlTokensMax - 8) / 2);
    askedOf(compileSql(list(fitting), products, wide));
    const [found] = faultsOf(compileSql(list(fitting + 1), products, wide));
    assert.equal(found?.message, `a query in SQL has at most ${sqlTokensMax} words and signs`);
  });

  test('parentheses nest at most filterDepthMax levels', () => {
    const nested = (levels: number) => where(`${'('.repeat(levels)}price = 1${')'.repeat(levels)}`);
    askedOf(compile(nested(4)));
    assert.equal(faultsOf(compile(nested(5)))[0]?.message, 'parentheses nest at most 4 levels');
  });

  test('prefixes follow each other at most filterDepthMax times', () => {
    askedOf(compile(where(`${'NOT '.repeat(4)}price = 1`)));
    const message = 'at most 4 of NOT, + and - may follow each other';
    assert.equal(faultsOf(compile(where(`${'NOT '.repeat(5)}price = 1`)))[0]?.message, message);
    assert.equal(faultsOf(compile(where(`price = ${'- '.repeat(5)}1`)))[0]?.message, message);
  });

  test('a hostile text of 64 KiB takes less than 50 ms of the processor', () => {
    const wide = { ...limits, sqlCharactersMax: 65_536, filterDepthMax: 1000, filterNodesMax: 1000 };
    const texts = [
      ...[
        '(',
        'NOT ',
        '- ',
        "'",
        '"',
        "''",
        '/*',
        '/* */',
        '--',
        '-- \n',
        'a.',
        'sum(',
        'a IN (',
        '1e',
        ' \n',
      ],
      ...['a OR NOT (', 'a BETWEEN ', "'a' = ANY (", '1 = 1 AND ', '0', '.1', 'a, ', '"a" '],
    ].flatMap((piece) => {
      const long = piece.repeat(65_000 / piece.length);
      return ['', 'SELECT ', where(''), 'SELECT a FROM products ORDER BY '].map((start) => start + long);
    });
    for (const text of texts) {
      const times = [0, 1, 2].map(() => {
        const start = process.threadCpuUsage();
        compileSql(text, products, wide);
        const { user, system } = process.threadCpuUsage(start);
        return (user + system) / 1000;
      });
      assert.ok(Math.min(...times) < 50, `${text.slice(0, 60)} ${times}`);
    }
  });

  test('a condition has at most filterNodesMax comparisons and connectives', () => {
    const chain = (count: number) => where(new Array(count).fill('price = 1').join(' OR '));
    askedOf(compile(chain(6)));
    const faults = faultsOf(compile(chain(7)));
    assert.deepEqual(
      faults.map(({ message }) => message),
      ['a condition takes at most 12 comparisons and connectives'],
    );
  });
});
