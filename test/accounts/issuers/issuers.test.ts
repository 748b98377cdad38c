/** Tokens of trusted issuers, against an issuer that is a real HTTP server. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose';
import { createBearerVerifier, createIssuerTokens } from '../../../src/accounts/tokens/issuer-tokens.ts';
import type { Verdict } from '../../../src/accounts/verdict.ts';
import { inspectIssuers, type TrustedIssuerDeclaration } from '../../../src/config/trusted-issuers.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { audience, type Issuer, startIssuer } from '../../harness/token-issuer.ts';
import { good, refused, start } from '../sessions/fixture.ts';

const minuteMs = 60_000;

type Given = {
  readonly issuer: Issuer;
  readonly clock: { now: number };
  readonly observed: Observation[];
  readonly verify: (token: string) => Promise<Verdict>;
  /** Tokens that were put before our own verifier instead. */
  readonly own: string[];
};

async function given(
  context: TestContext,
  declared: Partial<TrustedIssuerDeclaration> = {},
  issuerTimeoutMs = 5000,
): Promise<Given> {
  const clock = { now: start };
  const issuer = await startIssuer(context, { now: () => Math.floor(clock.now / 1000) });
  const mistakes: string[] = [];
  const issuers = inspectIssuers([{ issuer: issuer.url, audience, ...declared }], mistakes);
  assert.deepEqual(mistakes, []);
  const observed: Observation[] = [];
  const own: string[] = [];
  const services = servicesOver(
    {},
    {
      clock: () => clock.now,
      observe: (fact) => void observed.push(fact),
      settings: { issuerTimeoutMs, tokenCharactersMax: 8192 },
    },
  );
  const verifyOwn = (token: string): Verdict => {
    own.push(token);
    return { problem: 'invalid_token' };
  };
  const bearer = createBearerVerifier(services, verifyOwn, createIssuerTokens(services, issuers, fetch));
  return { issuer, clock, observed, own, verify: async (token) => bearer(token) };
}

async function unavailable(verdict: Promise<Verdict>): Promise<void> {
  assert.deepEqual(await verdict, { problem: 'unavailable' });
}

test('a token of a trusted issuer is a principal of its own, with what the declaration grants', async (context) => {
  const { issuer, verify, own } = await given(context);
  const verdict = await good(verify(await issuer.sign({ scope: 'admin', roles: ['administrator'] })));
  assert.equal(verdict.scheme, 'issuer');
  assert.equal(verdict.session, null);
  assert.equal(verdict.key, null);
  assert.equal(verdict.principal.id, `${issuer.url}|ada`);
  assert.deepEqual([...verdict.principal.scopes], ['read', 'write']);
  assert.deepEqual([...verdict.principal.roles], []);
  assert.equal(verdict.principal.tenant, null);
  assert.deepEqual(own, []);
});

test('scopes, roles and tenant come from the claims that the declaration names, however deep', async (context) => {
  const { issuer, verify } = await given(context, {
    scopes: ['read', 'write', 'webhooks'],
    scopeClaim: 'scope',
    rolesClaim: ['realm_access', 'roles'],
    tenantClaim: 'https://shop.example/tenant',
  });
  const { principal } = await good(
    verify(
      await issuer.sign({
        scope: 'openid read admin webhooks',
        realm_access: { roles: ['clerk', 'administrator', 7, '', 'x'.repeat(65), 'x'.repeat(64)] },
        'https://shop.example/tenant': 'north',
      }),
    ),
  );
  assert.deepEqual([...principal.scopes], ['read', 'webhooks']);
  assert.deepEqual([...principal.roles], ['clerk', 'x'.repeat(64)]);
  assert.equal(principal.tenant, 'north');
  const listed = await good(
    verify(await issuer.sign({ scope: ['write'], realm_access: { roles: 'clerk' } })),
  );
  assert.deepEqual([...listed.principal.scopes], ['write']);
  assert.deepEqual([...listed.principal.roles], ['clerk']);
  const bare = await good(verify(await issuer.sign({ realm_access: 7 })));
  assert.deepEqual([...bare.principal.scopes], []);
  assert.deepEqual([...bare.principal.roles], []);
  assert.equal(bare.principal.tenant, null);
});

test('only a declaration with the scope admin makes administrators, and only of those who bear the role', async (context) => {
  const { issuer, verify } = await given(context, {
    scopes: ['read', 'admin'],
    scopeClaim: 'scope',
    rolesClaim: 'roles',
  });
  const chief = await good(verify(await issuer.sign({ roles: ['administrator'] })));
  assert.deepEqual([...chief.principal.scopes], ['read', 'admin']);
  assert.ok(chief.principal.roles.has('administrator'));
  const clerk = await good(verify(await issuer.sign({ roles: ['clerk'], scope: 'read' })));
  assert.deepEqual([...clerk.principal.scopes], ['read']);
});

test('refuses another audience, issuer, type and algorithm, and missing claims', async (context) => {
  const { issuer, verify, own } = await given(context);
  await good(verify(await issuer.sign({ aud: ['https://other.example', audience] })));
  await good(verify(await issuer.sign({}, { typ: 'JWT' })));
  await good(verify(await issuer.sign({}, { typ: undefined })));
  const forged = [
    issuer.sign({ aud: 'https://other.example' }),
    issuer.sign({ aud: undefined as unknown as string }),
    issuer.sign({ aud: `${audience}/` }),
    issuer.sign({ sub: undefined as unknown as string }),
    issuer.sign({ sub: '' }),
    issuer.sign({ sub: 'a\u0000b' }),
    issuer.sign({ sub: 'x'.repeat(256) }),
    issuer.sign({ exp: undefined as unknown as number }),
    issuer.sign({}, { typ: 'logout+jwt' }),
    issuer.sign({}, { typ: 'dpop+jwt' }),
    issuer.sign({ cnf: { jkt: 'x' } }),
  ];
  for (const token of forged) await refused(verify(await token));
  assert.deepEqual(own, []);
  await refused(verify(await issuer.sign({ iss: 'https://other.example' })));
  assert.equal(own.length, 1, 'what is of no trusted issuer is for our own keys to judge');
  for (const alg of ['ES384', 'RS512', 'PS512']) {
    const pair = await issuer.turn(alg);
    await refused(verify(await issuer.sign({}, {}, pair)));
  }
});

const none = undefined as unknown as string;

for (const audienceClaim of ['client_id', 'azp'] as const) {
  test(`finds the audience in ${audienceClaim} where the declaration says so, and an aud must match all the same`, async (context) => {
    const { issuer, verify } = await given(context, { audienceClaim });
    const claims = (named: unknown, aud: string | readonly string[] = none) =>
      issuer.sign({ [audienceClaim]: named, aud: aud as string });
    await good(verify(await claims(audience)));
    await good(verify(await claims(audience, ['https://other.example', audience])));
    const other = audienceClaim === 'azp' ? 'client_id' : 'azp';
    for (const token of [
      claims('other-client'),
      claims(undefined),
      claims([audience]),
      claims({ toString: audience }),
      claims(audience, 'https://other.example'),
      claims(audience, []),
      claims(undefined, audience),
      issuer.sign({ aud: none, [other]: audience }),
    ]) {
      await refused(verify(await token));
    }
  });
}

test('types replaces the types of tokens that are accepted', async (context) => {
  const { issuer, verify } = await given(context, { types: ['application/okta-internal-at+jwt'] });
  for (const typ of ['okta-internal-at+jwt', 'application/Okta-Internal-AT+JWT']) {
    await good(verify(await issuer.sign({}, { typ })));
  }
  for (const typ of ['at+jwt', 'JWT', undefined, '', 'text/okta-internal-at+jwt']) {
    await refused(verify(await issuer.sign({}, { typ })));
  }
  await refused(verify(await issuer.sign({ cnf: { jkt: 'x' } }, { typ: 'okta-internal-at+jwt' })));
});

test('refuses foreign keys, no signature, and the public key as a secret', async (context) => {
  const { issuer, verify } = await given(context);
  const { privateKey } = await generateKeyPair('EdDSA');
  const [pair] = issuer.keys;
  assert.ok(pair);
  await refused(verify(await issuer.sign({}, {}, { ...pair, privateKey })));
  const token = await issuer.sign();
  const [, body = '', signature = ''] = token.split('.');
  const header = (alg: string) => Buffer.from(JSON.stringify({ alg, kid: pair.kid })).toString('base64url');
  await refused(verify(`${header('none')}.${body}.`));
  await refused(verify(`${header('none')}.${body}.${signature}`));
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  const spki = await exportSPKI((await importJWK(pair.jwk, 'EdDSA')) as CryptoKey);
  for (const secret of [spki, pair.jwk.x ?? '', JSON.stringify(pair.jwk)]) {
    await refused(
      verify(
        await new SignJWT(claims)
          .setProtectedHeader({ alg: 'HS256', kid: pair.kid })
          .sign(Buffer.from(secret)),
      ),
    );
  }
  await good(verify(token));
});

test('allows for clockSkewSeconds at both ends, and no more', async (context) => {
  const { issuer, clock, verify } = await given(context, { clockSkewSeconds: 10 });
  const token = await issuer.sign({ nbf: start / 1000, exp: start / 1000 + 100 });
  clock.now = start - 10_000;
  await good(verify(token));
  clock.now = start - 11_000;
  await refused(verify(token));
  clock.now = start + 109_000;
  const verdict = await good(verify(token));
  assert.equal(verdict.expiresAt, start + 110_000);
  clock.now = start + 110_000;
  await refused(verify(token));
});

test('remembers no verdict for longer than it keeps the keys', async (context) => {
  const { issuer, verify } = await given(context);
  const { expiresAt } = await good(verify(await issuer.sign({ exp: start / 1000 + 86_400 })));
  assert.equal(expiresAt, start + 10 * minuteMs);
});

test('asks for the keys once for many tokens, and again after ten minutes', async (context) => {
  const { issuer, clock, verify } = await given(context);
  const token = await issuer.sign();
  const verdicts = await Promise.all(Array.from({ length: 20 }, () => verify(token)));
  for (const verdict of verdicts) await good(verdict);
  assert.deepEqual(issuer.asked, ['/.well-known/openid-configuration', '/keys']);
  clock.now += 10 * minuteMs - 1;
  await good(verify(token));
  assert.equal(issuer.asked.length, 2);
  clock.now += 1;
  await good(verify(token));
  assert.equal(issuer.asked.length, 4);
});

test('asks no discovery document where the declaration says where the keys are', async (context) => {
  const clock = { now: start };
  const issuer = await startIssuer(context, { now: () => start / 1000 });
  const services = servicesOver({}, { clock: () => clock.now });
  const issuers = inspectIssuers([{ issuer: issuer.url, audience, jwksUri: `${issuer.url}/elsewhere` }], []);
  const tokens = createBearerVerifier(
    services,
    () => ({ problem: 'invalid_token' }),
    createIssuerTokens(services, issuers, fetch),
  );
  await good(tokens(await issuer.sign()));
  assert.deepEqual(issuer.asked, ['/elsewhere']);
});

test('a new key counts at once, a withdrawn one no longer than ten minutes, and made-up names cost nothing', async (context) => {
  const { issuer, clock, verify } = await given(context);
  const old = await issuer.sign();
  await good(verify(old));
  clock.now += 30_000;
  await issuer.turn('ES256');
  await good(verify(await issuer.sign()));
  assert.equal(issuer.asked.length, 4);
  for (let at = 0; at < 20; at += 1) await refused(verify(await issuer.sign({}, { kid: `made-up-${at}` })));
  assert.equal(issuer.asked.length, 4, 'not more than twice a minute');
  issuer.keys.shift();
  await good(verify(old));
  clock.now += 10 * minuteMs;
  await refused(verify(old));
});

test('an issuer that is away makes its tokens neither good nor invalid, and is asked again when it is back', async (context) => {
  const { issuer, clock, observed, verify } = await given(context);
  const token = await issuer.sign();
  await issuer.close();
  await unavailable(verify(token));
  await unavailable(verify(token));
  assert.deepEqual(
    observed.map(({ kind }) => kind),
    ['issuer-failed'],
    'once for an attempt, not for a token',
  );
  await issuer.open();
  await unavailable(verify(token));
  clock.now += 1000;
  await good(verify(token));
});

test('keys that are at hand stay good for an hour while the issuer is away, but tell of no new ones', async (context) => {
  const { issuer, clock, verify } = await given(context);
  const token = await issuer.sign({ exp: start / 1000 + 86_400 });
  await good(verify(token));
  await issuer.turn();
  const newer = await issuer.sign({ exp: start / 1000 + 86_400 });
  await issuer.close();
  clock.now += 30_000;
  await unavailable(verify(newer));
  clock.now = start + 70 * minuteMs - 1;
  await good(verify(token));
  await unavailable(verify(newer));
  clock.now = start + 70 * minuteMs;
  await unavailable(verify(token));
});

for (const [what, answer] of [
  ['an error', (_path, response) => response.writeHead(500).end()],
  ['a redirect', (_path, response) => response.writeHead(302, { location: '/keys' }).end()],
  ['no JSON', (_path, response) => response.end('<html>')],
  ['JSON that is no object', (_path, response) => response.end('[]')],
  ['keys that are none', (path, response) => response.end(path === '/keys' ? '{"keys": 7}' : '{}')],
  [
    'a document about another issuer',
    (_path, response) => response.end('{"issuer":"http://127.0.0.1","jwks_uri":"http://127.0.0.1/"}'),
  ],
  [
    'endless octets',
    (_path, response) => void response.on('error', () => undefined).end(Buffer.alloc(600_000, 32)),
  ],
] satisfies readonly (readonly [string, NonNullable<Issuer['answer']>])[]) {
  test(`an issuer that answers with ${what} is as one that is away`, async (context) => {
    const { issuer, clock, observed, verify } = await given(context);
    issuer.answer = answer;
    const token = await issuer.sign();
    await unavailable(verify(token));
    assert.equal(observed.length, 1);
    issuer.answer = undefined;
    clock.now += 1000;
    await good(verify(token));
  });
}

test('an issuer that names keys beyond this machine without TLS is not followed there', async (context) => {
  const { issuer, observed, verify } = await given(context);
  issuer.answer = (_path, response) =>
    void response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: 'http://issuer.example/keys' }));
  await unavailable(verify(await issuer.sign()));
  const [fact] = observed;
  assert.ok(fact?.kind === 'issuer-failed' && fact.error instanceof Error);
  assert.match(fact.error.message, /without TLS/);
});

test('an issuer that does not answer in time is as one that is away', async (context) => {
  const { issuer, verify } = await given(context, {}, 100);
  issuer.answer = () => undefined;
  await unavailable(verify(await issuer.sign()));
});

test('a token that is too long or no JWT is put before nobody', async (context) => {
  const { issuer, verify, own } = await given(context);
  await refused(verify(await issuer.sign({ pad: 'x'.repeat(8192) })));
  await refused(verify('opaque'));
  const token = await issuer.sign();
  await refused(verify(`${token}x`.replace('.', '..')));
  await refused(verify(token.replace('.', '=.')));
  assert.deepEqual(issuer.asked, []);
  assert.deepEqual(own, []);
});
