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

test('says how the issuer of a preset looks, where each customer has one', () => {
  for (const name of ['MICROSOFT', 'KEYCLOAK', 'AUTH0', 'OKTA', 'COGNITO', 'CLERK']) {
    const { mistakes } = read(of(name, client));
    assert.equal(mistakes.length, 1);
    assert.match(mistakes[0] ?? '', new RegExp(`^COMITY_OAUTH_${name}_ISSUER is missing, such as https://`));
  }
});

test('takes a departure in place of that of a preset', () => {
  const { providers, mistakes } = read(of('LINKEDIN', { ...client, PKCE: 'on', NONCE: 'on' }));
  assert.deepEqual(mistakes, []);
  const { pkce, nonce, clientAuth } = providers.get('linkedin') ?? {};
  assert.deepEqual([pkce, nonce, clientAuth], ['on', 'on', 'post']);
});

test('takes a secret of 32 characters for HS256', () => {
  const secret = { CLIENT_ID: 'a', CLIENT_SECRET: 's'.repeat(32) };
  assert.deepEqual(read(of('LINE', secret)).mistakes, []);
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
    [/^COMITY_OAUTH_X_ISSUER is missing, or .* only google, apple, github, linkedin, .* need neither$/],
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
  [
    'a nonce that is neither',
    { ...client, ...issuer, NONCE: 'no' },
    [/^COMITY_OAUTH_X_NONCE must be on or off$/],
  ],
  ['an unknown mode', { ...client, ...issuer, RESPONSE_MODE: 'fragment' }, [/must be query or form_post$/]],
  [
    'an unknown way to authenticate',
    { ...client, ...issuer, CLIENT_AUTH: 'none' },
    [/must be basic or post$/],
  ],
  [
    'no algorithm',
    { ...client, ...issuer, ALGORITHMS: 'ES256,none' },
    [/_ALGORITHMS must be a list, .* HS256/],
  ],
  [
    'a secret of 31 characters for HS256',
    { ...client, ...issuer, CLIENT_SECRET: 's'.repeat(31), ALGORITHMS: 'HS256' },
    [/^COMITY_OAUTH_X_CLIENT_SECRET must have at least 32 characters for HS256$/],
  ],
  [
    'a public key as the secret for HS256',
    { ...client, ...issuer, CLIENT_SECRET: '-----BEGIN PUBLIC KEY-----MFkw', ALGORITHMS: 'HS256' },
    [/_CLIENT_SECRET is a key; set KEY_ID and TEAM_ID too$/],
  ],
  [
    'a secret in place of the key of apple',
    { ...client, ...issuer, KEY_ID: 'a', TEAM_ID: 'b' },
    [/_CLIENT_SECRET must be the private key/],
  ],
  [
    'a key without its team',
    {
      CLIENT_ID: 'a',
      ...issuer,
      KEY_ID: 'a',
      CLIENT_SECRET: '-----BEGIN PRIVATE KEY-----\nM=\n-----END PRIVATE KEY-----',
    },
    [/_TEAM_ID is missing$/],
  ],
  [
    'algorithms of a provider without ID tokens',
    {
      ...client,
      ...{ AUTHORIZATION_URL: 'https://x.example/a', TOKEN_URL: 'https://x.example/t', ALGORITHMS: 'ES256' },
      USERINFO_URL: 'https://x.example/u',
    },
    [/_ALGORITHMS applies only to a provider with an issuer$/],
  ],
  [
    'the issuer of all tenants of Microsoft',
    { ...client, ISSUER: 'https://login.microsoftonline.com/common/v2.0' },
    [/_ISSUER must name your tenant/],
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
