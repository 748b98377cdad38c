/**
 * TRACE (§4.11; RFC 9110 §9.3.8): refused unless enabled, and then an echo without credentials.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { adminKey, type Program, startProgram } from '../program.ts';

let off: Program;
let on: Program;

before(async () => {
  [off, on] = await Promise.all([startProgram(), startProgram({ env: { COMITY_TRACE_METHOD: 'on' } })]);
});

after(() => Promise.all([off.stop(), on.stop()]));

test('TRACE is 405 with an Allow that does not list it, as long as it is not enabled', async () => {
  for (const path of ['/api/v1/products', '/api/v1/products/none', '/health/live']) {
    const answer = await off.send('TRACE', path, { anonymous: true });
    assert.equal(answer.status, 405, path);
    assert.ok(!/TRACE/.test(String(answer.headers.allow)), path);
    assert.equal(answer.json()['code'], 'method_not_allowed');
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
  assert.equal(line, 'TRACE /api/v1/products?a=1&b=%20 HTTP/1.1');
  assert.ok(fields.includes('X-First: One'));
  assert.ok(fields.includes('Max-Forwards: 0'), 'the last recipient echoes it as received');
  assert.deepEqual(
    fields.filter((field) => field.startsWith('X-List')),
    ['X-List: a', 'X-List: b'],
  );
  assert.ok(answer.body.endsWith('\r\n\r\n'));
});

test('TRACE withholds every carrier of a credential', async () => {
  const secret = 'sk_very_secret';
  const answer = await on.send('TRACE', `/api/v1/products?api_key=${secret}&api%5Fkey=${secret}&keep=1`, {
    anonymous: true,
    headers: {
      Authorization: `Bearer ${secret}`,
      'Proxy-Authorization': `Bearer ${secret}`,
      Cookie: `session=${secret}`,
      'X-API-Key': secret,
    },
  });
  assert.equal(answer.status, 200);
  assert.ok(!answer.body.includes(secret), answer.body);
  assert.ok(!answer.body.includes(adminKey));
  assert.match(answer.body, /^TRACE \/api\/v1\/products\?keep=1 HTTP\/1\.1\r\n/);
});

test('TRACE with content is refused', async () => {
  const answer = await on.send('TRACE', '/api/v1/products', { anonymous: true, body: 'content' });
  assert.equal(answer.status, 400);
  assert.equal(answer.json()['code'], 'content_unexpected');
});

test('Allow lists TRACE where it is enabled, for a resource and for the server', async () => {
  assert.match(String((await on.send('OPTIONS', '/api/v1/products')).headers.allow), /\bTRACE\b/);
  assert.match(String((await on.send('OPTIONS', '*')).headers.allow), /\bTRACE\b/);
});
