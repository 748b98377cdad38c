/**
 * Lists (§4.2): pages by number and by cursor, Link, filters, search, order, selection, counts,
 * conditional reads, and what a list must not show.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLink } from '../../../src/http/syntax/link.ts';
import type { Answer } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const path = '/api/v1/products';
const productsMade = 45;

type Item = { readonly id: string; readonly name: string; readonly price: number };

const program = await serverOfFile();
const categoryId = String(
  (await program.send('POST', '/api/v1/categories', { json: { name: 'C' } })).json().id,
);
for (let price = 1; price <= productsMade; price += 1) {
  const tags = [price % 2 === 0 ? 'even' : 'odd', ...(price % 5 === 0 ? ['five'] : [])];
  const name = price === 7 ? 'Émaillé KETTLE' : `Product ${String(price).padStart(2, '0')}`;
  const json = {
    name,
    price,
    categoryId,
    tags,
    ...(price <= 10 ? { stock: price, sku: `S${price}` } : {}),
  };
  assert.equal((await program.send('POST', path, { json })).status, 201);
}

const list = (query: string, headers: Record<string, string> = {}) =>
  program.send('GET', query === '' ? path : `${path}?${query}`, { anonymous: true, headers });

function items(answer: Answer): Item[] {
  assert.equal(answer.status, 200, answer.body);
  return answer.json().items as Item[];
}

const prices = (answer: Answer) => items(answer).map(({ price }) => price);

function linked(answer: Answer, rel: string): string | undefined {
  return parseLink(String(answer.headers.link))?.find((link) => link.rel === rel)?.target;
}

async function follow(answer: Answer, rel: string): Promise<Answer> {
  const target = linked(answer, rel);
  assert.ok(target, `no ${rel} in ${answer.headers.link}`);
  return program.send('GET', target, { anonymous: true });
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

test('a page has 20 items unless asked, in the order of creation, and says where the next begins', async () => {
  const answer = await list('');
  assert.deepEqual(prices(answer), range(1, 20));
  assert.deepEqual(Object.keys(answer.json()), ['items', 'nextCursor']);
  assert.equal(typeof answer.json().nextCursor, 'string');
  assert.equal(answer.headers['content-type'], 'application/json');
});

test('limit and per_page mean the same, from 1 to 1000', async () => {
  assert.equal(items(await list('limit=3')).length, 3);
  assert.equal(items(await list('per_page=3')).length, 3);
  assert.equal(items(await list('limit=1000')).length, productsMade);
  for (const query of [
    'limit=0',
    'limit=1001',
    'per_page=1001',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
  ]) {
    assert.equal((await list(query)).status, 400, query);
  }
  assert.equal((await list('limit=2&per_page=2')).status, 400);
});

test('Link leads from the first page to the last and back, by cursor, missing and repeating nothing', async () => {
  let answer = await list('sort=price&limit=10');
  const forwards: number[][] = [prices(answer)];
  assert.equal(linked(answer, 'prev'), undefined);
  while (linked(answer, 'next') !== undefined) {
    answer = await follow(answer, 'next');
    forwards.push(prices(answer));
  }
  assert.equal(answer.json().nextCursor, null);
  assert.deepEqual(forwards.flat(), range(1, productsMade));
  const backwards: number[][] = [prices(answer)];
  while (linked(answer, 'prev') !== undefined) {
    answer = await follow(answer, 'prev');
    backwards.unshift(prices(answer));
  }
  assert.deepEqual(backwards, forwards);
  assert.deepEqual(prices(await follow(answer, 'first')), range(1, 10));
});

test('nextCursor walks the list too, also where many items are equal in the sort field', async () => {
  const seen: string[] = [];
  let query = 'sort=-categoryId&limit=7';
  for (;;) {
    const answer = await list(query);
    seen.push(...items(answer).map(({ id }) => id));
    const cursor = answer.json().nextCursor;
    if (cursor === null) break;
    query = `sort=-categoryId&limit=7&cursor=${cursor}`;
  }
  assert.equal(seen.length, productsMade);
  assert.equal(new Set(seen).size, productsMade);
});

test('a cursor keeps its place while items are made and removed before it', async () => {
  const first = await list('sort=price&limit=10');
  const extra = await program.send('POST', path, { json: { name: 'Extra', price: 0.5, categoryId } });
  assert.deepEqual(prices(await follow(first, 'next')), range(11, 20));
  await program.send('DELETE', String(extra.headers.location));
  assert.deepEqual(prices(await follow(first, 'next')), range(11, 20));
});

test('page numbers name the same pages, with all links, and a page beyond the end is empty', async () => {
  assert.deepEqual(prices(await list('sort=price&limit=10&page=1')), range(1, 10));
  const third = await list('sort=price&limit=10&page=3');
  assert.deepEqual(prices(third), range(21, 30));
  assert.deepEqual(prices(await follow(third, 'next')), range(31, 40));
  assert.deepEqual(prices(await follow(third, 'prev')), range(11, 20));
  assert.deepEqual(prices(await follow(third, 'first')), range(1, 10));
  const beyond = await list('sort=price&limit=10&page=99');
  assert.deepEqual(items(beyond), []);
  assert.equal(beyond.json().nextCursor, null);
  assert.equal((await list('page=0')).status, 400);
  assert.equal((await list('page=x')).status, 400);
});

test('Prefer: count=exact adds X-Total-Count and the last page, and only then', async () => {
  const answer = await list('sort=price&limit=10&tags=even', { Prefer: 'count=exact' });
  assert.equal(answer.headers['x-total-count'], '22');
  assert.equal(answer.headers['preference-applied'], 'count=exact');
  assert.match(String(answer.headers.vary), /\bPrefer\b/);
  assert.deepEqual(prices(await follow(answer, 'last')), [42, 44]);
  const plain = await list('sort=price&limit=10');
  assert.equal(plain.headers['x-total-count'], undefined);
  assert.equal(linked(plain, 'last'), undefined);
  assert.match(String(plain.headers.vary), /\bPrefer\b/, 'a cache must know that Prefer matters');
  assert.equal((await list('sort=price', { Prefer: 'count=planned' })).headers['x-total-count'], undefined);
});

for (const [query, wanted] of [
  ['price=3', [3]],
  ['price[eq]=3', [3]],
  ['price=3&price=5', [3, 5]],
  ['price[in]=3,5,4000', [3, 5]],
  ['price[gt]=43', [44, 45]],
  ['price[gte]=43', [43, 44, 45]],
  ['price[lt]=3', [1, 2]],
  ['price[lte]=3', [1, 2, 3]],
  ['price[gt]=3&price[lt]=6', [4, 5]],
  ['price[lte]=4&price[ne]=2', [1, 3, 4]],
  ['name=Product%2009', [9]],
  ['name[like]=Product%200_', [1, 2, 3, 4, 5, 6, 8, 9]],
  ['tags=five&tags[ne]=even&price[lt]=20', [5, 15]],
  ['tags[in]=five,odd&price[lte]=5', [1, 3, 5]],
  ['stock[null]=false&price[gt]=8', [9, 10]],
  ['stock[null]=true&price[lt]=13', [11, 12]],
  ['stock=9', [9]],
  ['q=kettle', [7]],
  ['q=%C3%A9MAILL%C3%89', [7]],
  ['q=kettle%20%C3%A9maill%C3%A9', [7]],
  ['q=kettle%20product', []],
  ['q=%20&price=2', [2]],
  ['createdAt[gte]=2020-01-01&price=2', [2]],
  ['createdAt[lt]=2020-01-01T00:00:00Z', []],
] as const) {
  test(`filters by ${query}`, async () => {
    assert.deepEqual(prices(await list(`${query}&sort=price&limit=1000`)), wanted);
  });
}

test('sorts by one field or several, ascending or descending by a sign or by order', async () => {
  assert.deepEqual(prices(await list('sort=price&limit=2')), [1, 2]);
  assert.deepEqual(prices(await list('sort=-price&limit=2')), [45, 44]);
  assert.deepEqual(prices(await list('sort=price&order=desc&limit=2')), [45, 44]);
  assert.deepEqual(prices(await list('sort=price&order=asc&limit=2')), [1, 2]);
  assert.deepEqual(prices(await list('sort=categoryId,-price&limit=2')), [45, 44]);
  assert.deepEqual(prices(await list('order=desc&limit=2')), [45, 44]);
  assert.deepEqual(prices(await list('sort=-stock,price&limit=2&stock[null]=false')), [10, 9]);
  assert.deepEqual(prices(await list('sort=stock,price&limit=2')), [11, 12], 'what has no value comes first');
});

test('fields selects members, in lists and of one resource, and changes neither order nor cursor', async () => {
  const answer = await list('sort=price&limit=2&fields=price,id');
  assert.deepEqual(
    items(answer).map((item) => Object.keys(item)),
    [
      ['id', 'price'],
      ['id', 'price'],
    ],
  );
  assert.deepEqual(prices(await follow(answer, 'next')), [3, 4]);
});

for (const [query, sentence] of [
  ['colour=red', /unknown field "colour"; fields: id, name, price/],
  ['price[near]=3', /unknown operator "near" for "price"; operators: eq, ne, gt/],
  ['tags[gt]=a', /unknown operator "gt" for "tags"/],
  ['price=cheap', /price takes a number, not "cheap"/],
  ['stock=1.5', /stock takes an integer, not "1.5"/],
  ['createdAt[gt]=yesterday', /createdAt takes a day, or an RFC 3339 date and time/],
  ['sort=colour', /unknown field "colour"/],
  ['sort=tags', /cannot sort by "tags"/],
  ['sort=price,price', /names "price" twice/],
  ['order=up', /order must be asc or desc, not "up"/],
  ['fields=colour', /unknown field "colour"/],
  ['cursor=nonsense', /cursor/],
  ['cursor=', /cursor is empty/],
  ['page=1&page=2', /page is given more than once/],
  ['limit=1&limit=1', /limit is given more than once/],
] as const) {
  test(`refuses ${query} with 400 and says what would work`, async () => {
    const answer = await program.send('GET', `${path}?${query}`, { anonymous: true });
    assert.equal(answer.status, 400);
    assert.equal(answer.json().code, 'query_parameter_invalid');
    assert.match(String(answer.json().error), sentence);
  });
}

test('a list parameter that is repeated means the same as one with commas, on every page', async () => {
  const commas = await list('fields=id,price&price[gte]=0&sort=-price,name&limit=3');
  const repeated = await list('fields=id&price[gte]=0&sort=-price&limit=3&fields=price&sort=name');
  assert.equal(repeated.status, 200);
  assert.equal(repeated.body, commas.body);
  const cursor = commas.json().nextCursor;
  const next = await list(
    `fields=price&fields=id&price[gte]=0&sort=-price&sort=name&limit=3&cursor=${cursor}`,
  );
  assert.equal(next.status, 200);
  assert.notEqual(next.body, commas.body);
  const bracketed = await list('fields[]=id&fields[]=price&price[gte]=0&sort[]=-price&sort[]=name&limit=3');
  assert.equal(bracketed.body, commas.body);
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const asked = await program.send('QUERY', path, {
    headers: form,
    body: 'fields=id&fields=price&price[gte]=0&sort=-price&sort=name&limit=3',
  });
  assert.deepEqual(asked.json().items, commas.json().items);
});

test('a cursor of one query does not continue another', async () => {
  const cursor = (await list('sort=price&limit=5')).json().nextCursor;
  assert.equal((await list(`sort=-price&limit=5&cursor=${cursor}`)).status, 400);
  assert.equal((await list(`sort=price&limit=5&price[gt]=3&cursor=${cursor}`)).status, 400);
  assert.equal((await program.send('GET', `/api/v1/categories?cursor=${cursor}`)).status, 400);
  assert.deepEqual(
    prices(await list(`sort=price&limit=9&cursor=${cursor}`)),
    range(6, 14),
    'limit may change',
  );
});

test('a list has an ETag that holds until its collection changes, and 304 repeats what a 200 would have', async () => {
  const first = await list('sort=price&limit=3');
  const etag = String(first.headers.etag);
  assert.match(etag, /^"[^"]+"$/);
  const same = await list('sort=price&limit=3', { 'If-None-Match': etag });
  assert.equal(same.status, 304);
  assert.equal(same.body, '');
  for (const name of ['etag', 'cache-control', 'vary'])
    assert.equal(same.headers[name], first.headers[name], name);
  await program.send('POST', '/api/v1/notes', { json: { text: 'elsewhere' } });
  assert.equal((await list('sort=price&limit=3', { 'If-None-Match': etag })).status, 304);
  const extra = await program.send('POST', path, { json: { name: 'Extra', price: 900, categoryId } });
  assert.equal((await list('sort=price&limit=3', { 'If-None-Match': etag })).status, 200);
  await program.send('DELETE', String(extra.headers.location));
});

test('a list shows only what the caller may see, and its tag is not shared between callers', async () => {
  await program.send('PUT', '/api/v1/articles/draft', { json: { title: 'Draft', published: false } });
  await program.send('PUT', '/api/v1/articles/silent', { json: { title: 'Silent' } });
  await program.send('PUT', '/api/v1/articles/open', { json: { title: 'Open', published: true } });
  const slugs = (answer: Answer) => (answer.json().items as { id: string }[]).map(({ id }) => id);
  const mine = await program.send('GET', '/api/v1/articles?sort=id', { headers: { Prefer: 'count=exact' } });
  const theirs = await program.send('GET', '/api/v1/articles?sort=id', {
    anonymous: true,
    headers: { Prefer: 'count=exact' },
  });
  assert.deepEqual(slugs(mine), ['draft', 'open', 'silent']);
  assert.deepEqual(slugs(theirs), ['open']);
  assert.equal(mine.headers['x-total-count'], '3');
  assert.equal(theirs.headers['x-total-count'], '1');
  assert.notEqual(mine.headers.etag, theirs.headers.etag);
  const crossed = await program.send('GET', '/api/v1/articles?sort=id', {
    anonymous: true,
    headers: { 'If-None-Match': String(mine.headers.etag) },
  });
  assert.equal(crossed.status, 200);
  const searched = await program.send('GET', '/api/v1/articles?q=draft&published[ne]=true', {
    anonymous: true,
  });
  assert.deepEqual(slugs(searched), []);
  assert.equal((await program.send('GET', '/api/v1/articles/draft', { anonymous: true })).status, 404);
  assert.equal((await program.send('GET', '/api/v1/notes', { anonymous: true })).status, 401);
});
