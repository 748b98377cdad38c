/** QUERY in its three media types: every operator with and without `not`, connectives, SQL's three values, stored queries. */
import { numbers, texts, times } from './awkward.ts';
import type { Answer, Asked, Pair } from './pair.ts';

const path = '/api/v1/samples';

const ordered = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'];

const compared: readonly (readonly [
  field: string,
  operators: readonly string[],
  values: readonly unknown[],
])[] = [
  ['name', ordered, texts.filter((_, at) => at % 6 === 1)],
  ['score', ordered, numbers.filter((_, at) => at % 5 === 1).map(Number)],
  ['at', ordered, times.slice(0, 3)],
  ['flag', ordered, [true, false]],
  ['place.city', ordered, ['é', '\uffff']],
  ['note', ['eq', 'ne'], [null, 'a']],
  ['tags', ['eq', 'ne', 'in'], ['a', '']],
  ['marks', ['eq', 'ne', 'in'], [0, 1e21]],
  ['name', ['like'], ['a%', '%B%', '\\%', '_']],
  ['score', ['in'], [[], [0, 1, null], [5e-324, 1e21, 0.1], [null]]],
  ['tags', ['in'], [[], ['a', null], ['A', 'é']]],
];

export async function queryJson(pair: Pair): Promise<void> {
  for (const [field, operators, values] of compared) {
    for (const operator of operators) {
      for (const value of values) {
        const operand = operator === 'in' && !Array.isArray(value) ? [value] : value;
        const filter = { [field]: { [operator]: operand } };
        await query(pair, { filter });
        await query(pair, { filter: { not: filter } });
      }
    }
    pair.settle();
  }
  const connectives = [
    { and: [] },
    { or: [] },
    { not: { and: [] } },
    { not: { or: [] } },
    { or: [{ score: null }, { flag: true }, { not: { name: 'a' } }] },
    { and: [{ score: { gte: 0 } }, { or: [{ tags: 'a' }, { count: 1 }] }], not: { note: null } },
    { not: { not: { not: { score: { gt: 1 } } } } },
    { not: { tags: { in: ['a', 'A'] }, switches: true } },
    { name: { in: texts } },
    { name: { gte: 'a', lt: 'b', ne: 'aa' }, score: { ne: null } },
  ];
  for (const filter of connectives) {
    await query(pair, { filter, sort: ['-score', 'name'] });
    await query(pair, { filter: { not: filter }, sort: ['name'], limit: 5 });
  }
  await query(pair, {});
  await query(pair, { q: 'A', filter: { flag: true }, fields: ['name'], page: 2, limit: 2 });
}

const conditions = [
  ...[
    "name = 'a'",
    "name <> 'a'",
    "NOT name = 'a'",
    "name > 'B' AND name <= 'é'",
    "name LIKE 'a%'",
    "name NOT LIKE '%a%'",
  ],
  ...[
    'score > 0',
    'score = -0.0',
    'NOT score > 0',
    'score BETWEEN 0 AND 1',
    'score NOT BETWEEN 0 AND 1',
    'score IS NULL',
  ],
  ...[
    'score IS NOT NULL AND NOT (score < 1 OR flag)',
    'score = 1e21',
    'score IN (0, 1, 5e-324)',
    'score NOT IN (0, 1)',
  ],
  ...[
    'score NOT IN (0, NULL)',
    'score = NULL',
    'NOT (score = NULL)',
    'score = NULL OR flag = true',
    'flag',
    'NOT flag',
  ],
  ...['flag IS TRUE', 'flag IS NOT TRUE', 'flag IS FALSE', 'flag = false', 'flag IS NULL', "'a' = ANY(tags)"],
  ...["NOT 'a' = ANY(tags)", "at >= '2026-01-31T12:00:00Z'", "at < '2026-01-31'", "createdAt > '2026-01-31'"],
  ...[
    '"place.city" IS NULL',
    `"place.city" = 'é'`,
    '"place.geo.height" >= 0',
    `"place.Odd-name_1" LIKE 'odd%'`,
  ],
  ...[
    "name = 'it''s'",
    "name IN ('a', 'B', '😀')",
    'count = 1',
    'count > -1 AND count < 2147483649',
    'TRUE',
    'FALSE',
  ],
  ...[
    'score > 0 AND (flag OR NOT flag)',
    'NOT (score > 0 AND flag)',
    "(name = 'a') = TRUE",
    "kind = 'odd' OR kind IS NULL",
  ],
];

export async function querySql(pair: Pair): Promise<void> {
  for (const condition of conditions) {
    await sql(pair, `SELECT id, name FROM samples WHERE ${condition} ORDER BY name DESC, id LIMIT 100`);
  }
  for (const order of [
    'name',
    'score DESC',
    'flag, name DESC',
    '"place.city" DESC',
    'at',
    'createdAt DESC',
    'id',
  ]) {
    await sql(pair, `SELECT * FROM samples ORDER BY ${order} LIMIT 10 OFFSET 5`);
  }
  const refused = [
    ...[
      'SELECT count(*) FROM samples',
      'DELETE FROM samples',
      'SELECT * FROM pages',
      'SELECT',
      'SELECT nothing FROM samples',
    ],
    ...[
      'SELECT * FROM samples WHERE name = 1',
      'SELECT * FROM samples WHERE 1 = 1; DROP TABLE samples',
      'SELECT * FROM samples WHERE name ~ 1',
    ],
    ...[
      'SELECT * FROM samples JOIN groups ON TRUE',
      "SELECT * FROM samples WHERE name LIKE 'a\\'",
      'SELECT * FROM pg_catalog.pg_class',
    ],
  ];
  for (const text of refused) await sql(pair, text);
}

export async function queryForms(pair: Pair): Promise<void> {
  const forms = [
    ...[
      'score[gte]=0&sort=-score&limit=5',
      'name=a&name=B',
      'q=a',
      'tags=a&tags[ne]=A',
      'note[null]=false&fields=note',
    ],
    ...[
      'name[like]=%25a%25',
      'score[in]=0,1,-0',
      'sort=note,-name&page=2&limit=9',
      'colour=red',
      'score=x',
      '',
    ],
  ];
  for (const body of forms) await send(pair, 'application/x-www-form-urlencoded', body);
  await send(pair, 'text/plain', 'name=a');
  await send(pair, 'application/json', '{"filter":');
  await send(
    pair,
    'application/json',
    '{"filter":{"score":{"gte":"ten"},"nothing":1},"sort":["tags"],"limit":0}',
  );
  await send(pair, 'application/json', '{"filter":{"name":"a\\u0000b"}}');
  await send(pair, 'application/json', '{"filter":{"name":"\\ud800"}}');
  await send(pair, 'application/json', '{"filter":{"score":1e400}}');
}

/** `Location` repeats a query and `Content-Location` its result, from one page to the next and after a write. */
export async function storedQueries(pair: Pair): Promise<void> {
  const asked = { filter: { score: { gte: 0 } }, sort: ['-score'], limit: 4 };
  const first = await query(pair, asked);
  const stored = await pair.ask('GET', first.location, 200);
  await pair.ask('HEAD', first.location, 200);
  await pair.ask('GET', first.location, 304, { headers: { 'If-None-Match': stored.etag } });
  await pair.ask('QUERY', path, 304, { json: asked, headers: { 'If-None-Match': first.etag } });
  const result = first.field('Content-Location') ?? '';
  await pair.ask('GET', result, 200);
  let page: Answer = first;
  for (let target = page.link('next'); target !== undefined; target = page.link('next')) {
    page = await pair.ask('GET', target, 200);
  }
  for (let target = page.link('prev'); target !== undefined; target = page.link('prev')) {
    page = await pair.ask('GET', target, 200);
  }
  const made = await pair.ask('POST', path, 201, { json: { name: 'later', score: 1e300 } });
  await pair.ask('GET', first.location, 200);
  await pair.ask('GET', result, 200);
  await pair.ask('QUERY', path, 200, { json: asked, headers: { 'If-None-Match': first.etag } });
  await pair.ask('DELETE', made.location, 204);
  await pair.ask('GET', first.location, 200, { anonymous: true });
  await pair.ask('GET', '/api/v1/queries/AAAAAAAAAAAAAAAAAAAAAA', 404);
}

async function query(pair: Pair, json: unknown): Promise<Answer> {
  return pair.ask('QUERY', path, 200, { json });
}

const sql = (pair: Pair, text: string) => send(pair, 'application/sql', text);

/** The status is whatever both say: which of them a query gets is asked in test/query. */
async function send(pair: Pair, type: string, body: string): Promise<void> {
  const asked: Asked = { headers: { 'Content-Type': type }, body };
  await pair.ask('QUERY', path, 'any', asked);
}
