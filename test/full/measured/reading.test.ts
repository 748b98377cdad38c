/** Answers that take long to make: selections and hidden members of long pages, the OpenAPI document, long queries, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertLoopFree, startAttacked } from '../attack/attacked-program.ts';

const config = fileURLToPath(new URL('../attack/fixtures/notes.config.ts', import.meta.url));
const hostile = `[${'[],'.repeat(150_000)}[]]`;

test('selects and hides members of long pages without holding the event loop', {
  timeout: 120_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config });
  const { program } = attacked;
  for (let index = 0; index < 6; index += 1) {
    const body = `{"count":${index},"data":${hostile},"secret":"s","text":"\\"${'x'.repeat(50)}"}`;
    const made = await program.send('POST', '/api/v1/guarded', {
      headers: { 'Content-Type': 'application/json' },
      body,
    });
    assert.equal(made.status, 201);
  }
  const get = (path: string, anonymous = true) => program.send('GET', path, { anonymous });
  for (const path of ['/api/v1/guarded?fields=count,text', '/api/v1/guarded', '/api/v1/events?limit=10']) {
    const answers = await Promise.all([get(path), get(path), get(path)]);
    for (const answer of answers) {
      assert.equal(answer.status, 200, path);
      assert.equal(answer.body.includes('"secret"'), false, path);
    }
    await assertLoopFree(attacked, path);
  }
  const { items } = (await get('/api/v1/guarded?fields=text,count&sort=count')).json() as { items: object[] };
  assert.deepEqual(items[0], { text: `"${'x'.repeat(50)}`, count: 0 });
});

test('makes the OpenAPI document in slices', { timeout: 60_000 }, async (context) => {
  const attacked = await startAttacked(context);
  const versions = ['', '?version=3.1', '', '?part=operator'];
  const answers = await Promise.all(
    versions.map((query) => attacked.program.send('GET', `/openapi.json${query}`)),
  );
  for (const answer of answers) assert.equal(answer.status, 200);
  assert.equal(answers[0]?.body, answers[2]?.body);
  await assertLoopFree(attacked, 'OpenAPI');
});

test('takes queries and contents for the program itself up to their bounds, however they are coded', {
  timeout: 60_000,
}, async (context) => {
  const bounds = { COMITY_QUERY_BYTES_MAX: '4096', COMITY_ACTION_BYTES_MAX: '2048' };
  const attacked = await startAttacked(context, { config, env: bounds });
  const { program } = attacked;
  const { gzipSync } = await import('node:zlib');
  const json = { 'Content-Type': 'application/json' };
  const query = (length: number) => `{"filter":{"count":1}${' '.repeat(length - 22)}}`;
  const ids = (length: number) => `{"ids":["x"]${' '.repeat(length - 13)}}`;
  for (const [method, path, content, most] of [
    ['QUERY', '/api/v1/notes', query, 4096],
    ['POST', '/api/v1/notes/bulk-delete', ids, 2048],
  ] as const) {
    const send = (body: string | Uint8Array, headers: Record<string, string> = json) =>
      program.send(method, path, { headers, body });
    assert.equal((await send(content(most))).status, 200, path);
    assert.equal((await send(content(most + 1))).status, 413, path);
    const coded = { ...json, 'Content-Encoding': 'gzip' };
    assert.equal((await send(gzipSync(content(most)), coded)).status, 200, path);
    assert.equal((await send(gzipSync(content(most + 1)), coded)).status, 413, path);
  }
  await assertLoopFree(attacked, 'bounds');
});

test('takes the longest query that its bounds allow without holding the event loop', {
  timeout: 60_000,
}, async (context) => {
  const attacked = await startAttacked(context, { config });
  const { program } = attacked;
  const inList = Array.from({ length: 1000 }, (_, index) => `${'v'.repeat(90)}${index}`);
  for (let turn = 0; turn < 10; turn += 1) {
    const filter = { text: { in: inList.map((each) => `${each}.${turn}`) } };
    const answers = await Promise.all(
      [0, 1, 2, 3].map((beside) =>
        program.send('QUERY', '/api/v1/notes', { json: { filter, limit: 10 + beside } }),
      ),
    );
    for (const answer of answers) assert.equal(answer.status, 200, answer.body.slice(0, 200));
  }
  const nested = await program.send('QUERY', '/api/v1/notes', {
    headers: { 'Content-Type': 'application/json' },
    body: `{"filter":${'['.repeat(60_000)}`,
  });
  assert.equal(nested.status, 400);
  await assertLoopFree(attacked, 'queries');
});
