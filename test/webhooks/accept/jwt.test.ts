/** Senders whose messages carry a JWT (RFC 7519, RFC 8725): which tokens are refused, and the JWK sets of those that publish one. */
import assert from 'node:assert/strict';
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import type { DeclaredSender } from '../../../src/config/senders.ts';
import { presets } from '../../../src/webhooks/presets.ts';
import type { PublicJwk } from '../../../src/webhooks/signature/key-pair.ts';
import type { JwtRule } from '../../../src/webhooks/signature/signature-rule.ts';
import type { FetchKeys } from '../../../src/webhooks/signature/trusted-keys.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { jwtOf, pushed } from '../presets/vendor-messages.ts';
import { declared, secret, type WalkedSenders, walkSenders } from './walked-senders.ts';

const store = await openEmbedded();
const publicUrl = 'https://shop.example';
const target = `${publicUrl}/api/v1/webhooks/qstash`;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = (key: KeyObject, members: object): PublicJwk =>
  ({ ...key.export({ format: 'jwk' }), ...members }) as PublicJwk;
const byRsa = (key: KeyObject) => (content: string) =>
  sign('sha256', Buffer.from(content), key).toString('base64url');
const byEc = (content: string) =>
  sign('sha256', Buffer.from(content), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' }).toString(
    'base64url',
  );
const bySecret = (key: string | Buffer) => (content: string) =>
  createHmac('sha256', key).update(content).digest('base64url');

const keysUrl = new URL('https://www.googleapis.com/oauth2/v3/certs');
function withRule(
  name: string,
  preset: 'google-pubsub' | 'plaid' | 'qstash',
  given: Partial<DeclaredSender> = {},
  rule: Partial<JwtRule> = {},
) {
  const { signature, ...others } = presets[preset];
  return declared(name, preset, {
    rule: { ...others, signature: { ...signature, ...rule } as JwtRule },
    ...given,
  });
}
const google = withRule('google', 'google-pubsub', { keysUrl }, pushed);
const plaid = withRule('plaid', 'plaid', { publicKeys: [jwk(ec.publicKey, { kid: 'p1' })] });
const qstash = withRule('qstash', 'qstash');

const body = '{"message":{"messageId":"m-1","data":"e30="},"subscription":"projects/p/subscriptions/s"}';
const sha256 = (encoding: 'hex' | 'base64url', of = body) => createHash('sha256').update(of).digest(encoding);
const header = { alg: 'RS256', kid: 'g1', typ: 'JWT' };

type Case = readonly [title: string, sender: string, made: (seconds: number) => string, reason: string];
const googleClaims = (seconds: number) => ({
  ...{ iss: 'https://accounts.google.com', aud: pushed.audience, email: pushed.email, email_verified: true },
  ...{ iat: seconds, exp: seconds + 3600 },
});
const ofGoogle =
  (claims: object, signs = byRsa(rsa.privateKey), head: object = header) =>
  (seconds: number) =>
    `Bearer ${jwtOf(head, { ...googleClaims(seconds), ...claims }, signs)}`;
const ofGoogleAt = (claims: (seconds: number) => object) => (seconds: number) =>
  ofGoogle(claims(seconds))(seconds);
const ofPlaid =
  (claims: (seconds: number) => object, head: object = { alg: 'ES256', kid: 'p1' }) =>
  (seconds: number) =>
    jwtOf(head, { iat: seconds, request_body_sha256: sha256('hex'), ...claims(seconds) }, byEc);
const ofQstash =
  (claims: (seconds: number) => object, key = secret, head: object = { alg: 'HS256' }) =>
  (seconds: number) => {
    const usual = { iss: 'Upstash', sub: target, exp: seconds + 300, nbf: seconds, iat: seconds };
    return jwtOf(head, { ...usual, body: sha256('base64url'), ...claims(seconds) }, bySecret(key));
  };
const none = () => ({});
const publicPem = Buffer.from(rsa.publicKey.export({ format: 'pem', type: 'spki' }));

const refusals: readonly Case[] = [
  ['a key that is not published', 'google', ofGoogle({}, byRsa(otherRsa.privateKey)), 'no-match'],
  ['another audience', 'google', ofGoogle({ aud: 'https://other.example' }), 'unexpected'],
  ['no audience', 'google', ofGoogle({ aud: undefined }), 'unexpected'],
  [
    'another service account',
    'google',
    ofGoogle({ email: 'push@evil.iam.gserviceaccount.com' }),
    'unexpected',
  ],
  ['an address that is not verified', 'google', ofGoogle({ email_verified: false }), 'unexpected'],
  ['an address verified by a text', 'google', ofGoogle({ email_verified: 'true' }), 'unexpected'],
  ['another issuer', 'google', ofGoogle({ iss: 'https://accounts.google.com.evil.example' }), 'unexpected'],
  ['alg none', 'google', ofGoogle({}, () => '', { alg: 'none' }), 'no-match'],
  [
    'HS256 with the public key as secret',
    'google',
    ofGoogle({}, bySecret(publicPem), { alg: 'HS256', kid: 'g1' }),
    'no-match',
  ],
  ['an unknown kid', 'google', ofGoogle({}, undefined, { ...header, kid: 'g2' }), 'no-match'],
  ['a critical extension', 'google', ofGoogle({}, undefined, { ...header, crit: ['b64'] }), 'malformed'],
  ['a kid that is no text', 'google', ofGoogle({}, undefined, { ...header, kid: 7 }), 'malformed'],
  ['no exp', 'google', ofGoogle({ exp: undefined }), 'malformed'],
  ['an exp that is no number', 'google', ofGoogle({ exp: 'never' }), 'malformed'],
  ['an exp of half a minute ago', 'google', ofGoogleAt((now) => ({ exp: now - 30 })), 'stale'],
  ['an nbf beyond half a minute', 'google', ofGoogleAt((now) => ({ nbf: now + 31 })), 'ahead'],
  ['two parts', 'google', (now) => ofGoogle({})(now).split('.').slice(0, 2).join('.'), 'malformed'],
  ['another scheme', 'google', (now) => ofGoogle({})(now).replace('Bearer', 'Basic'), 'malformed'],
  ['a field beyond its bound', 'google', ofGoogle({ more: 'x'.repeat(8192) }), 'malformed'],
  [
    'the digest of another body',
    'plaid',
    ofPlaid(() => ({ request_body_sha256: sha256('hex', 'other') })),
    'no-match',
  ],
  ['no digest', 'plaid', ofPlaid(() => ({ request_body_sha256: undefined })), 'no-match'],
  ['an iat of more than five minutes ago', 'plaid', ofPlaid((now) => ({ iat: now - 301 })), 'stale'],
  ['an iat ahead by more than five minutes', 'plaid', ofPlaid((now) => ({ iat: now + 301 })), 'ahead'],
  ['no iat', 'plaid', ofPlaid(() => ({ iat: undefined })), 'malformed'],
  ['a key of another kid', 'plaid', ofPlaid(none, { alg: 'ES256', kid: 'p2' }), 'no-match'],
  ['alg RS256 for ES256', 'plaid', ofPlaid(none, { alg: 'RS256', kid: 'p1' }), 'no-match'],
  ['another secret', 'qstash', ofQstash(none, 'another'), 'no-match'],
  ['another URL', 'qstash', ofQstash(() => ({ sub: 'https://other.example/' })), 'unexpected'],
  [
    'the digest of another body by a secret',
    'qstash',
    ofQstash(() => ({ body: sha256('base64url', 'other') })),
    'no-match',
  ],
  ['another issuer by a secret', 'qstash', ofQstash(() => ({ iss: 'Downstash' })), 'unexpected'],
];

const accepted: readonly Omit<Case, 3>[] = [
  ['Google', 'google', ofGoogle({}), ''],
  [
    'Google, one of several audiences',
    'google',
    ofGoogle({ aud: ['https://other.example', pushed.audience] }),
    '',
  ],
  ['Google, the other spelling of its issuer', 'google', ofGoogle({ iss: 'accounts.google.com' }), ''],
  ['Google, without a kid', 'google', ofGoogle({}, undefined, { alg: 'RS256' }), ''],
  ['an exp within the skew of clocks', 'google', ofGoogleAt((now) => ({ exp: now - 29 })), ''],
  ['an nbf within the skew of clocks', 'google', ofGoogleAt((now) => ({ nbf: now + 30 })), ''],
  ['Plaid, at the edge of its age', 'plaid', ofPlaid((now) => ({ iat: now - 300 })), ''],
  ['QStash', 'qstash', ofQstash(none), ''],
  ['QStash, a digest with padding', 'qstash', ofQstash(() => ({ body: `${sha256('base64url')}=` })), ''],
  [
    'QStash, the port of the URL',
    'qstash',
    ofQstash(() => ({ sub: target.replace('.example', '.example:443') })),
    '',
  ],
];

const fields: Readonly<Record<string, string>> = {
  google: 'authorization',
  plaid: 'plaid-verification',
  qstash: 'upstash-signature',
};
const published = {
  keys: [jwk(otherRsa.publicKey, { kid: 'g0', use: 'enc' }), jwk(rsa.publicKey, { kid: 'g1', alg: 'RS256' })],
};
const fetchKeys: FetchKeys = async (url) => {
  assert.equal(url, keysUrl.href);
  return Response.json(published);
};
const room = walkSenders(store, { publicUrl, fetchKeys, senders: [google, plaid, qstash] });
const post = (walked: WalkedSenders, sender: string, made: (seconds: number) => string, octets = body) =>
  walked.post(sender, {
    body: octets,
    fields: [fields[sender] ?? '', made(Math.floor(walked.clock() / 1000))],
  });

describe('a token is refused with', () => {
  for (const [title, sender, made, reason] of refusals) {
    test(`${title}: ${reason}`, async () => {
      const answered = await post(room, sender, made);
      assert.equal(answered.status, 400);
      assert.equal(answered.json.reason, reason);
    });
  }
  test('an altered body', async () => {
    for (const [sender, made] of [
      ['plaid', ofPlaid(none)],
      ['qstash', ofQstash(none)],
    ] as const)
      assert.equal((await post(room, sender, made, `${body} `)).status, 400);
  });
});

describe('a token is accepted', () => {
  for (const [title, sender, made] of accepted) {
    test(title, async () => {
      assert.equal((await post(room, sender, made)).status, sender === 'plaid' ? 200 : 204);
    });
  }
  test('and its message has the id and type that the preset names', async () => {
    const [first] = await room.received('google');
    assert.deepEqual([first?.dedupeKey, first?.type], ['m-1', 'projects/p/subscriptions/s']);
  });
  test('once, though equal bodies of Plaid are different messages', async () => {
    const before = (await room.received('plaid')).length;
    const [one, other] = [ofPlaid(none), ofPlaid(none)].map((made) => made(Math.floor(room.clock() / 1000)));
    for (const token of [one, one, other]) await post(room, 'plaid', () => token ?? '');
    assert.equal((await room.received('plaid')).length, before + 2);
  });
});

describe('a JWK set', () => {
  const serving = (answer: () => Response) => {
    let asked = 0;
    const walked = walkSenders(store, {
      senders: [withRule('google', 'google-pubsub', { keysUrl }, pushed)],
      fetchKeys: async () => {
        asked += 1;
        return answer();
      },
    });
    return { ...walked, send: (made = ofGoogle({})) => post(walked, 'google', made), asked: () => asked };
  };
  const unusable: readonly (readonly [string, () => Response])[] = [
    ['is more than 64 KiB', () => new Response(JSON.stringify({ ...published, pad: 'x'.repeat(65_536) }))],
    ['is no JSON', () => new Response('<html>')],
    ['has no keys', () => Response.json({})],
    ['redirects', () => new Response(null, { status: 302, headers: { location: keysUrl.href } })],
    ['has 33 keys', () => Response.json({ keys: Array(33).fill(jwk(rsa.publicKey, {})) })],
  ];
  for (const [title, answer] of unusable) {
    test(`that ${title} is unavailable, so that the sender tries again`, async () => {
      assert.equal((await serving(answer).send()).status, 503);
    });
  }
  test('that has short keys matches nothing', async () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const walked = serving(() => Response.json({ keys: [jwk(short.publicKey, { kid: 'g1' })] }));
    assert.equal((await walked.send(ofGoogle({}, byRsa(short.privateKey)))).status, 400);
  });
  test('is fetched once, and again for a new key after half a minute', async () => {
    const keys = [jwk(rsa.publicKey, { kid: 'g1' })];
    const walked = serving(() => Response.json({ keys }));
    const ofNew = ofGoogle({}, byRsa(otherRsa.privateKey), { alg: 'RS256', kid: 'g2' });
    for (const _ of [1, 2, 3]) assert.equal((await walked.send()).status, 204);
    for (const _ of [1, 2, 3]) assert.equal((await walked.send(ofNew)).status, 400);
    assert.equal(walked.asked(), 1);
    keys.push(jwk(otherRsa.publicKey, { kid: 'g2' }));
    walked.moveClock(30);
    assert.equal((await walked.send(ofNew)).status, 204);
    assert.equal(walked.asked(), 2);
  });
});
