/** Orders by rank (§4.20.6) over the wire: in every form of a query, by pages, for each caller its own, and refused without a search. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLink } from '../../../src/http/syntax/link.ts';
import type { Answer } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { type Item, operation, resolved } from '../../openapi/fixture.ts';

const program = await serverOfFile({
  config: new URL('./fixtures/search.config.ts', import.meta.url).pathname,
});
const path = '/api/v1/articles';
const long = 'nothing of note here '.repeat(40);

const articles = [
  { title: 'Kettle', body: `boils. ${long} A lamp is beside it.` },
  { title: 'A lamp for reading', body: long },
  { title: 'Chair', body: 'a lamp, a lamp and a lamp' },
  { title: 'Stool', body: 'a lamp' },
  { title: 'Lamps', body: 'red lamps' },
];
const ids: string[] = [];
for (const each of articles) {
  const made = await program.send('POST', path, { json: { ...each, tags: [], price: 1, state: 'open' } });
  assert.equal(made.status, 201, made.body);
  ids.push(String(made.json().id));
}

const list = (query: Record<string, string>): Promise<Answer> =>
  program.send('GET', `${path}?${new URLSearchParams(query)}`, { anonymous: true });

const query = (body: unknown, type = 'application/json'): Promise<Answer> =>
  program.send('QUERY', path, {
    anonymous: true,
    headers: { 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

function found(answer: Answer): string {
  assert.equal(answer.status, 200, answer.body);
  return (answer.json().items as { id: string }[]).map(({ id }) => ids.indexOf(id)).join('');
}

test('sort=-rank lists the best first: the first field before others, more occurrences, shorter texts', async () => {
  assert.equal(found(await list({ q: 'lamp', sort: '-rank' })), '41230');
  assert.equal(found(await list({ q: 'lamp', sort: 'rank' })), '03214');
  assert.equal(found(await list({ q: 'lamp', sort: 'rank', order: 'desc' })), '41230');
  assert.equal(found(await query({ q: 'lamp', sort: ['-rank'] })), '41230');
  assert.equal(found(await query({ q: 'lamp', sort: '-rank', filter: { price: 1 }, limit: 2 })), '41');
  assert.equal(found(await query('q=lamp&sort=-rank', 'application/x-www-form-urlencoded')), '41230');
  assert.equal(found(await list({ q: '!?', sort: '-rank' })), '');
});

test('pages by rank follow links and cursors in both directions, and last is the last page', async () => {
  const first = await program.send('GET', `${path}?q=lamp&sort=-rank&limit=2`, {
    anonymous: true,
    headers: { prefer: 'count=exact' },
  });
  assert.equal(first.headers['x-total-count'], '5');
  const target = (answer: Answer, name: string): string =>
    String(parseLink(String(answer.headers.link))?.find(({ rel }) => rel === name)?.target);
  const get = (at: string): Promise<Answer> => program.send('GET', at, { anonymous: true });
  const second = await get(target(first, 'next'));
  assert.equal(found(first) + found(second), '4123');
  assert.equal(found(await get(target(second, 'next'))), '0');
  assert.equal(found(await get(target(second, 'prev'))), '41');
  assert.equal(found(await get(target(first, 'last'))), '0');
  assert.equal(found(await list({ q: 'lamp', sort: '-rank', limit: '2', page: '2' })), '23');
  const cursor = String(first.json().nextCursor);
  assert.equal((await list({ q: 'reading', sort: '-rank', cursor })).status, 400);
});

test('a sort by rank without q, with a blank one, or of what has no index of words is refused', async () => {
  for (const answer of [await list({ sort: '-rank' }), await list({ sort: '-rank', q: '  ' })]) {
    assert.equal(answer.status, 400);
    assert.equal(answer.json().code, 'query_parameter_invalid');
    assert.equal(
      answer.json().error,
      'sort by rank orders what q finds; give q at least one word, or sort by a field',
    );
  }
  const asked = await query({ sort: ['-rank'] });
  assert.equal(asked.status, 422);
  assert.match(asked.body, /orders what q finds/);
  const sql = await query('SELECT * FROM articles ORDER BY rank', 'application/sql');
  assert.equal(sql.status, 422);
  assert.match(sql.body, /unknown field \\"rank\\"/);
  assert.equal((await list({ 'rank[gt]': '1', q: 'lamp' })).status, 400);
  assert.equal((await list({ fields: 'rank', q: 'lamp' })).status, 400);
});

test('a field named rank keeps its name, and the order by rank is $rank', async () => {
  for (const [title, rank] of [
    ['red lamp red', 1],
    ['lamp', 3],
    ['red lamp', 2],
  ] as const) {
    assert.equal((await program.send('POST', '/api/v1/scores', { json: { title, rank } })).status, 201);
  }
  const order = async (sort: string): Promise<string> => {
    const answer = await program.send('GET', `/api/v1/scores?${new URLSearchParams({ q: 'red', sort })}`);
    return (answer.json().items as { rank: number }[]).map(({ rank }) => rank).join('');
  };
  assert.equal(await order('rank'), '12');
  assert.equal(await order('-rank'), '21');
  assert.equal(await order('-$rank'), '12');
});

test('documents that the caller may not read change neither the order nor a cursor', async () => {
  const before = await list({ q: 'lamp red', sort: '-rank' });
  const page = await list({ q: 'lamp', sort: '-rank', limit: '3' });
  for (let at = 0; at < 20; at += 1) {
    const json = { title: 'Lamp lamp', body: 'lamp', tags: [], price: 1, state: 'draft' };
    assert.equal((await program.send('POST', path, { json })).status, 201);
  }
  assert.equal(found(await list({ q: 'lamp red', sort: '-rank' })), found(before));
  const after = await list({ q: 'lamp', sort: '-rank', limit: '3' });
  assert.equal(after.json().nextCursor, page.json().nextCursor);
  assert.equal(found(after), '412');
});

test('the OpenAPI document lists the sort key of a collection with an index of words', async () => {
  const document = (await program.send('GET', '/openapi.json')).json() as Item;
  const keysOf = (name: string): readonly string[] => {
    const { parameters } = operation(document, 'get', `/api/v1/${name}`) as { parameters: readonly Item[] };
    const found = parameters.map((each) => resolved(document, each)).find((each) => each.name === 'sort');
    const { items } = (found?.schema ?? {}) as { items?: { enum: string[] } };
    return items?.enum ?? [];
  };
  assert.ok(keysOf('articles').includes('-rank'));
  assert.ok(keysOf('scores').includes('-$rank'));
});
