/** Tokens of trusted issuers at the whole program, mounted in a server of its own. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { collection, createComity, defineConfig, Type } from '../../../src/index.ts';
import { base, bearer, type Client, openClient, register } from '../../harness/account-client.ts';
import { listen } from '../../harness/listening.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { audience, type Issuer, startIssuer } from '../../harness/token-issuer.ts';

type Served = { readonly client: Client; readonly issuer: Issuer };

async function serve(context: TestContext): Promise<Served> {
  const issuer = await startIssuer(context);
  const folder = temporaryFolder();
  const comity = await createComity(
    defineConfig({
      collections: {
        notes: collection({
          schema: Type.Object({ text: Type.String() }),
          access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
        }),
        ledgers: collection({
          schema: Type.Object({ text: Type.String() }),
          access: { read: { role: 'clerk' }, create: { role: 'clerk' } },
        }),
      },
      issuers: [
        { issuer: issuer.url, audience, scopeClaim: 'scope', rolesClaim: 'roles', tenantClaim: 'tenant' },
      ],
      settings: { data: folder, logLevel: 'silent', passwordMemoryKibibytes: 8 },
    }),
  );
  const server = await listen(createServer(comity.handle));
  const client = openClient(server.port);
  context.after(async () => {
    client.close();
    await server.close();
    await comity.close();
  });
  return { client, issuer };
}

test('what a token of a trusted issuer makes is its own, and it may do what its claims and the declaration grant', async (context) => {
  const { client, issuer } = await serve(context);
  const ada = bearer(await issuer.sign({ scope: 'read write', roles: ['clerk'], tenant: 'north' }));
  const grace = bearer(await issuer.sign({ sub: 'grace', scope: 'read write' }));
  const reader = bearer(await issuer.sign({ scope: 'read' }));
  const me = await client.ask('GET', `${base}/auth/me`, { headers: ada });
  assert.deepEqual(me.json(), {
    id: `${issuer.url}|ada`,
    kind: 'external',
    roles: ['clerk'],
    scopes: ['read', 'write'],
    tenant: 'north',
    authenticatedBy: 'issuer',
  });
  const made = await client.ask('POST', `${base}/notes`, { json: { text: 'mine' }, headers: ada });
  assert.equal(made.status, 201);
  const note = String(made.headers.location);
  assert.equal((await client.ask('GET', note, { headers: reader })).status, 200, 'the same subject');
  assert.equal((await client.ask('GET', note, { headers: grace })).status, 404);
  assert.equal((await client.ask('DELETE', note, { headers: reader })).status, 403);
  const ledger = { json: { text: 'x' } };
  assert.equal((await client.ask('POST', `${base}/ledgers`, { ...ledger, headers: ada })).status, 201);
  assert.equal((await client.ask('POST', `${base}/ledgers`, { ...ledger, headers: grace })).status, 403);
  assert.equal((await client.ask('GET', `${base}/users`, { headers: ada })).status, 403);
});

test('a token of a trusted issuer belongs to no session of ours', async (context) => {
  const { client, issuer } = await serve(context);
  const headers = bearer(await issuer.sign());
  const answer = await client.ask('POST', `${base}/auth/logout`, { headers });
  assert.equal(answer.status, 403);
});

test('a bad token of a trusted issuer is an invalid token, one that cannot be checked is 503, and our own go on', async (context) => {
  const { client, issuer } = await serve(context);
  const { token } = await register(client, 'ada@shop.example', 'correct horse');
  const sign = await issuer.sign();
  await issuer.close();
  const away = await client.ask('GET', `${base}/auth/me`, { headers: bearer(sign) });
  assert.equal(away.status, 503);
  assert.equal(away.json().code, 'unavailable');
  assert.match(String(away.headers['retry-after']), /^\d+$/);
  assert.equal((await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) })).status, 200);
  await issuer.open();
  const retryMs = 1000;
  for (let tries = 0; ; tries += 1) {
    const answer = await client.ask('GET', `${base}/auth/me`, { headers: bearer(sign) });
    if (answer.status === 200) break;
    assert.ok(answer.status === 503 && tries < 20, `${answer.status} ${answer.body}`);
    await new Promise((resolve) => setTimeout(resolve, retryMs / 4));
  }
  for (const forged of [
    await issuer.sign({ aud: 'https://other.example' }),
    await issuer.sign({ exp: Math.floor(Date.now() / 1000) - 31 }),
    await issuer.sign({}, { kid: 'other' }),
    `${sign.slice(0, -8)}AAAAAAAA`,
  ]) {
    const answer = await client.ask('GET', `${base}/auth/me`, { headers: bearer(forged) });
    assert.equal(answer.status, 401);
    assert.deepEqual(answer.json(), { error: 'invalid token', code: 'invalid_token' });
    assert.match(String(answer.headers['www-authenticate']), /error="invalid_token"/);
  }
});
