/** Standard Webhooks (§5.6): v1 and v1a over id, time and body. */
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { signStandard, verifyStandard } from '../../../src/webhooks/index.ts';

const oldKey = Buffer.alloc(24, 1);
const newKey = Buffer.alloc(32, 2);
const [secret, newer] = [oldKey, newKey].map((key) => `whsec_${key.toString('base64')}`) as [string, string];
const id = 'evt_01';
const timestamp = 1_900_000_000;
const nowMs = timestamp * 1000;
const body = '{"type":"a.b","data":{"name":"Käse"}}';
const content = `${id}.${timestamp}.${body}`;
const v1 = (key: Buffer) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
const pair = generateKeyPairSync('ed25519');
const otherPair = generateKeyPairSync('ed25519');
const jwk = (key: typeof pair.publicKey) =>
  key.export({ format: 'jwk' }) as { kty: string; crv: string; x: string };
const v1a = `v1a,${sign(null, Buffer.from(content), pair.privateKey).toString('base64')}`;

const verdictOf = (signature: string | null | undefined, more: object = {}) =>
  verifyStandard({ body, id, timestamp: String(timestamp), signature, secrets: [secret], nowMs, ...more });
const good = (version: string) => ({ ok: true, id, timestamp, version });
const refused = (reason: string) => ({ ok: false, reason });
const byKey = { secrets: undefined, publicKeys: [jwk(pair.publicKey)] };

test('signs id, time and body with the decoded bytes of each secret and with each private key', async () => {
  const privateKeys = [pair.privateKey.export({ format: 'jwk' }) as { kty: string; crv: string; d: string }];
  assert.deepEqual(await signStandard({ id, timestamp, body, secrets: [newer, secret], privateKeys }), {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `${v1(newKey)} ${v1(oldKey)} ${v1a}`,
  });
});

test('believes a list in which any entry fits any of the secrets or keys, and says what was signed', async () => {
  const list = `${v1(newKey)} ${v1(oldKey)} ${v1a}`;
  assert.deepEqual(await verdictOf(list), good('v1'));
  assert.deepEqual(await verdictOf(list, { secrets: [newer] }), good('v1'));
  assert.deepEqual(await verdictOf(v1(oldKey), { secrets: [newer, secret] }), good('v1'));
  assert.deepEqual(await verdictOf(list, byKey), good('v1a'));
  const text = `whpk_${Buffer.from(byKey.publicKeys[0]?.x ?? '', 'base64url').toString('base64')}`;
  const other = jwk(otherPair.publicKey);
  assert.deepEqual(await verdictOf(v1a, { secrets: undefined, publicKeys: [other, text] }), good('v1a'));
});

test('ignores other versions, and each version is believed by its own kind of key alone', async () => {
  assert.deepEqual(await verdictOf(`v2,AAAA ${v1(oldKey)} v1b,x`), good('v1'));
  assert.deepEqual(await verdictOf(v1(oldKey).replace('v1', 'v2')), refused('no-match'));
  assert.deepEqual(await verdictOf(v1a), refused('no-match'));
  assert.deepEqual(await verdictOf(v1(oldKey), byKey), refused('no-match'));
  assert.deepEqual(await verdictOf(v1a.replace('v1a', 'v1'), byKey), refused('no-match'));
});

test('refuses another id, time, body, secret and key', async () => {
  for (const list of [`${v1(oldKey)}`, v1a]) {
    const trusted = list === v1a ? byKey : {};
    assert.deepEqual(await verdictOf(list, { ...trusted, id: 'evt_02' }), refused('no-match'));
    assert.deepEqual(
      await verdictOf(list, { ...trusted, timestamp: `${timestamp + 1}` }),
      refused('no-match'),
    );
    assert.deepEqual(await verdictOf(list, { ...trusted, timestamp: `0${timestamp}` }), refused('no-match'));
    assert.deepEqual(
      await verdictOf(list, { ...trusted, body: body.replace('ä', 'a') }),
      refused('no-match'),
    );
  }
  assert.deepEqual(await verdictOf(v1(oldKey), { secrets: [newer] }), refused('no-match'));
  const other = { secrets: undefined, publicKeys: [jwk(otherPair.publicKey)] };
  assert.deepEqual(await verdictOf(v1a, other), refused('no-match'));
});

test('a body that is no UTF-8 verifies, by both versions', async () => {
  const bytes = Uint8Array.of(0xff, 0xfe, 0x00, 0x80);
  const privateKeys = [`whsk_${Buffer.alloc(32, 3).toString('base64')}`];
  const headers = await signStandard({ id, timestamp, body: bytes, secrets: [secret], privateKeys });
  assert.deepEqual(await verdictOf(headers['webhook-signature'], { body: bytes }), good('v1'));
  assert.deepEqual(
    await verdictOf(headers['webhook-signature'], { body: '\ufffd\ufffd\0\ufffd' }),
    refused('no-match'),
  );
});

test('lets the signed time lie 300 seconds behind or ahead, and not one more', async () => {
  for (const [list, trusted, version] of [
    [v1(oldKey), {}, 'v1'],
    [v1a, byKey, 'v1a'],
  ] as const) {
    const after = (seconds: number, more = {}) =>
      verdictOf(list, { ...trusted, nowMs: nowMs + seconds * 1000, ...more });
    assert.deepEqual(await after(300), good(version));
    assert.deepEqual(await after(301), refused('stale'));
    assert.deepEqual(await after(-300), good(version));
    assert.deepEqual(await after(-301), refused('ahead'));
    assert.deepEqual(await after(10 ** 9, { toleranceSeconds: 0 }), good(version));
  }
});

test('an id with a full stop is neither signed nor believed: it could end elsewhere', async () => {
  // The very octets that are signed as id "a", time 1, body "2.x" are those of id "a.1", time 2, body "x".
  const signed = await signStandard({ id: 'a', timestamp: 1, body: '2.x', secrets: [secret] });
  const moved = { id: 'a.1', timestamp: '2', body: 'x', nowMs: 2000 };
  assert.deepEqual(await verdictOf(signed['webhook-signature'], moved), refused('malformed'));
  await assert.rejects(signStandard({ id: 'a.1', body, secrets: [secret] }), TypeError);
  await assert.rejects(signStandard({ id: 'a\r\nb', body, secrets: [secret] }), TypeError);
});

test('refuses headers that are missing or malformed, and bounds what it looks at', async () => {
  const right = v1(oldKey);
  for (const none of [undefined, null, '']) {
    assert.deepEqual(await verdictOf(none), refused('missing'));
    assert.deepEqual(await verdictOf(right, { id: none }), refused('missing'));
    assert.deepEqual(await verdictOf(right, { timestamp: none }), refused('missing'));
  }
  assert.deepEqual(await verdictOf(`${v1a} `.repeat(4), byKey), good('v1a'));
  for (const list of [
    `${v1a} `.repeat(5),
    'nonsense',
    `${right} v1`,
    `${right} `.repeat(17),
    `${right} ${'x'.repeat(8192)}`,
  ]) {
    assert.deepEqual(await verdictOf(list), refused('malformed'), list.slice(0, 99));
  }
  for (const wrong of [
    { id: 'é' },
    { id: 'x'.repeat(513) },
    { timestamp: '1.5' },
    { timestamp: 'now' },
    { id: [id] },
  ]) {
    assert.deepEqual(await verdictOf(right, wrong), refused('malformed'));
  }
  assert.deepEqual(
    await verdictOf(`${right.slice(0, -1)}`),
    refused('no-match'),
    'base64 without its padding',
  );
  assert.deepEqual(await verdictOf(`${right} `.repeat(16)), good('v1'), 'sixteen entries');
});

test('throws for what can be no secret or key, and never shows it', async () => {
  const wrong = ['', 'whsec_', 'whsec_c2VjcmV0LXNlY3J', 'whsec_c2Vj cmV0', 'whsec_c2Vj-mV0', 'whsec_é'];
  for (const text of wrong) {
    const error = await verdictOf(v1a, { secrets: [text] }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof TypeError, text);
    assert.ok(!error.message.includes('c2Vj'));
  }
  const keys = [
    '',
    'whpk_AAAA',
    { kty: 'EC', crv: 'Ed25519', x: byKey.publicKeys[0]?.x },
    { kty: 'OKP', crv: 'X25519', x: '' },
  ];
  for (const key of keys) await assert.rejects(verdictOf(v1a, { publicKeys: [key] }), TypeError);
  for (const secrets of [undefined, [], secret]) await assert.rejects(verdictOf(v1a, { secrets }), TypeError);
  await assert.rejects(signStandard({ id, body }), TypeError);
  await assert.rejects(signStandard({ id, body, privateKeys: ['whsk_AAAA'] }), TypeError);
});

test('a public key that is no point of the curve fits nothing and breaks nothing', async () => {
  const none = `whpk_${Buffer.alloc(32, 0xff).toString('base64')}`;
  assert.deepEqual(await verdictOf(v1a, { secrets: undefined, publicKeys: [none] }), refused('no-match'));
});
