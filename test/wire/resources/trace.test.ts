/**
 * TRACE (§4.11; RFC 9110 §9.3.8): refused unless enabled, and then an echo without credentials.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

let off: RunningServer;
let on: RunningServer;

// COMITY_TEST_PROTOCOL of test/harness/exchange.ts: over HTTP/2 names of fields are in lower case.
const isHttp2 = process.env.COMITY_TEST_PROTOCOL === 'h2c';
const version = isHttp2 ? 'HTTP/2.0' : 'HTTP/1.1';

/** The name as it goes over the wire. */
function sent(name: string): string {
  return isHttp2 ? name.toLowerCase() : name;
}

before(async () => {
  [off, on] = await Promise.all([startServer(), startServer({ env: { COMITY_TRACE_METHOD: 'on' } })]);
});

after(() => Promise.all([off.stop(), on.stop()]));

test('TRACE is 405 with an Allow that does not list it, as long as it is not enabled', async () => {
  for (const path of ['/api/v1/products', '/api/v1/products/none', '/health/live']) {
    const answer = await off.send('TRACE', path, { anonymous: true });
    assert.equal(answer.status, 405, path);
    assert.ok(!/TRACE/.test(String(answer.headers.allow)), path);
    assert.equal(answer.json().code, 'method_not_allowed');
  }
  assert.ok(!/TRACE/.test(String((await off.send('OPTIONS', '*')).headers.allow)));
});

test('TRACE echoes the request line and fields as message/http', async () => {
  const answer = await on.send('TRACE', '/api/v1/products?a=1&b=%20', {
    anonymous: true,
    headers: { 'X-First': 'One', 'X-List': ['a', 'b'], 'Max-Forwards': '0' },
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'message/http');
  assert.equal(answer.headers['cache-control'], 'no-store');
  const [line, ...fields] = answer.body.split('\r\n');
  assert.equal(line, `TRACE /api/v1/products?a=1&b=%20 ${version}`);
  assert.ok(fields.includes(`${sent('X-First')}: One`));
  assert.ok(fields.includes(`${sent('Max-Forwards')}: 0`), 'the last recipient echoes it as received');
  assert.deepEqual(
    fields.filter((field) => field.startsWith(sent('X-List'))),
    [`${sent('X-List')}: a`, `${sent('X-List')}: b`],
  );
  assert.ok(!answer.body.includes('\r\n:'), 'no pseudo-field is shown');
  assert.ok(answer.body.endsWith('\r\n\r\n'));
});

test('TRACE withholds every carrier of a credential', async () => {
  const secret = 'sk_very_secret';
  const query = `api_key=${secret}&api%5Fkey=${secret}&ticket=${secret}&keep=1`;
  const answer = await on.send('TRACE', `/api/v1/products?${query}`, {
    anonymous: true,
    headers: {
      Authorization: `Bearer ${secret}`,
      'Proxy-Authorization': `Bearer ${secret}`,
      Cookie: `session=${secret}`,
      'X-API-Key': secret,
      'X-Gitlab-Token': secret,
      Referer: `https://shop.example/?api_key=${secret}`,
    },
  });
  assert.equal(answer.status, 200);
  assert.ok(!answer.body.includes(secret), answer.body);
  assert.ok(!answer.body.includes(adminKey));
  assert.ok(answer.body.startsWith(`TRACE /api/v1/products?keep=1 ${version}\r\n`), answer.body);
});

for (const value of ['0', '1', '70', '99999999999999999999', 'many', '-1', '']) {
  test(`TRACE and OPTIONS are answered here with Max-Forwards "${value}"`, async () => {
    const options = { anonymous: true, headers: { 'Max-Forwards': value } };
    assert.equal((await on.send('TRACE', '/api/v1/products', options)).status, 200);
    for (const path of ['/api/v1/products', '*']) {
      assert.equal((await on.send('OPTIONS', path, options)).status, 204, path);
    }
  });
}

test('TRACE and OPTIONS with two Max-Forwards are refused', async () => {
  const options = { anonymous: true, headers: { 'Max-Forwards': ['0', '0'] } };
  for (const method of ['TRACE', 'OPTIONS']) {
    assert.equal((await on.send(method, '/api/v1/products', options)).status, 400, method);
  }
});

test('TRACE with content is refused', async () => {
  const answer = await on.send('TRACE', '/api/v1/products', { anonymous: true, body: 'content' });
  assert.equal(answer.status, 400);
  assert.equal(answer.json().code, 'content_unexpected');
});

test('Allow lists TRACE where it is enabled, for a resource and for the server', async () => {
  assert.match(String((await on.send('OPTIONS', '/api/v1/products')).headers.allow), /\bTRACE\b/);
  assert.match(String((await on.send('OPTIONS', '*')).headers.allow), /\bTRACE\b/);
});
