/**
 * Limits at their edges (§8): the request target, content as sent and as decoded, lists, bulk deletion,
 * JSON. Limits of the connection itself are in test/wire/server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { adminKey } from '../../harness/exchange.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { openRaw } from '../server/raw-client.ts';

const categories = '/api/v1/categories';
const targetBytesMax = 8000;
const bodyBytesMax = 1024 * 1024;

const program = await serverOfFile();

/** JSON of exactly so many octets that makes a category. */
function sized(bytes: number): string {
  return `{"name":"${'x'.repeat(bytes - 11)}"}`;
}

const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
  program.send('POST', categories, { body, headers: { 'Content-Type': 'application/json', ...headers } });

test('a request target of 8000 octets is taken and one of 8001 is 414', async () => {
  const target = (bytes: number) => `${categories}?name=${'x'.repeat(bytes - categories.length - 6)}`;
  assert.equal(target(targetBytesMax).length, targetBytesMax);
  assert.equal((await program.send('GET', target(targetBytesMax))).status, 200);
  const refused = await program.send('GET', target(targetBytesMax + 1));
  assert.equal(refused.status, 414);
  assert.equal(refused.json().code, 'target_too_long');
  assert.match(String(refused.json().error), /QUERY/, 'it says what to do instead');
});

test('the same filter goes through as the content of a QUERY', async () => {
  const answer = await program.send('QUERY', categories, {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: `name=${'x'.repeat(20_000)}`,
  });
  assert.equal(answer.status, 200);
});

test('content of 1 MiB is taken and one octet more is 413, announced', async () => {
  const whole = await post(sized(bodyBytesMax));
  assert.equal(whole.status, 201, whole.body.slice(0, 200));
  const client = await openRaw(program.port);
  client.send(
    `POST ${categories} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${bodyBytesMax + 1}\r\n\r\n`,
  );
  const refused = await client.answer();
  client.destroy();
  assert.equal(refused.status, 413, 'before any content was sent');
  assert.equal((JSON.parse(refused.body) as { code: string }).code, 'content_too_large');
  assert.equal(refused.fields.get('connection'), 'close');
});

test('content of 1 MiB is taken and one octet more is 413, chunked', async () => {
  const chunked = async (bytes: number) => {
    const client = await openRaw(program.port);
    client.send(
      `POST ${categories} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminKey}\r\n` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const text = sized(bytes);
    for (let at = 0; at < text.length; at += 65_536) {
      const piece = text.slice(at, at + 65_536);
      client.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    client.send('0\r\n\r\n');
    const answer = await client.answer();
    client.destroy();
    return answer;
  };
  assert.equal((await chunked(bodyBytesMax)).status, 201);
  assert.equal((await chunked(bodyBytesMax + 1)).status, 413);
});

for (const [coding, compress] of [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const) {
  test(`content in ${coding} may decode to 1 MiB and not to more`, async () => {
    const headers = { 'Content-Encoding': coding };
    assert.equal((await post(compress(sized(bodyBytesMax)), headers)).status, 201);
    const refused = await post(compress(sized(bodyBytesMax + 1)), headers);
    assert.equal(refused.status, 413);
    assert.equal(refused.json().code, 'content_too_large');
  });
}

test('a small bomb is refused without being blown up, and the program goes on', async () => {
  const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, 0x20), { level: 9 });
  assert.ok(bomb.length < bodyBytesMax);
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => post(bomb, { 'Content-Encoding': 'gzip' })),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array.from({ length: 8 }, () => 413),
  );
  const twice = await post(gzipSync(bomb), { 'Content-Encoding': 'gzip, gzip' });
  assert.equal(twice.status, 413);
  assert.equal((await program.send('GET', '/health/ready')).status, 200);
});

test('a list takes a limit of 1000 and refuses 1001, in every way of asking', async () => {
  const query = (type: string, body: string) =>
    program.send('QUERY', categories, { headers: { 'Content-Type': type }, body });
  assert.equal((await program.send('GET', `${categories}?limit=1000&fields=id`)).status, 200);
  assert.equal((await program.send('GET', `${categories}?limit=1001`)).status, 400);
  assert.equal((await query('application/json', '{"limit":1000,"fields":["id"]}')).status, 200);
  assert.equal((await query('application/json', '{"limit":1001}')).status, 422);
  assert.equal((await query('application/sql', 'SELECT id FROM categories LIMIT 1000')).status, 200);
  assert.equal((await query('application/sql', 'SELECT id FROM categories LIMIT 1001')).status, 422);
});

test('bulk-delete takes 1000 ids and refuses 1001', async () => {
  const remove = (ids: number) =>
    program.send('POST', `${categories}/bulk-delete`, {
      json: { ids: Array.from({ length: ids }, (_, index) => `none-${index}`) },
    });
  const taken = await remove(1000);
  assert.equal(taken.status, 200, taken.body);
  assert.deepEqual(taken.json(), { deleted: 0 });
  const refused = await remove(1001);
  assert.equal(refused.status, 422);
  assert.match(JSON.stringify(refused.json().errors), /at most 1000/);
});

test('bulk-delete takes documents of as many characters as one unit may delete, and refuses more with nothing deleted', async (t) => {
  const env = { COMITY_UNITS_WAITING_BYTES_MAX: String(1024 * 1024) };
  const small = await startServer({ env });
  t.after(() => small.stop());
  const charactersMax = 256 * 1024;
  const names = async () =>
    (await small.send('GET', `${categories}?limit=1000`)).json().items as { id: string; name: string }[];
  const make = async (characters: number) => {
    const made = await small.send('POST', categories, { json: { name: 'x' } });
    const name = 'x'.repeat(characters - made.body.length + 1);
    const { id } = made.json();
    await small.send('PATCH', `${categories}/${id}`, { json: { name } });
    return id;
  };
  const ids = [await make(charactersMax / 2), await make(charactersMax / 2)];
  const more = await make(200);
  const remove = (some: readonly unknown[], headers = {}) =>
    small.send('POST', `${categories}/bulk-delete`, { json: { ids: some }, headers });
  const refused = await remove([...ids, more]);
  assert.equal(refused.status, 413, refused.body);
  assert.match(String(refused.json().error), /longer than 262144 characters together/);
  assert.equal((await names()).length, 3);
  const later = await remove([...ids, more], { Prefer: 'respond-async' });
  const location = `${later.headers.location}`;
  await until(async () => (await small.send('GET', location)).json().status === 'failed');
  assert.equal((await small.send('GET', `${location}/result`)).json().code, 'content_too_large');
  const halves = [
    ...ids,
    await make(charactersMax / 2),
    await make(charactersMax / 2),
    await make(charactersMax / 2),
  ];
  const replace = (atomic: boolean) =>
    small.send('POST', `${categories}/bulk`, {
      json: { items: halves.map((id) => ({ id, name: 'y' })), atomic, import: { existing: 'update' } },
    });
  const together = await replace(true);
  assert.match(`${together.status} ${together.body}`, /413 .*to replace are longer than 524288 characters/);
  assert.deepEqual((await remove(ids)).json(), { deleted: 2 });
  assert.equal((await replace(false)).status, 200, 'each item is a unit of its own');
  assert.deepEqual((await remove([more])).json(), { deleted: 1 });
});

test('JSON may nest 64 levels and not 65', async () => {
  // A name that is an array is well-formed and of the wrong type: 422 shows that it was parsed.
  const nested = (levels: number) => `{"name":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  assert.equal((await post(nested(64))).status, 422);
  const refused = await post(nested(65));
  assert.equal(refused.status, 400);
  assert.equal(refused.json().code, 'content_malformed');
});

test('a JSON object may have 10,000 members and not more', async () => {
  const members = (count: number) =>
    `{${Array.from({ length: count }, (_, index) => `"m${index}":0`).join(',')}}`;
  assert.equal((await post(members(10_000))).json().code, 'field_missing', 'it was parsed');
  assert.equal((await post(members(10_001))).json().code, 'content_malformed');
});

test('at most 20 errors of one request are told', async () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`unknown${index}`, 1]));
  const answer = await program.send('POST', categories, { json: { name: 'x', ...many } });
  assert.equal(answer.status, 422);
  assert.equal((answer.json().errors as unknown[]).length, 20);
});

test('a JSON Patch may have 1000 operations and not 1001', async () => {
  const path = String((await program.send('POST', categories, { json: { name: 'x' } })).headers.location);
  const patch = (operations: number) =>
    program.send('PATCH', path, {
      headers: { 'Content-Type': 'application/json-patch+json' },
      body: JSON.stringify(
        Array.from({ length: operations }, () => ({ op: 'replace', path: '/name', value: 'y' })),
      ),
    });
  assert.equal((await patch(1000)).status, 200);
  assert.equal((await patch(1001)).status, 400);
});
