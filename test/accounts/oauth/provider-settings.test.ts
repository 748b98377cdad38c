/** Providers as an operator declares them in the environment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isProviderVariable, readOAuthProviders } from '../../../src/config/oauth-providers.ts';

const client = { CLIENT_ID: 'my-client', CLIENT_SECRET: 'hunter2-hunter2' };

function read(declared: Readonly<Record<string, string>>) {
  const mistakes: string[] = [];
  const environment = Object.fromEntries(
    Object.entries(declared).map(([name, value]) => [`COMITY_OAUTH_${name}`, value]),
  );
  return { providers: readOAuthProviders(environment, mistakes), mistakes };
}

function of(name: string, parts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parts).map(([part, value]) => [`${name}_${part}`, value]));
}

test('reads a provider of OpenID Connect by its issuer, named in lower case', () => {
  const { providers, mistakes } = read(
    of('MY_COMPANY', { ...client, ISSUER: 'https://login.company.example/realm' }),
  );
  assert.deepEqual(mistakes, []);
  assert.deepEqual(
    [...providers],
    [
      [
        'my_company',
        {
          kind: 'openid',
          name: 'my_company',
          issuer: 'https://login.company.example/realm',
          clientId: 'my-client',
          clientSecret: 'hunter2-hunter2',
          scope: 'openid email profile',
        },
      ],
    ],
  );
});

test('reads a provider of plain OAuth 2.0 by three URLs', () => {
  const urls = {
    AUTHORIZATION_URL: 'https://forge.example/authorize',
    TOKEN_URL: 'https://forge.example/token',
    USERINFO_URL: 'https://api.forge.example/me?full=1',
  };
  const { providers, mistakes } = read(of('FORGE', { ...client, ...urls, SCOPE: 'user mail' }));
  assert.deepEqual(mistakes, []);
  const provider = providers.get('forge');
  assert.equal(provider?.kind, 'plain');
  assert.deepEqual(provider, {
    kind: 'plain',
    name: 'forge',
    authorizationUrl: 'https://forge.example/authorize',
    tokenUrl: 'https://forge.example/token',
    userinfoUrl: 'https://api.forge.example/me?full=1',
    emailsUrl: undefined,
    verifiedMember: 'email_verified',
    clientId: 'my-client',
    clientSecret: 'hunter2-hunter2',
    scope: 'user mail',
  });
});

test('needs only a client where there is a preset', () => {
  const names = ['GOOGLE', 'GITLAB', 'GITHUB', 'DISCORD'];
  const { providers, mistakes } = read(Object.assign({}, ...names.map((name) => of(name, client))));
  assert.deepEqual(mistakes, []);
  assert.deepEqual(
    [...providers.values()].map(({ name, kind, scope }) => [name, kind, scope]),
    [
      ['google', 'openid', 'openid email profile'],
      ['gitlab', 'openid', 'openid email profile'],
      ['github', 'plain', 'read:user user:email'],
      ['discord', 'plain', 'identify email'],
    ],
  );
});

test('takes an issuer in place of that of a preset', () => {
  const { providers } = read(of('GITLAB', { ...client, ISSUER: 'https://git.company.example' }));
  const provider = providers.get('gitlab');
  assert.equal(provider?.kind === 'openid' && provider.issuer, 'https://git.company.example');
});

test('counts an empty variable as unset, and knows those that are its own', () => {
  const { providers, mistakes } = read(of('GOOGLE', { CLIENT_ID: '', CLIENT_SECRET: '', ISSUER: '' }));
  assert.deepEqual([providers.size, mistakes], [0, []]);
  assert.equal(isProviderVariable('COMITY_OAUTH_GOOGLE_CLIENT_ID'), true);
  assert.equal(isProviderVariable('COMITY_ACCESS_TOKEN_SECONDS'), false);
});

const issuer = { ISSUER: 'https://login.example' };
const loopback = 'http:// only for 127.0.0.1, [::1] and localhost';

const faulty: readonly (readonly [
  what: string,
  parts: Readonly<Record<string, string>>,
  sentences: readonly RegExp[],
])[] = [
  ['a client without a secret', { CLIENT_ID: 'a', ...issuer }, [/^COMITY_OAUTH_X_CLIENT_SECRET is missing$/]],
  ['a secret without a client', { CLIENT_SECRET: 'a', ...issuer }, [/^COMITY_OAUTH_X_CLIENT_ID is missing$/]],
  [
    'no endpoints and no preset',
    client,
    [/^COMITY_OAUTH_X_ISSUER is missing, or .* only google, gitlab, github, discord need neither$/],
  ],
  [
    'one URL of three',
    { ...client, TOKEN_URL: 'https://x.example/token' },
    [/^COMITY_OAUTH_X_AUTHORIZATION_URL is missing$/, /^COMITY_OAUTH_X_USERINFO_URL is missing$/],
  ],
  [
    'an issuer beside a URL',
    { ...client, ...issuer, USERINFO_URL: 'https://x.example/me' },
    [/^COMITY_OAUTH_X_ISSUER and COMITY_OAUTH_X_USERINFO_URL are both set; set only one of them$/],
  ],
  [
    'an issuer in the clear',
    { ...client, ISSUER: 'http://login.example' },
    [/_ISSUER must be an https:\/\/ URL/],
  ],
  [
    'an issuer whose name begins like loopback',
    { ...client, ISSUER: 'http://127.0.0.1.example' },
    [/must be/],
  ],
  ['an issuer with a query', { ...client, ISSUER: 'https://login.example?tenant=1' }, [/without \?$/]],
  ['a URL with a user', { ...client, ISSUER: 'https://me:hunter2-hunter2@login.example' }, [/without user/]],
  ['no URL', { ...client, ISSUER: 'login.example' }, [/must be an https/]],
  ['a secret with a line break', { ...client, ...issuer, CLIENT_SECRET: 'hunter2\r\nX: y' }, [/printable/]],
  ['a scope with a quotation mark', { ...client, ...issuer, SCOPE: 'openid "x"' }, [/words with one space/]],
  [
    'an unknown part',
    { ...client, ...issuer, CLIENT_KEY: 'hunter2-hunter2' },
    [/^COMITY_OAUTH_X_CLIENT_KEY must be/],
  ],
  ['a huge value', { ...client, ...issuer, CLIENT_ID: 'a'.repeat(5000) }, [/at most 4096/]],
];

for (const [what, parts, sentences] of faulty) {
  test(`refuses ${what}, and repeats no value`, () => {
    const { providers, mistakes } = read(of('X', parts));
    assert.equal(providers.size, 0);
    assert.equal(mistakes.length, sentences.length, mistakes.join('\n'));
    for (const [at, sentence] of sentences.entries()) assert.match(mistakes[at] ?? '', sentence);
    assert.doesNotMatch(mistakes.join('\n'), /hunter2|login\.example/);
  });
}

test('refuses names that could not stand in a path', () => {
  for (const name of ['', 'lower', '1ST', 'A-B', 'A.B', 'A'.repeat(33)]) {
    const { providers, mistakes } = read(of(name, { ...client, ...issuer }));
    assert.deepEqual([providers.size, mistakes.length], [0, 3], name);
  }
});

test('lets a provider on this machine speak without TLS', () => {
  for (const host of ['127.0.0.1:9000', '127.9.9.9', '[::1]:9000', 'localhost:9000']) {
    const { mistakes } = read(of('X', { ...client, ISSUER: `http://${host}/` }));
    assert.deepEqual(mistakes, [], `${host}: ${loopback}`);
  }
});
