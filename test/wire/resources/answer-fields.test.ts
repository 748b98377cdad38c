/** The length of all fields of an answer, which proxies bound (nginx: 4 KiB by default), whatever was asked (§8.7). */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { before, test } from 'node:test';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { servedPaths } from '../../openapi/fixture.ts';

const fieldsBytesMax = 4 * 1024;
const targetBytesMax = 8000;
const origin = 'https://app.example';
const program = await serverOfFile({
  env: {
    COMITY_CORS_ORIGINS: origin,
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_RATE_LIMIT_WRITES: '0',
    COMITY_TRACE_METHOD: 'on',
  },
});

before(async () => {
  const items = Array.from({ length: 30 }, (_, at) => ({ name: `c${at}` }));
  const made = await program.send('POST', '/api/v1/categories/bulk', { json: { items } });
  assert.equal(made.status, 200, made.body);
});

type Measured = { readonly status: number | undefined; readonly bytes: number; readonly link: string };

/** Asks for everything that adds fields, and leaves at the content. */
function measure(method: string, path: string, content?: string): Promise<Measured> {
  const headers = {
    ...{ 'x-api-key': adminKey, origin, prefer: 'count=exact, plan, return=representation' },
    ...(content === undefined ? {} : { 'content-type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const asked = request({ port: program.port, host: '127.0.0.1', method, path, headers }, (answer) => {
      const { statusCode: status, rawHeaders } = answer;
      const bytes = rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
      answer.destroy();
      resolve({ status, bytes, link: String(answer.headers.link ?? '') });
    });
    asked.on('error', reject);
    asked.end(content);
  });
}

function targetsOf(path: string): readonly string[] {
  const fill = (start: string, text: string, length = targetBytesMax): string => {
    const target = `${path}?${start}`;
    return target + text.repeat(Math.floor((length - target.length) / text.length));
  };
  return [
    path,
    fill('limit=2&page=2&id[in]=01k1jx7v2mh5s8b4c9d0e6f3ga', ',01k1jx7v2mh5s8b4c9d0e6f3ga'),
    ...[300, 380, 550, 1000, 1600, 4000, targetBytesMax].map((length) =>
      fill('limit=2&page=2&name[ne]=', 'n', length),
    ),
    fill('limit=2', '&createdAt[gte]=2020-01-01T00:00:00.000Z'),
    fill('q=a', '%20word'),
    fill('sort=id', ',-createdAt'),
    fill('cursor=', 'z'),
    fill('after=', 'z'),
    fill('x=', 'y'),
    `${path}/`.padEnd(targetBytesMax, 'z'),
  ];
}

test('all fields of an answer of every resource to the longest target are under 4 KiB', async () => {
  const paths = await servedPaths(program);
  let asked = 0;
  const over: string[] = [];
  // They lead to pages without the slash, and no document lists them.
  const slashed = { '/docs/': { get: {} }, '/docs/errors/': { get: {} }, '/portal/': { get: {} } };
  for (const [pattern, item] of Object.entries({ ...paths, ...slashed })) {
    const path = pattern.replace(/\{[^}]+\}/g, '01k1jx7v2mh5s8b4c9d0e6f3ga');
    for (const method of Object.keys(item)) {
      if (method === 'parameters') continue;
      const targets = targetsOf(path);
      for (const target of method === 'get' ? targets : targets.slice(-2)) {
        const { status, bytes } = await measure(method.toUpperCase(), target);
        asked += 1;
        if (bytes > fieldsBytesMax) over.push(`${bytes} ${status} ${method} ${target.slice(0, 120)}`);
      }
    }
  }
  assert.ok(asked > 1000, `${asked} requests`);
  assert.deepEqual(over, []);
});

test('all fields of an answer to a QUERY of any length, and to a PUT at a long id, are under 4 KiB', async () => {
  for (const length of [1, 100, 200, 256, 1000, 50_000]) {
    const filter = { name: { ne: 'n'.repeat(length) } };
    const content = JSON.stringify({ filter, limit: 2, sort: ['-name'], cursor: null });
    const { status, bytes } = await measure('QUERY', '/api/v1/categories', content);
    assert.ok(bytes <= fieldsBytesMax, `${status}: ${bytes} for ${length}`);
  }
  for (const length of [26, 200, 1000, 4000, 7900]) {
    const path = `/api/v1/articles/${'a'.repeat(length)}`;
    const { status, bytes } = await measure('PUT', path, '{"title":"long"}');
    assert.ok(bytes <= fieldsBytesMax, `${status}: ${bytes} for ${length}`);
  }
});

test('links that are too long go one after the other, the next page last', async () => {
  const rels = async (length: number) =>
    [...(await measure('GET', targetsOf('/api/v1/categories')[length] ?? '')).link.matchAll(/rel="?(\w+)/g)]
      .map(([, rel]) => rel)
      .join();
  assert.deepEqual(await Promise.all([2, 3, 4, 5, 6].map(rels)), [
    'first,prev,next,last',
    'first,prev,next',
    'prev,next',
    'next',
    '',
  ]);
});
