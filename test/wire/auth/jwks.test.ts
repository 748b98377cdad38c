/** GET /.well-known/jwks.json of the running program, and what another program can do with it. */
import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { verifyWithJwks } from 'hono/jwt';
import { createRemoteJWKSet, type JWK, jwtVerify } from 'jose';
import { register, serveAccounts } from '../../harness/account-client.ts';

const publicUrl = 'https://api.shop.example';
const path = '/.well-known/jwks.json';

const env = { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8', COMITY_PUBLIC_URL: publicUrl };

const { program, client } = await serveAccounts({ env });
const compatible = await serveAccounts({
  env: { ...env, COMITY_SIGNING_ALGORITHM: 'RS256', COMITY_ACCESS_TOKEN_TYPE: 'JWT' },
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

/** It ships no types. */
const jsonwebtoken = createRequire(import.meta.url)('jsonwebtoken') as {
  verify(token: string, key: KeyObject, options: object): { readonly sub: string };
};

test('with RS256 and typ JWT, jsonwebtoken and hono verify our access tokens', async () => {
  const { program: rsa, client: caller } = compatible;
  const { token, userId } = await register(caller, 'ada@shop.example', 'correct horse');
  const { keys } = (await caller.ask('GET', path)).json() as { keys: (JWK & { alg: string })[] };
  const [jwk] = keys;
  assert.ok(jwk?.alg === 'RS256');
  const options = { issuer: publicUrl, audience: publicUrl, algorithms: ['RS256'] };
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
  assert.equal(jsonwebtoken.verify(token, publicKey, options).sub, userId);
  const verified = await verifyWithJwks(token, {
    jwks_uri: `${rsa.url}${path}`,
    allowedAlgorithms: ['RS256'],
    verification: { iss: publicUrl, aud: publicUrl },
  });
  assert.equal(verified.sub, userId);
  const bearer = { Authorization: `Bearer ${token}` };
  assert.equal((await caller.ask('GET', '/api/v1/auth/me', { headers: bearer })).status, 200);
});

test('shows the private half of a key nowhere', async () => {
  const { body } = await client.ask('GET', path);
  assert.ok(!/"(d|p|q|dp|dq|qi|k)"/.test(body));
  assert.ok(!program.stdout().includes('"d"') && !program.stderr().includes('"d"'));
});
