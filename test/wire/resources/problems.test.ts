/**
 * Refusals (§2.2, §7; RFC 9457) in both forms for every class, and credentials (§5.1, §5.2): each carrier, each message, the
 * challenges.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { adminKey, type RequestOptions } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openRaw, type RawAnswer } from '../server/raw-client.ts';

let program: RunningServer;
let articlePath: string;
let usedCategory: string;
const products = '/api/v1/products';

before(async () => {
  program = await startServer();
  const category = await program.send('POST', '/api/v1/categories', { json: { name: 'C' } });
  usedCategory = String(category.headers.location);
  const json = { name: 'P', price: 1, categoryId: category.json().id, sku: 'TAKEN' };
  await program.send('POST', products, { json });
  articlePath = '/api/v1/articles/one';
  await program.send('PUT', articlePath, { json: { title: 'T', published: true } });
});

after(() => program.stop());

const json = { 'Content-Type': 'application/json' };
const product = (fields: Record<string, unknown> = {}) => ({
  name: 'P',
  price: 1,
  categoryId: usedCategory.split('/').at(-1),
  ...fields,
});

const refusals: readonly (readonly [
  status: number,
  code: string,
  method: string,
  path: string | (() => string),
  options?: () => RequestOptions,
])[] = [
  [400, 'content_malformed', 'POST', products, () => ({ headers: json, body: '{' })],
  [400, 'content_missing', 'POST', products],
  [400, 'content_type_missing', 'QUERY', products, () => ({ body: '{}' })],
  [400, 'field_missing', 'POST', products, () => ({ json: {} })],
  [400, 'field_unpatchable', 'PATCH', () => articlePath, () => ({ json: { id: 'two' } })],
  [
    400,
    'patch_malformed',
    'PATCH',
    () => articlePath,
    () => ({ headers: { 'Content-Type': 'application/json-patch+json' }, body: '{}' }),
  ],
  [400, 'query_parameter_invalid', 'GET', `${products}?colour=red`],
  [400, 'field_invalid', 'GET', products, () => ({ headers: { 'If-None-Match': 'unquoted' } })],
  [
    400,
    'field_invalid',
    'PUT',
    () => articlePath,
    () => ({ json: { title: 'T' }, headers: { 'Content-Range': 'bytes 0-1/2' } }),
  ],
  [400, 'target_invalid', 'GET', '/api/v1/%zz'],
  [401, 'no_token_provided', 'POST', products, () => ({ json: product(), anonymous: true })],
  [404, 'not_found', 'GET', `${products}/none`],
  [404, 'not_found', 'GET', '/nothing/here'],
  [405, 'method_not_allowed', 'DELETE', products],
  [406, 'not_acceptable', 'GET', products, () => ({ headers: { Accept: 'image/png' } })],
  [409, 'unique_taken', 'POST', products, () => ({ json: product({ sku: 'TAKEN' }) })],
  [409, 'dependants_exist', 'DELETE', () => usedCategory],
  [
    412,
    'precondition_failed',
    'PATCH',
    () => articlePath,
    () => ({ json: { title: 'U' }, headers: { 'If-Match': '"0"' } }),
  ],
  [413, 'content_too_large', 'POST', products, () => ({ headers: json, body: `"${'x'.repeat(1_100_000)}"` })],
  [414, 'target_too_long', 'GET', `${products}?q=${'x'.repeat(8000)}`],
  [
    415,
    'media_type_unsupported',
    'POST',
    products,
    () => ({ headers: { 'Content-Type': 'text/csv' }, body: 'a' }),
  ],
  [
    415,
    'content_coding_unsupported',
    'POST',
    products,
    () => ({ headers: { ...json, 'Content-Encoding': 'compress' }, body: 'a' }),
  ],
  [417, 'expectation_failed', 'POST', products, () => ({ headers: { ...json, Expect: 'cake' }, body: '{}' })],
  [422, 'validation_failed', 'POST', products, () => ({ json: product({ price: -1 }) })],
  [422, 'reference_missing', 'POST', products, () => ({ json: product({ categoryId: 'none' }) })],
  [
    422,
    'patch_not_applicable',
    'PATCH',
    () => articlePath,
    () => ({
      headers: { 'Content-Type': 'application/json-patch+json' },
      body: '[{"op":"remove","path":"/body"}]',
    }),
  ],
  [422, 'query_unprocessable', 'QUERY', products, () => ({ json: { filter: { colour: 'red' } } })],
  [428, 'precondition_required', 'DELETE', () => articlePath],
  [501, 'method_unknown', 'PROPFIND', products],
];

for (const [status, code, method, path, options] of refusals) {
  const target = () => (typeof path === 'string' ? path : path());

  test(`${status} ${code}: ${method} has the error body, and problem+json where Accept asks for it`, async () => {
    const asked = options?.() ?? {};
    const plain = await program.send(method, target(), asked);
    assert.equal(plain.status, status, plain.body);
    assert.equal(plain.headers['content-type'], 'application/json');
    const body = plain.json();
    assert.equal(body.code, code);
    assert.equal(typeof body.error, 'string');
    assert.notEqual(body.error, '');
    assert.equal(plain.headers['cache-control'], 'no-store');
    assert.equal(plain.headers['api-version'], '1');
    assert.ok(plain.headers.date);
    assert.doesNotMatch(plain.body, /node:|\.ts:|at \w+ \(/, 'no stack trace');

    const accept = asked.headers?.Accept;
    const wanted =
      accept === undefined ? 'application/problem+json' : `${accept}, application/problem+json;q=0.1`;
    const details = await program.send(method, target(), {
      ...asked,
      headers: { ...asked.headers, Accept: wanted },
    });
    // 406 cannot come back once problem+json is accepted: RFC 9110 leaves it to the server to answer in it.
    if (status === 406) return;
    assert.equal(details.status, status, details.body);
    assert.equal(details.headers['content-type'], 'application/problem+json');
    assert.match(String(details.headers.vary), /\bAccept\b/);
    const problem = details.json();
    assert.equal(problem.status, status);
    assert.equal(problem.type, `/docs/errors#${code}`);
    assert.equal(typeof problem.title, 'string');
    assert.equal(problem.detail, body.error);
    for (const [name, value] of Object.entries(body)) assert.deepEqual(problem[name], value, name);
  });
}

test('application/json is preferred unless Accept ranks problem+json above it', async () => {
  for (const [accept, type] of [
    ['*/*', 'application/json'],
    ['application/json, application/problem+json', 'application/json'],
    ['application/json;q=0.5, application/problem+json', 'application/problem+json'],
    ['application/*', 'application/json'],
    ['text/html', 'application/json'],
  ] as const) {
    const answer = await program.send('GET', '/nothing', { headers: { Accept: accept } });
    assert.equal(answer.headers['content-type'], type, accept);
  }
});

test('HEAD errors have the status, the type and the length, and no content', async () => {
  for (const [status, path, options] of [
    [400, `${products}?colour=red`, {}],
    [401, '/api/v1/notes', { anonymous: true }],
    [404, `${products}/none`, {}],
    [405, `${products}/bulk-delete`, {}],
    [406, products, { headers: { Accept: 'image/png' } }],
    [414, `${products}?q=${'x'.repeat(8000)}`, {}],
  ] as const) {
    const head = await program.send('HEAD', path, options);
    assert.equal(head.status, status);
    assert.equal(head.body, '');
    assert.equal(head.headers['content-type'], 'application/json');
    assert.ok(Number(head.headers['content-length']) > 0);
  }
});

test('validation errors point at each member', async () => {
  const answer = await program.send('POST', products, { json: product({ name: '', price: 'x', extra: 1 }) });
  assert.equal(answer.status, 422);
  const errors = answer.json().errors as { pointer: string; message: string }[];
  assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), ['/extra', '/name', '/price']);
  for (const { message } of errors) assert.equal(typeof message, 'string');
});

test('content in UTF-8 is taken by each of its labels, and by that of its subset', async () => {
  for (const charset of ['UTF-8', 'utf8', 'US-ASCII']) {
    const body = JSON.stringify({ name: charset });
    const headers = { 'Content-Type': `application/json; charset=${charset}` };
    const made = await program.send('POST', '/api/v1/categories', { body, headers });
    assert.equal(made.status, 201, made.body);
  }
});

test('405 lists what is allowed, 415 what is taken, 412 what stands', async () => {
  const method = await program.send('PUT', products, { json: {} });
  assert.match(String(method.headers.allow), /\bPOST\b/);
  const type = await program.send('POST', products, { headers: { 'Content-Type': 'text/csv' }, body: 'a' });
  assert.match(String(type.headers['accept-post']), /application\/json/);
  assert.match(String(type.headers.accept), /application\/json/);
  const coding = await program.send('POST', products, {
    headers: { ...json, 'Content-Encoding': 'compress' },
    body: 'a',
  });
  assert.equal(coding.headers['accept-encoding'], 'gzip, deflate, br, zstd');
  const { etag } = (await program.send('GET', articlePath)).headers;
  const stale = await program.send('DELETE', articlePath, { headers: { 'If-Match': '"0"' } });
  assert.equal(stale.headers.etag, etag);
});

test('a method in lower case is 501 and says why', async () => {
  const answer = await raw(`query ${products} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  assert.equal(answer.status, 501);
  assert.match(answer.body, /method_unknown/);
});

test('too large a header section is 431 with the error body', async () => {
  const answer = await raw(
    `GET ${products} HTTP/1.1\r\nHost: localhost\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`,
  );
  assert.equal(answer.status, 431);
  assert.equal(answer.fields.get('content-type'), 'application/json');
  assert.equal((JSON.parse(answer.body) as { code: string }).code, 'fields_too_large');
  assert.equal(answer.fields.get('api-version'), '1');
});

test('a request without exactly one valid Host is 400', async () => {
  for (const host of ['', 'Host: a\r\nHost: b\r\n', 'Host: a b/\r\n']) {
    const answer = await raw(`GET ${products} HTTP/1.1\r\n${host}\r\n`);
    assert.equal(answer.status, 400, host);
    assert.equal(typeof (JSON.parse(answer.body) as { error: string }).error, 'string');
  }
});

async function raw(text: string): Promise<RawAnswer> {
  const client = await openRaw(program.port);
  const answer = await client.send(text).answer();
  client.destroy();
  return answer;
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

for (const [what, headers, query] of [
  ['Authorization: Bearer', { Authorization: `Bearer ${adminKey}` }, ''],
  ['Authorization: bearer, in lower case', { Authorization: `bearer ${adminKey}` }, ''],
  ['Authorization: ApiKey', { Authorization: `ApiKey ${adminKey}` }, ''],
  ['Authorization: Api-Key', { Authorization: `Api-Key ${adminKey}` }, ''],
  ['Authorization: Basic with the key as user', { Authorization: basic(adminKey, '') }, ''],
  ['X-API-Key', { 'X-API-Key': adminKey }, ''],
  ['the query parameter api_key', {}, `?api_key=${adminKey}`],
] as const) {
  test(`${what} carries the administrator key`, async () => {
    const options = { anonymous: true, headers };
    const made = await program.send('POST', `/api/v1/notes${query}`, { ...options, json: { text: what } });
    assert.equal(made.status, 201, made.body);
    assert.equal((await program.send('GET', `/api/v1/notes${query}`, options)).status, 200);
    assert.ok(!String(made.headers.location).includes('api_key'), 'a Location never repeats a credential');
    const list = await program.send(
      'GET',
      `/api/v1/notes${query === '' ? '?' : `${query}&`}limit=1`,
      options,
    );
    assert.ok(!String(list.headers.link).includes(adminKey), 'nor does Link');
  });
}

for (const [message, code, headers, query] of [
  ['no token provided', 'no_token_provided', {}, ''],
  ['invalid token', 'invalid_token', { Authorization: 'Bearer wrong' }, ''],
  ['invalid token', 'invalid_token', { Authorization: 'Bearer' }, ''],
  ['invalid token', 'invalid_token', { Authorization: 'Bearer a b' }, ''],
  ['invalid token', 'invalid_token', { Authorization: 'Digest username="x"' }, ''],
  ['invalid token', 'invalid_token', { Authorization: `Bearer ${adminKey}x` }, ''],
  ['invalid API key', 'invalid_api_key', { Authorization: 'ApiKey wrong' }, ''],
  ['invalid API key', 'invalid_api_key', { Authorization: 'Api-Key wrong' }, ''],
  ['invalid API key', 'invalid_api_key', { 'X-API-Key': 'wrong' }, ''],
  ['invalid API key', 'invalid_api_key', {}, '?api_key=wrong'],
  ['invalid API key', 'invalid_api_key', { Authorization: 'ApiKey a b' }, ''],
  ['API key required', 'api_key_required', { Authorization: 'ApiKey' }, ''],
  // HTTP/2 has no values that end in white space (RFC 9113 §8.2.1).
  ...(process.env.COMITY_TEST_PROTOCOL === undefined
    ? ([['API key required', 'api_key_required', { Authorization: 'Api-Key ' }, '']] as const)
    : []),
  ['API key required', 'api_key_required', { 'X-API-Key': '' }, ''],
  ['API key required', 'api_key_required', {}, '?api_key='],
  ['invalid credentials', 'invalid_credentials', { Authorization: basic('user', 'password') }, ''],
  ['invalid credentials', 'invalid_credentials', { Authorization: basic(adminKey, 'password') }, ''],
  ['invalid credentials', 'invalid_credentials', { Authorization: 'Basic' }, ''],
  ['invalid credentials', 'invalid_credentials', { Authorization: 'Basic %%%' }, ''],
] as const) {
  const carrier = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)[0] ?? query;
  test(`${carrier === '' ? 'nothing' : carrier} is 401 "${message}" with every challenge`, async () => {
    const answer = await program.send('GET', `/api/v1/notes${query}`, { anonymous: true, headers });
    assert.equal(answer.status, 401);
    assert.equal(answer.json().error, message);
    assert.equal(answer.json().code, code);
    const challenges = String(answer.headers['www-authenticate']);
    for (const scheme of ['Basic realm="', 'Bearer realm="', 'ApiKey realm="']) {
      assert.ok(challenges.includes(scheme), `${scheme} is missing from ${challenges}`);
    }
  });
}

test('each challenge has a line of its own, since some clients read one a line', async () => {
  const raw = await openRaw(program.port);
  const { head } = await raw.send('GET /api/v1/notes HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  raw.socket.destroy();
  const lines = head.split('\r\n').filter((line) => line.startsWith('WWW-Authenticate: '));
  assert.deepEqual(
    lines.map((line) => line.split(' ')[1]),
    ['Bearer', 'ApiKey', 'Basic'],
  );
});

test('a bad credential is refused where none would have been needed', async () => {
  for (const path of [products, '/health/live', '/api/v1/events']) {
    const answer = await program.send('GET', path, {
      anonymous: true,
      headers: { Authorization: 'Bearer wrong' },
    });
    assert.equal(answer.status, 401, path);
  }
});

test('a good credential beside a bad one does not redeem it: one alone may come', async () => {
  const answer = await program.send('GET', `/api/v1/notes?api_key=${adminKey}`, {
    anonymous: true,
    headers: { Authorization: 'Bearer wrong' },
  });
  assert.deepEqual([answer.status, answer.json().code], [400, 'credentials_repeated']);
});

test('two Authorization fields are 400', async () => {
  const answer = await raw(
    `GET /api/v1/notes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminKey}\r\n` +
      'Authorization: Bearer wrong\r\n\r\n',
  );
  assert.equal(answer.status, 400);
});

test('metrics are for administrators, health is for anyone', async () => {
  assert.equal((await program.send('GET', '/metrics', { anonymous: true })).status, 401);
  assert.equal((await program.send('GET', '/metrics')).status, 200);
  assert.equal((await program.send('GET', '/health/ready', { anonymous: true })).status, 200);
});

test('no credential reaches the log', () => {
  assert.ok(!`${program.stdout()}${program.stderr()}`.includes(adminKey));
});
