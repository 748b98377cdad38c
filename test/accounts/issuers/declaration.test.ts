/** What a configuration may say about trusted issuers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspectIssuers } from '../../../src/config/trusted-issuers.ts';

const issuer = 'https://login.example';
const audience = 'https://api.shop.example';

function mistakesOf(declared: unknown): readonly string[] {
  const mistakes: string[] = [];
  inspectIssuers(declared, mistakes);
  return mistakes;
}

test('fills in what a declaration leaves out', () => {
  assert.deepEqual(inspectIssuers(undefined, []), []);
  assert.deepEqual(inspectIssuers([{ issuer, audience }], []), [
    {
      issuer,
      audience: [audience],
      audienceClaim: 'aud',
      types: undefined,
      jwksUri: undefined,
      algorithms: ['EdDSA', 'ES256', 'RS256', 'PS256'],
      clockSkewSeconds: 30,
      scopes: ['read', 'write'],
      scopeClaim: undefined,
      rolesClaim: undefined,
      tenantClaim: undefined,
    },
  ]);
});

test('takes everything that is good', () => {
  const declared = {
    issuer: 'http://localhost:8080/realms/shop',
    audience: [audience, 'shop'],
    audienceClaim: 'client_id',
    types: ['application/Okta-Internal-AT+JWT', 'JWT'],
    jwksUri: 'http://127.0.0.1:8080/keys',
    algorithms: ['ES512'],
    clockSkewSeconds: 0,
    scopes: ['read', 'admin'],
    scopeClaim: 'scp',
    rolesClaim: ['realm_access', 'roles'],
    tenantClaim: 'tid',
  };
  assert.deepEqual(mistakesOf([declared, { issuer, audience, clockSkewSeconds: 300 }]), []);
  const [resolved] = inspectIssuers([declared], []);
  assert.deepEqual(resolved, {
    ...declared,
    types: ['okta-internal-at+jwt', 'jwt'],
    ...{ scopeClaim: ['scp'], tenantClaim: ['tid'] },
  });
});

const good = { issuer, audience };
for (const [declared, sentence] of [
  [{}, /^issuers must be a list, not an object$/],
  [['x'], /^issuers\[0\] must be an object, not a string$/],
  [[good, good], /^issuers\[1\] is declared twice$/],
  [Array.from({ length: 65 }, (_, at) => ({ ...good, issuer: `${issuer}/${at}` })), /64 at most/],
  [[{ ...good, issuer: 'http://login.example' }], /^issuers\[0\]\.issuer must be an https URL/],
  [[{ ...good, issuer: 'login.example' }], /\.issuer must be/],
  [[{ ...good, issuer: 'https://user:secret@login.example' }], /\.issuer must be/],
  [[{ ...good, issuer: 'https://login.example/?a=b' }], /\.issuer must be/],
  [[{ ...good, issuer: `https://login.example/${'x'.repeat(255)}` }], /\.issuer must be/],
  [[{ audience }], /\.issuer must be/],
  [[{ issuer }], /\.audience must be .* every token of the issuer$/],
  [[{ ...good, audience: [] }], /\.audience must be/],
  [[{ ...good, audience: '' }], /\.audience must be/],
  [[{ ...good, audience: [7] }], /\.audience must be/],
  [[{ ...good, audienceClaim: 'sub' }], /\.audienceClaim must be aud, client_id, azp$/],
  [[{ ...good, types: [] }], /\.types must/],
  [[{ ...good, types: Array.from({ length: 9 }, () => 'JWT') }], /\.types must/],
  [[{ ...good, jwksUri: 'ftp://login.example/keys' }], /\.jwksUri must be/],
  [
    [{ ...good, algorithms: ['HS256'] }],
    /holds HS256, with which anyone who knows the public key could sign$/,
  ],
  [[{ ...good, algorithms: ['ES256', 'none'] }], /holds none, with which anyone/],
  [[{ ...good, algorithms: ['RSA1_5'] }], /holds "RSA1_5", which is not one of EdDSA, /],
  [[{ ...good, algorithms: [] }], /\.algorithms must be a list/],
  [[{ ...good, algorithms: 'ES256' }], /\.algorithms must be a list/],
  [[{ ...good, clockSkewSeconds: 301 }], /\.clockSkewSeconds must be a whole number from 0 to 300$/],
  [[{ ...good, clockSkewSeconds: -1 }], /\.clockSkewSeconds/],
  [[{ ...good, clockSkewSeconds: 1.5 }], /\.clockSkewSeconds/],
  [[{ ...good, clockSkewSeconds: '30' }], /\.clockSkewSeconds/],
  [[{ ...good, scopes: ['reed'] }], /\.scopes holds "reed", which is not a scope; did you mean read\?$/],
  [[{ ...good, scopes: 'read' }], /\.scopes must be a list of read, write/],
  [[{ ...good, rolesClaim: [] }], /\.rolesClaim must be the name of a claim/],
  [[{ ...good, scopeClaim: '' }], /\.scopeClaim must be/],
  [[{ ...good, tenantClaim: ['a', 7] }], /\.tenantClaim must be/],
  [[{ ...good, jwksUrl: issuer }], /^issuers\[0\] has no member "jwksUrl"; did you mean jwksUri\?$/],
] as const) {
  test(`refuses ${JSON.stringify(declared).slice(0, 80)}: ${sentence.source}`, () => {
    const mistakes = mistakesOf(declared);
    assert.equal(mistakes.length, 1, mistakes.join('\n'));
    assert.match(mistakes[0] ?? '', sentence);
    assert.ok(!mistakes[0]?.includes('secret'));
  });
}
