/** Search by an index of words (§4.20) over the wire: `q` in every form of a query, with filters, orders, cursors and rules. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLink } from '../../../src/http/syntax/link.ts';
import type { Answer } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile({
  config: new URL('./fixtures/search.config.ts', import.meta.url).pathname,
});
const path = '/api/v1/articles';

const articles = [
  {
    title: 'Broken printers',
    body: 'The printer in room 4 prints no "red" pages',
    tags: ['hardware'],
    price: 3,
  },
  { title: 'Printing costs', body: 'Too much paper', tags: ['money', 'paper'], price: 1 },
  { title: 'Émaillé kettle', body: 'Boils; doesn’t whistle', tags: [], price: 2 },
  { title: '東京の天気', body: '🚀 launch', tags: [], price: 5 },
];
const ids: string[] = [];
for (const json of articles) {
  const made = await program.send('POST', path, { json: { ...json, state: 'open' } });
  assert.equal(made.status, 201, made.body);
  ids.push(String(made.json().id));
}

const list = (query: Record<string, string>): Promise<Answer> =>
  program.send('GET', `${path}?${new URLSearchParams(query)}`, { anonymous: true });

function found(answer: Answer): string {
  assert.equal(answer.status, 200, answer.body);
  return (answer.json().items as { id: string }[]).map(({ id }) => ids.indexOf(id)).join('');
}

test('q finds words by their stems, prefixes, phrases, and words without accents', async () => {
  for (const [q, expected] of [
    ['printer', '0'],
    ['print', '01'],
    ['PRINTING', '01'],
    ['pap*', '1'],
    ['pape', ''],
    ['"room 4 prints"', '0'],
    ['"room prints"', ''],
    ['printer paper', ''],
    ['print paper', '1'],
    ['emaille', '2'],
    ['doesn’t', '2'],
    ['money', '1'],
    ['京', '3'],
    ['天気', '3'],
    ['🚀', '3'],
    ['', '0123'],
    ['!?', ''],
  ] as const) {
    assert.equal(found(await list({ q })), expected, q);
  }
});

test('q holds with filters, orders and cursors, in a form, in JSON and with a count', async () => {
  assert.equal(found(await list({ q: 'print', sort: '-price' })), '01');
  assert.equal(found(await list({ q: 'print', sort: 'price' })), '10');
  assert.equal(found(await list({ q: 'print', 'price[gt]': '1' })), '0');
  const first = await list({ q: 'print', sort: 'price', limit: '1' });
  assert.equal(found(first), '1');
  const next = parseLink(String(first.headers.link))?.find(({ rel }) => rel === 'next')?.target;
  assert.ok(next);
  assert.equal(found(await program.send('GET', next, { anonymous: true })), '0');
  const query = await program.send('QUERY', path, {
    anonymous: true,
    headers: { 'content-type': 'application/json', prefer: 'count=exact' },
    body: JSON.stringify({ q: 'print', sort: ['price'], filter: { price: { lte: 3 } } }),
  });
  assert.equal(found(query), '10');
  assert.equal(query.headers['x-total-count'], '2');
});

test('no text is an error of the server, whatever syntax a full-text engine has', async () => {
  const texts = [
    '"',
    '""',
    '"*',
    '*',
    '-',
    'NOT',
    'AND OR',
    'a AND',
    'NEAR(a b',
    'title:x',
    '{title}:x',
    '^a',
    'a + b',
    "a'b",
    "'; --",
    '\\',
    'a\\',
    'a:*',
    'a & b',
    '!a',
    'a | b',
    '(a',
    'a <-> b',
    '%',
    '_',
    '\ud83d',
    '\u0001',
    'x'.repeat(200),
    '=print',
    '#',
    'a*b*',
    '"a"*',
  ];
  for (const q of texts) {
    const answer = await list({ q });
    assert.equal(answer.status, 200, `${q}: ${answer.body}`);
  }
});

test('a query of 10,000 words, a long word and U+0000 are refused with what is allowed', async () => {
  const asked = (q: string): Promise<Answer> =>
    program.send('QUERY', path, {
      anonymous: true,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ q }),
    });
  const many = await asked(Array.from({ length: 10_000 }, (_, at) => `w${at}`).join(' '));
  assert.equal(many.status, 422);
  assert.match(many.body, /q takes at most 8 words, prefixes and phrases/);
  const long = await asked('x'.repeat(201));
  assert.equal(long.status, 422);
  assert.match(long.body, /at most 200 characters/);
  assert.equal((await asked('a\0b')).status, 422);
  assert.equal((await asked('one two three four five six seven "eight nine ten"')).status, 200);
});

test('q follows a change, a deletion and a rule of the collection', async () => {
  const json = { title: 'Quartz', body: 'first', tags: [], price: 9, state: 'open' };
  const made = await program.send('POST', path, { json });
  const member = `${path}/${made.json().id}`;
  const count = async (q: string): Promise<number> => ((await list({ q })).json().items as unknown[]).length;
  assert.equal(await count('quartz'), 1);
  assert.equal((await program.send('PATCH', member, { json: { title: 'Basalt' } })).status, 200);
  assert.equal(await count('quartz'), 0);
  assert.equal(await count('basalt first'), 1);
  assert.equal((await program.send('PATCH', member, { json: { state: 'draft' } })).status, 200);
  assert.equal(await count('basalt'), 0);
  assert.equal((await program.send('DELETE', member)).status, 204);
  const all = await program.send('GET', `${path}?q=basalt`);
  assert.equal((all.json().items as unknown[]).length, 0);
});

test('a text of 1 MB is searched by its first words, and many searches at once are answered', async () => {
  const body = `${Array.from({ length: 30_000 }, (_, at) => `long${at}`).join(' ')} ${'z'.repeat(100_000)}`;
  const made = await program.send('POST', path, {
    json: { title: 'Long', body: body.slice(0, 1_000_000), tags: [], price: 4, state: 'open' },
  });
  assert.equal(made.status, 201, made.body.slice(0, 300));
  ids.push(String(made.json().id));
  assert.equal(found(await list({ q: 'long9999' })), '4');
  assert.equal(found(await list({ q: '"long9998 long9999"' })), '4');
  const answers = await Promise.all(
    Array.from({ length: roundsOf(40, 200) }, (_, at) => list({ q: `long${at} lo*` })),
  );
  for (const answer of answers) assert.ok(answer.status === 200 || answer.status === 503, answer.body);
  assert.ok(answers.some(({ status }) => status === 200));
});
