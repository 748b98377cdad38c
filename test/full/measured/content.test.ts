/** Content that takes long to parse, to check or to write: none of it may hold the event loop, repeated and in parallel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const octets = 1_000_000;
const json = { 'Content-Type': 'application/json' };
const jsonPatch = { 'Content-Type': 'application/json-patch+json' };

const repeated = (text: string, length = octets) => text.repeat(Math.floor(length / text.length));
const list = (item: string) => `[${repeated(`${item},`, octets - 100)}${item}]`;
const numbered = (count: number, write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => write(index)).join(',');

/** Bodies of a POST, by what is costly about them. */
const bodies: readonly (readonly [what: string, body: string, status: number])[] = [
  ['350,000 empty arrays', `{"data":${list('[]')}}`, 201],
  ['arrays nested 60 deep', `{"data":${list(`${'['.repeat(60)}${']'.repeat(60)}`)}}`, 201],
  ['120,000 objects', `{"data":${list('{"a":1}')}}`, 201],
  [
    '10 objects of 9,000 members',
    `{"data":[${numbered(10, (o) => `{${numbered(9000, (m) => `"${o}${m}":1`)}}`)}]}`,
    201,
  ],
  ['130,000 items that must differ', `{"unlike":[${numbered(130_000, String)}]}`, 201],
  ['9,000 items that must differ', `{"unlike":[${numbered(9000, String)}]}`, 201],
  ['text that folding makes eighteen times as long', `{"text":"${repeated('ﷺ', 300_000)}"}`, 201],
  [
    '60,000 unknown members',
    `{"data":1,${numbered(9990, (m) => `"unknown-member-of-the-document-${'x'.repeat(60)}${m}":1`)}}`,
    422,
  ],
  ['300,000 items of a wrong type', `{"tags":${list('1')}}`, 422],
];

test('parses, checks and writes long content without holding the event loop', {
  timeout: 120_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config });
  const { program } = attacked;
  const post = (body: string) => {
    const path = body.startsWith('{"unlike"') ? '/api/v1/distinct' : '/api/v1/notes';
    return program.send('POST', path, { headers: json, body });
  };
  assert.equal((await post('{"count":1}')).status, 201);
  for (const [what, body, status] of bodies) {
    const answers = await Promise.all([post(body), post(body)]);
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [status, status],
      what,
    );
    await assertLoopFree(attacked, what);
  }
});

test('patches long resources without holding the event loop', { timeout: 120_000 }, async (context) => {
  const attacked = await startAttacked(context, { config });
  const { program } = attacked;
  const data = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [`m${index}`, Array.from({ length: 1000 }, (_, item) => item)]),
  );
  const location = '/api/v1/notes/long';
  const put = () => program.send('PUT', location, { json: { data } });
  assert.ok((await put()).status < 300);
  const patches: readonly (readonly [what: string, operations: readonly object[]])[] = [
    [
      '1,000 tests',
      Array.from({ length: 1000 }, (_, index) => ({ op: 'test', path: `/data/m${index % 100}/5`, value: 5 })),
    ],
    [
      '9 copies of all',
      Array.from({ length: 9 }, (_, index) => ({ op: 'copy', from: '/data', path: `/data/c${index}` })),
    ],
    [
      '1,000 copies',
      Array.from({ length: 1000 }, (_, index) => ({ op: 'copy', from: '/data/m1', path: `/data/c${index}` })),
    ],
    [
      '1,000 moves',
      Array.from({ length: 1000 }, (_, index) => ({
        op: 'move',
        from: `/data/m${index % 2}`,
        path: `/data/m${(index + 1) % 2}`,
      })),
    ],
  ];
  for (const [what, operations] of patches) {
    const patch = () =>
      program.send('PATCH', location, { headers: jsonPatch, body: JSON.stringify(operations) });
    const answers = await Promise.all([patch(), patch(), patch()]);
    for (const answer of answers) assert.ok(answer.status < 500, `${what}: ${answer.status}`);
    await assertLoopFree(attacked, what);
    await put();
  }
});
