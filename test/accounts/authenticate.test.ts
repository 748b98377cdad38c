/**
 * Carriers to principals (§5.1, §5.2): what each carrier takes, and the words in which it refuses what it cannot take. The verifiers
 * are the least there can be and say what they were asked; what is remembered is so over a real store.
 */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  type Authenticate,
  createAuthenticate,
  createProxyAuthenticate,
  type Identified,
  type Verifiers,
} from '../../src/accounts/authenticate.ts';
import { createCrossSiteCheck } from '../../src/accounts/sessions/cookie.ts';
import type { Verdict } from '../../src/accounts/verdict.ts';
import {
  createVerifiedCredentials,
  type Unverified,
  type VerifiedCredentials,
} from '../../src/accounts/verified-credentials.ts';
import { authenticated, type Scheme } from '../../src/model/principal.ts';
import { openEmbedded } from '../harness/stores.ts';
import { badgeReader, putBadge, revokeBadge } from './fixtures/badges.ts';
import { basic, requestWith } from './fixtures/requests.ts';

const key = 'sk_good';
const publishable = 'pk_good';
const token = 'eyJ.good.token';
const cookie = 'ses_good.secret';
const session = `__Host-comity_session=${cookie}`;

/** What the verifiers were asked since the test began. */
const asked: string[] = [];
const isGood = new Set([
  `key ${key}`,
  `key ${publishable}`,
  `token ${token}`,
  `session-cookie ${cookie}`,
  'password ann@example.org correct',
]);

function judge(
  text: string,
  id: string,
  scheme: Scheme,
  problem: 'invalid_token' | 'invalid_api_key' | 'invalid_credentials',
): Verdict {
  asked.push(`${scheme} ${text}`);
  if (!isGood.has(`${scheme} ${text}`)) return { problem };
  return {
    principal: authenticated({ id, scopes: ['read'] }),
    scheme,
    session: scheme === 'key' ? null : 'ses_good',
    key: scheme === 'key' ? 'key_good' : null,
    expiresAt: Number.POSITIVE_INFINITY,
    basis: [],
  };
}

const verifiers: Verifiers = {
  key: (text) => judge(text, 'key', 'key', 'invalid_api_key'),
  token: async (text) =>
    text === 'eyJ.unavailable' ? { problem: 'unavailable' } : judge(text, 'ann', 'token', 'invalid_token'),
  password: async (user, password, { address }) =>
    password === 'too often'
      ? {
          problem: 'rate_limited',
          allowance: { exceeded: true, policy: '', rate: '', remaining: '0', retryAfterSeconds: 9 },
        }
      : judge(`${user} ${password}`, `ann from ${address}`, 'password', 'invalid_credentials'),
  session: (value) => judge(value, 'ann', 'session-cookie', 'invalid_token'),
};

const store = await openEmbedded();
let cache: VerifiedCredentials;
let authenticate: Authenticate;
let proxy: ReturnType<typeof createProxyAuthenticate>;

beforeEach(() => {
  asked.length = 0;
  cache = createVerifiedCredentials(store, () => 0, 1_000_000);
  authenticate = createAuthenticate({
    verifiers,
    cache,
    isCrossSite: createCrossSiteCheck(undefined, new Set(['https://app.example'])),
    addressOf: ({ peer }) => peer,
  });
  proxy = createProxyAuthenticate({ verifiers, cache });
});

/** Who it is, or the problem; `-` for nobody. */
function outcomeOf(identified: Identified): string {
  if ('problem' in identified) return identified.problem;
  return identified.principal.kind === 'anonymous' ? '-' : identified.principal.id;
}

async function outcome(fields: readonly string[], query?: string, method = 'GET'): Promise<string> {
  return outcomeOf(await authenticate(requestWith(fields, method), query));
}

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64');

test('every carrier leads to its principal', async () => {
  for (const [fields, query, id] of [
    [['Authorization', `Bearer ${token}`], undefined, 'ann'],
    [['Authorization', `bearer  ${token}`], undefined, 'ann'],
    [['Authorization', `Bearer ${key}`], undefined, 'key'],
    [['Authorization', `Bearer ${publishable}`], undefined, 'key'],
    [['Authorization', `ApiKey ${key}`], undefined, 'key'],
    [['Authorization', `Api-Key ${key}`], undefined, 'key'],
    [['Authorization', `API-KEY ${key}`], undefined, 'key'],
    [['Authorization', basic('ann@example.org', 'correct')], undefined, 'ann from 192.0.2.1'],
    [['Authorization', basic(key, '')], undefined, 'key'],
    [['X-API-Key', key], undefined, 'key'],
    [['X-API-Key', ` ${key} `], undefined, 'key'],
    [[], `api_key=${key}`, 'key'],
    [[], `limit=5&api_key=${key}&sort=name`, 'key'],
    [[], `%61pi%5fkey=sk%5Fgood`, 'key'],
    [['Cookie', session], undefined, 'ann'],
    [['Cookie', `theme=dark; ${session}; lang=en`], undefined, 'ann'],
    [['Cookie', 'theme=dark', 'Cookie', session], undefined, 'ann'],
  ] as const) {
    assert.equal(await outcome(fields, query), id, `${fields} ${query}`);
    // The second time it is remembered.
    const before = asked.length;
    assert.equal(await outcome(fields, query), id, `${fields} ${query}`);
    assert.equal(asked.length, before, `${fields} ${query} was verified again`);
  }
});

test('nothing sent is nobody, also beside other parameters and cookies', async () => {
  for (const [fields, query] of [
    [[], undefined],
    [[], ''],
    [[], 'q=api_key&my_api_key=x&api_keys=x&API_KEY=x'],
    [[], 'q=%61pi_key&price%5Bgt%5D=1&%zz=1'],
    [['Cookie', 'theme=dark'], undefined],
    [['Cookie', ''], undefined],
  ] as const) {
    assert.equal(await outcome(fields, query), '-', `${fields} ${query}`);
  }
  assert.deepEqual(asked, []);
});

/** Of each: the field value, and the problem. */
const refusals: readonly (readonly [string, string])[] = [
  // Bearer and what nobody here speaks.
  ['', 'invalid_token'],
  ['Bearer', 'invalid_token'],
  ['Bearer ', 'invalid_token'],
  ['Bearer wrong', 'invalid_token'],
  ['Bearer sk_wrong', 'invalid_token'],
  ['Bearer pk_wrong', 'invalid_token'],
  [`Bearer ${token} ${token}`, 'invalid_token'],
  [`Bearer ${token}, Bearer ${token}`, 'invalid_token'],
  [`Bearer ${token}, ApiKey ${key}`, 'invalid_token'],
  [`Bearer token="${token}"`, 'invalid_token'],
  [`Bearer\t${token}`, 'invalid_token'],
  [`Bearer,${token}`, 'invalid_token'],
  ['Bearer é', 'invalid_token'],
  [token, 'invalid_token'],
  [`Token ${token}`, 'invalid_token'],
  ['Digest username="ann", realm="comity"', 'invalid_token'],
  ['Negotiate abc', 'invalid_token'],
  [`Bearer ${'x'.repeat(15_000)}`, 'invalid_token'],
  // Keys.
  ['ApiKey', 'api_key_required'],
  ['Api-Key ', 'api_key_required'],
  ['ApiKey sk_wrong', 'invalid_api_key'],
  ['Api-Key pk_wrong', 'invalid_api_key'],
  [`ApiKey ${token}`, 'invalid_api_key'],
  [`ApiKey key=${key}`, 'invalid_api_key'],
  [`ApiKey ${key}, Basic abc`, 'invalid_api_key'],
  [`ApiKey ${key} ${key}`, 'invalid_api_key'],
  [`ApiKey ${'x'.repeat(15_000)}`, 'invalid_api_key'],
  // Basic.
  ['Basic', 'invalid_credentials'],
  ['Basic ', 'invalid_credentials'],
  ['Basic !!!', 'invalid_credentials'],
  ['Basic YTpi YTpi', 'invalid_credentials'],
  ['Basic YTpi, Bearer x', 'invalid_credentials'],
  ['Basic user="ann"', 'invalid_credentials'],
  ['Basic YTp', 'invalid_credentials'],
  ['Basic YTq=', 'invalid_credentials'],
  ['Basic YTpi=', 'invalid_credentials'],
  ['Basic YTpi-_', 'invalid_credentials'],
  [`Basic ${base64('no colon')}`, 'invalid_credentials'],
  [`Basic ${base64('')}`, 'invalid_credentials'],
  [`Basic ${base64(':')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org:wrong')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org:correct\0')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org\0:correct')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org:cor\rrect')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org\n:correct')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org:correct\x7f')}`, 'invalid_credentials'],
  [`Basic ${base64('ann@example.org:correct\x85')}`, 'invalid_credentials'],
  [`Basic ${base64(Uint8Array.of(0x61, 0x3a, 0xff))}`, 'invalid_credentials'],
  [basic('sk_wrong', ''), 'invalid_credentials'],
  [basic(key, 'something'), 'invalid_credentials'],
  [basic('', key), 'invalid_credentials'],
  [basic('ann@example.org', 'x'.repeat(10_000)), 'invalid_credentials'],
];

for (const [field, problem] of refusals) {
  const shown = field.length > 50 ? `${field.slice(0, 50)}... (${field.length})` : field;
  test(`refuses Authorization ${JSON.stringify(shown)} as ${problem}, every time`, async () => {
    for (let time = 0; time < 2; time += 1) {
      assert.equal(await outcome(['Authorization', field]), problem);
    }
  });
}

test('refuses keys in X-API-Key and api_key in the words of keys', async () => {
  for (const [text, problem] of [
    ['', 'api_key_required'],
    [' ', 'api_key_required'],
    ['sk_wrong', 'invalid_api_key'],
    [token, 'invalid_api_key'],
    [`Bearer ${key}`, 'invalid_api_key'],
    ['x'.repeat(15_000), 'invalid_api_key'],
  ] as const) {
    assert.equal(await outcome(['X-API-Key', text]), problem, text);
    assert.equal(await outcome([], `api_key=${encodeURIComponent(text)}`), problem, text);
  }
  assert.equal(await outcome([], 'api_key'), 'api_key_required');
  for (const query of ['api_key=%zz', 'api_key=%ff', 'api_key=%']) {
    assert.equal(await outcome([], query), 'invalid_api_key', query);
  }
});

test('what one carrier has brought is not taken from another', async () => {
  for (const fields of [
    ['X-API-Key', key],
    ['Authorization', `ApiKey ${key}`],
    ['Cookie', session],
  ]) {
    assert.notEqual(await outcome(fields), '-');
  }
  await outcome([], `api_key=${key}`);
  for (const text of [`k${key}`, `q${key}`, `c${cookie}`, `\nk${key}`, cookie]) {
    assert.equal(await outcome(['Authorization', text]), 'invalid_token', JSON.stringify(text));
    assert.equal(await outcome(['X-API-Key', text]), 'invalid_api_key', JSON.stringify(text));
    assert.equal(await outcome([], `api_key=${encodeURIComponent(text)}`), 'invalid_api_key');
  }
  assert.equal(await outcome(['X-API-Key', `ApiKey ${key}`]), 'invalid_api_key');
  assert.equal(await outcome(['Cookie', `__Host-comity_session=${key}`]), '-');
});

test('two credentials that were chosen are 400, good or bad, in any two places', async () => {
  const places = [
    [['Authorization', `Bearer ${key}`], undefined],
    [['Authorization', 'Bearer wrong'], undefined],
    [['X-API-Key', key], undefined],
    [['X-API-Key', ''], undefined],
    [[], `api_key=${key}`],
    [[], 'api_key'],
  ] as const;
  for (const [fields, query] of places) {
    for (const [otherFields, otherQuery] of places) {
      if (fields[0] === otherFields[0]) continue;
      const both = [...fields, ...otherFields];
      assert.equal(await outcome(both, query ?? otherQuery), 'credentials_repeated', `${both}`);
    }
  }
  assert.deepEqual(asked, [], 'none of them was tried');
});

test('api_key twice is 400, equal or not, however it is written', async () => {
  for (const query of [
    `api_key=${key}&api_key=${key}`,
    `api_key=${key}&api_key=wrong`,
    `api_key=${key}&a=b&api%5fkey=`,
    `api_key&api_key`,
  ]) {
    assert.equal(await outcome([], query), 'credentials_repeated', query);
  }
});

test('a cookie beside a credential that was chosen is ignored, good or bad', async () => {
  assert.equal(await outcome(['Cookie', session, 'X-API-Key', key]), 'key');
  assert.equal(await outcome(['Cookie', session, 'Authorization', 'Bearer wrong']), 'invalid_token');
  assert.equal(await outcome(['Cookie', session], 'api_key=wrong'), 'invalid_api_key');
  assert.equal(await outcome(['Cookie', '__Host-comity_session=stale', 'X-API-Key', key]), 'key');
  assert.ok(!asked.some((one) => one.startsWith('session-cookie')));
});

test('a cookie that is not good is as none: stale, malformed, empty, huge, or two of the name', async () => {
  for (const value of ['stale', 'a b', '"ses_good.secret"', '%00', 'x'.repeat(256)]) {
    assert.equal(await outcome(['Cookie', `__Host-comity_session=${value}`]), '-', value);
  }
  const judged = asked.length;
  assert.ok(judged > 0);
  for (const field of [
    '__Host-comity_session=',
    `__Host-comity_session=${'x'.repeat(257)}`,
    `${session}; ${session}`,
    `${session}; __Host-comity_session=planted`,
    `__Host-comity_session=planted; ${session}`,
  ]) {
    assert.equal(await outcome(['Cookie', field]), '-', field);
  }
  assert.equal(await outcome(['Cookie', session, 'Cookie', session]), '-');
  assert.equal(asked.length, judged, 'none of these was tried');
});

test('what a cookie carries must come from our own pages where it is unsafe, and nothing else must', async () => {
  const foreign = ['Origin', 'https://evil.example', 'Sec-Fetch-Site', 'cross-site'];
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    assert.equal(await outcome(['Cookie', session, ...foreign], undefined, method), 'cross_site_request');
    assert.equal(await outcome([...foreign], undefined, method), '-');
    assert.equal(await outcome(['Cookie', 'theme=dark', ...foreign], undefined, method), '-');
    assert.equal(await outcome(['Cookie', session, 'X-API-Key', key, ...foreign], undefined, method), 'key');
    assert.equal(await outcome(['Cookie', session], undefined, method), 'ann');
    const allowed = ['Origin', 'https://app.example', 'Sec-Fetch-Site', 'cross-site'];
    assert.equal(await outcome(['Cookie', session, ...allowed], undefined, method), 'ann');
  }
  for (const method of ['GET', 'HEAD', 'QUERY', 'OPTIONS']) {
    assert.equal(await outcome(['Cookie', session, ...foreign], undefined, method), 'ann', method);
  }
});

test('a refusal that is not about the credential reaches the caller as it is', async () => {
  assert.equal(await outcome(['Authorization', 'Bearer eyJ.unavailable']), 'unavailable');
  const limited = await authenticate(
    requestWith(['Authorization', basic('ann@example.org', 'too often')]),
    undefined,
  );
  assert.ok('problem' in limited);
  assert.equal(limited.problem, 'rate_limited');
  assert.equal(limited.allowance?.retryAfterSeconds, 9);
});

test('a password is judged for each address, remembered for it alone, and hashed once for many requests', async () => {
  const field = ['Authorization', basic('ann@example.org', 'correct')];
  const from = (peer: string) => authenticate(requestWith(field, 'GET', peer), undefined);
  const peers = ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.2'];
  for (const peer of peers) await from(peer);
  const all = await Promise.all([...peers, '192.0.2.3', '192.0.2.3'].map(from));
  assert.deepEqual(
    all.map(outcomeOf),
    [...peers, '192.0.2.3', '192.0.2.3'].map((peer) => `ann from ${peer}`),
  );
  assert.equal(asked.length, 3);
});

test('what is remembered gives no free guess: a wrong password makes the right one judged again, with its limit', async () => {
  const right = ['Authorization', basic('ann@example.org', 'correct')];
  const wrong = ['Authorization', basic('ann@example.org', 'wrong')];
  const from = async (fields: string[], peer: string) =>
    outcomeOf(await authenticate(requestWith(fields, 'GET', peer), undefined));
  assert.equal(await from(right, '192.0.2.1'), 'ann from 192.0.2.1');
  const before = asked.length;
  assert.equal(await from(wrong, '192.0.2.1'), 'invalid_credentials');
  assert.equal(await from(right, '192.0.2.1'), 'ann from 192.0.2.1');
  assert.equal(asked.length, before + 2, 'the right one was judged again');
  assert.equal(await from(wrong, '192.0.2.9'), 'invalid_credentials');
  assert.equal(await from(right, '192.0.2.1'), 'ann from 192.0.2.1');
  assert.equal(asked.length, before + 3, 'a guess from elsewhere disturbs nobody');
});

test('what is remembered holds no password, and long tokens by their digest alone', async () => {
  const remembered: Unverified[] = [];
  const watched = createAuthenticate({
    verifiers,
    cache: {
      recall: (name, proof) => cache.recall(name, proof),
      recallProven: (place, proof) => cache.recallProven(place, proof),
      verify: (credential) => {
        remembered.push(credential);
        return cache.verify(credential);
      },
      settle: (rows) => cache.settle(rows),
      size: () => cache.size(),
      close: () => cache.close(),
    },
    isCrossSite: () => false,
    addressOf: () => '192.0.2.1',
  });
  const long = `Bearer ${'x'.repeat(5000)}`;
  for (const field of [basic('ann', 'secret'), ` ${basic('bob', 'secret')}`, long, `Bearer ${token}`]) {
    await watched(requestWith(['Authorization', field]), undefined);
  }
  const [ann, bob, digested, plain] = remembered.map(({ name, proof, repeatable }) => ({
    name,
    proof,
    repeatable,
  }));
  for (const [user, password] of [
    ['ann', ann],
    ['bob', bob],
  ] as const) {
    assert.equal(password?.name, `@a192.0.2.1\n${user}`);
    assert.match(password?.proof ?? '', /^[\w-]{43}$/);
    assert.equal(password?.repeatable, false);
  }
  assert.match(digested?.name ?? '', /^#a[\w-]{43}$/);
  assert.equal(digested?.repeatable, false);
  assert.deepEqual(plain, { name: `aBearer ${token}`, proof: undefined, repeatable: true });
});

test('Proxy-Authorization takes keys, tokens and passwords, and refuses in the same words', async () => {
  for (const [field, expected] of [
    [undefined, '-'],
    [`Bearer ${key}`, 'key'],
    [`Bearer ${token}`, 'ann'],
    [basic(key, ''), 'key'],
    // Some clients send no user without a password.
    [basic('key', key), 'key'],
    [basic('key', 'sk_wrong'), 'invalid_api_key'],
    [basic('other', key), 'invalid_credentials'],
    [basic('ann@example.org', 'correct'), 'ann from 192.0.2.9'],
    ['', 'invalid_token'],
    ['Bearer', 'invalid_token'],
    ['Bearer wrong', 'invalid_token'],
    ['Bearer sk_wrong', 'invalid_token'],
    [`ApiKey ${key}`, 'invalid_token'],
    ['Digest a=b', 'invalid_token'],
    ['Basic', 'invalid_credentials'],
    ['Basic !', 'invalid_credentials'],
    [basic('ann@example.org', 'wrong'), 'invalid_credentials'],
    [basic('sk_wrong', ''), 'invalid_credentials'],
    [`Basic ${base64('a\0:b')}`, 'invalid_credentials'],
  ] as const) {
    for (let time = 0; time < 2; time += 1) {
      assert.equal(outcomeOf(await proxy(field, { address: '192.0.2.9' })), expected, String(field));
    }
  }
});

test('a proxy credential says nothing to the origin, nor the other way round', async () => {
  assert.equal(await outcome(['Proxy-Authorization', `Bearer ${key}`]), '-');
  assert.equal(
    await outcome(['Proxy-Authorization', `Bearer ${key}`, 'Authorization', `Bearer ${token}`]),
    'ann',
  );
});

test('a proxy credential that another process revoked is refused at once', async (context) => {
  const shared = { ...(await openEmbedded(context)), shared: true };
  await putBadge(shared, key, { holder: 'ann' });
  const verify = badgeReader(shared);
  const tunnel = createProxyAuthenticate({
    verifiers: { ...verifiers, key: (text) => verify.credential(text).verify() },
    cache: createVerifiedCredentials(shared, () => 0, 1_000_000),
  });
  for (let time = 0; time < 3; time += 1)
    assert.equal(outcomeOf(await tunnel(`Bearer ${key}`, { address: '' })), 'ann');
  assert.equal(verify.verified, 1);
  await revokeBadge(shared, key);
  assert.equal(outcomeOf(await tunnel(`Bearer ${key}`, { address: '' })), 'invalid_token');
});
