/** GET /.well-known/jwks.json of the running program, and what another program can do with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { register, serveAccounts } from '../../harness/account-client.ts';

const publicUrl = 'https://api.shop.example';
const path = '/.well-known/jwks.json';

const { program, client } = await serveAccounts({
  env: { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8', COMITY_PUBLIC_URL: publicUrl },
});

test('is read by anyone, as a JWK set or as JSON, and may be kept for less time than a key is published ahead', async () => {
  const answer = await client.ask('GET', path);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'application/jwk-set+json');
  assert.equal(answer.headers['cache-control'], 'public, max-age=300');
  const { keys } = answer.json() as { keys: Record<string, string>[] };
  // The second one signs webhooks.
  assert.deepEqual(
    keys.map(({ kid }) => kid?.startsWith('whk_')),
    [false, true],
  );
  assert.deepEqual(Object.keys(keys[0] ?? {}).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  assert.equal(keys[0]?.alg, 'EdDSA');
  const json = await client.ask('GET', path, { headers: { Accept: 'application/json' } });
  assert.equal(json.headers['content-type'], 'application/json');
  assert.equal(json.body, answer.body);
  assert.equal((await client.ask('GET', path, { headers: { Accept: 'text/html' } })).status, 406);
});

test('has a strong validator, so that asking again costs little', async () => {
  const { headers } = await client.ask('GET', path);
  const etag = String(headers.etag);
  assert.match(etag, /^"[^"]+"$/);
  const again = await client.ask('GET', path, { headers: { 'If-None-Match': etag } });
  assert.equal(again.status, 304);
  assert.equal(again.headers['cache-control'], 'public, max-age=300');
});

test('lets another program verify our access tokens by a library that it did not get from us', async () => {
  const { token, userId } = await register(client, 'ada@shop.example', 'correct horse');
  const keys = createRemoteJWKSet(new URL(path, program.url));
  const { payload, protectedHeader } = await jwtVerify(token, keys, {
    issuer: publicUrl,
    audience: publicUrl,
    typ: 'at+jwt',
    algorithms: ['EdDSA'],
  });
  assert.equal(payload.sub, userId);
  assert.equal(payload.scope, 'read write');
  assert.equal(Number(payload.exp) - Number(payload.iat), 900);
  assert.equal(protectedHeader.alg, 'EdDSA');
});

test('shows the private half of a key nowhere', async () => {
  const { body } = await client.ask('GET', path);
  assert.ok(!/"(d|p|q|dp|dq|qi|k)"/.test(body));
  assert.ok(!program.stdout().includes('"d"') && !program.stderr().includes('"d"'));
});
