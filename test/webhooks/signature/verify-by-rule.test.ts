/** Verifying by a rule: what a rule can say, and what no rule may. Whole presets are held to their senders in test/webhooks/presets. */
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { nodeMac } from '../../../src/webhooks/receiving/node-mac.ts';
import { type MacPrimitives, prepareKeys } from '../../../src/webhooks/signature/mac-keys.ts';
import { standardRule, timestampedRule } from '../../../src/webhooks/signature/schemes.ts';
import type { HmacRule, SignatureRule } from '../../../src/webhooks/signature/signature-rule.ts';
import { verifyingBy } from '../../../src/webhooks/signature/trusted-keys.ts';
import { verifyByRule } from '../../../src/webhooks/signature/verify-by-rule.ts';

const body = Buffer.from('{"a":1}');
const secret = 'a secret of sixteen';
const rule: HmacRule = {
  kind: 'hmac',
  header: 'x-mac',
  hash: 'sha256',
  encoding: 'hex',
  prefix: '',
  separator: null,
  signed: '{body}',
  key: 'text',
  toleranceSeconds: 0,
};
type Fields = Readonly<Record<string, string | readonly string[]>>;
const verify = (by: SignatureRule, headers: Fields, more: object = {}) =>
  verifyByRule(by, { body, header: (name) => headers[name] }, prepareKeys(by, [secret], nodeMac), {
    primitives: nodeMac,
    ...more,
  });
const mac = (hash: string, content: string, encoding: 'hex' | 'base64') =>
  createHmac(hash, secret).update(content).digest(encoding);
const good = { ok: true, timestamp: null, id: null, secret: 0 };
const noMatch = { ok: false, reason: 'no-match' };

test('takes each hash in each encoding, and no shorter hash in place of it', () => {
  for (const hash of ['sha1', 'sha256', 'sha512'] as const) {
    for (const encoding of ['hex', 'base64'] as const) {
      const by = { ...rule, hash, encoding };
      assert.deepEqual(verify(by, { 'x-mac': mac(hash, '{"a":1}', encoding) }), good, hash);
      for (const other of ['sha1', 'sha256', 'sha512'].filter((name) => name !== hash)) {
        assert.deepEqual(verify(by, { 'x-mac': mac(other, '{"a":1}', encoding) }), noMatch, other);
      }
    }
  }
});

test('text may stand anywhere in what is signed, and before, between and behind its parts', () => {
  const by = {
    ...rule,
    signed: 'POST ü {id}:{timestamp}\n{body}!{',
    id: 'x-id',
    timestamp: { header: 'x-time' },
    toleranceSeconds: 60,
  };
  const headers = { 'x-mac': mac('sha256', 'POST ü m1:1900000000\n{"a":1}!{', 'hex'), 'x-id': 'm1' };
  const timed = { ...headers, 'x-time': '1900000000' };
  const at = (nowMs: number) => verify(by, timed, { nowMs });
  assert.deepEqual(at(1_900_000_060_000), { ok: true, timestamp: 1_900_000_000, id: 'm1', secret: 0 });
  assert.deepEqual(at(1_900_000_061_000), { ok: false, reason: 'stale' });
  assert.deepEqual(at(1_899_999_939_000), { ok: false, reason: 'ahead' });
});

test('an id must not hold what stands behind it where it is signed, whatever that is', () => {
  const by = { ...rule, signed: '{id}|{body}', id: 'x-id' };
  const verdictOf = (id: string) =>
    verify(by, { 'x-id': id, 'x-mac': mac('sha256', `${id}|{"a":1}`, 'hex') });
  assert.deepEqual(verdictOf('a.b'), { ...good, id: 'a.b' });
  assert.deepEqual(verdictOf('a|b'), { ok: false, reason: 'malformed' });
});

test('a rule that could not be verified by is refused before any message comes', () => {
  const wrong: [Partial<HmacRule>, RegExp][] = [
    [{ signed: '{boddy}' }, /unknown placeholder \{boddy\}/],
    [{ signed: '' }, /one of \{body\}, \{form\} and \{lines\}/],
    [{ signed: '{url}' }, /one of \{body\}, \{form\} and \{lines\}/],
    [{ signed: '{body}{form}' }, /one of \{body\}, \{form\} and \{lines\}/],
    [{ signed: '{timestamp}.{body}' }, /both \{timestamp\} in signed/],
    [{ timestamp: { header: 'x-time' } }, /both \{timestamp\} in signed/],
    [{ signed: '{id}.{body}' }, /both \{id\} in signed/],
    [{ id: 'x-id' }, /both \{id\} in signed/],
    [{ bodyDigestParameter: 'sha' }, /bodyDigestParameter requires/],
    [{ signed: '{url}{body}', bodyDigestParameter: 'sha' }, /bodyDigestParameter requires/],
  ];
  for (const [part, message] of wrong) {
    assert.throws(() => prepareKeys({ ...rule, ...part }, [secret], nodeMac), { name: 'TypeError', message });
  }
});

test('secrets that can be none are refused, and no error shows one', () => {
  for (const by of [rule, standardRule, { kind: 'token', header: 'x' } as const]) {
    for (const secrets of [[''], 'c2VjcmV0', [undefined], ['whsec_', secret]] as unknown as string[][]) {
      if (by !== standardRule && secrets.length === 2) continue;
      const error = (() => {
        try {
          return prepareKeys(by, secrets, nodeMac);
        } catch (thrown) {
          return thrown;
        }
      })();
      assert.ok(error instanceof TypeError, JSON.stringify([by, secrets]));
      assert.ok(!error.message.includes(secret) && !error.message.includes('c2Vj'));
    }
  }
  assert.throws(() => prepareKeys(rule, [], nodeMac), TypeError);
  assert.doesNotThrow(
    () => prepareKeys(standardRule, [], nodeMac),
    'Ed25519 keys may be all that is trusted',
  );
  const keys = prepareKeys(standardRule, ['whsec_c2VjcmV0'], nodeMac);
  const message = { body, header: () => 'x' };
  assert.throws(
    () => verifyByRule({ kind: 'token', header: 'x' }, message, keys, { primitives: nodeMac }),
    /another rule/,
  );
});

test('a token is the secret itself, and neither its beginning, another case, nor more than it', () => {
  const by = { kind: 'token', header: 'x-token' } as const;
  assert.deepEqual(verify(by, { 'x-token': secret }), good);
  for (const other of [secret.slice(0, -1), `${secret} `, secret.toUpperCase(), 'x', '\ufeff']) {
    assert.deepEqual(verify(by, { 'x-token': other }), noMatch, other);
  }
  const twice = prepareKeys(by, ['another', secret, secret], nodeMac);
  const first = verifyByRule(by, { body, header: () => secret }, twice, { primitives: nodeMac });
  assert.deepEqual(first, { ...good, secret: 1 }, 'the first that fits');
  assert.deepEqual(verify(by, {}), { ok: false, reason: 'missing' });
  assert.deepEqual(verify(by, { 'x-token': [secret, secret] }), { ok: false, reason: 'malformed' });
  assert.deepEqual(verify(by, { 'x-token': 'x'.repeat(8193) }), { ok: false, reason: 'malformed' });
});

test('looks at sixteen entries and at four signatures by Ed25519, and refuses more', () => {
  const right = `t=1900000000,v1=${mac('sha256', '1900000000.{"a":1}', 'hex')}`;
  const list = (others: number) => ({
    'service-signature': `${right},v1=${'0'.repeat(64)}`.concat(',a=b'.repeat(others)),
  });
  const at = { nowMs: 1_900_000_000_000 };
  assert.deepEqual(verify(timestampedRule, list(13), at), { ...good, timestamp: 1_900_000_000 });
  assert.deepEqual(verify(timestampedRule, list(14), at), { ok: false, reason: 'malformed' });
});

test('makes no HMAC where no signature could fit, and one for each secret otherwise', () => {
  let made = 0;
  const counting: MacPrimitives<Parameters<typeof nodeMac.mac>[0]> = {
    ...nodeMac,
    mac(...given) {
      made += 1;
      return nodeMac.mac(...given);
    },
  };
  const keys = prepareKeys(rule, [secret, 'another'], counting);
  const ask = (value: string) =>
    verifyByRule(rule, { body, header: () => value }, keys, { primitives: counting });
  for (const nothing of ['x', '0'.repeat(63), 'g'.repeat(64)]) assert.deepEqual(ask(nothing), noMatch);
  assert.equal(made, 0);
  assert.deepEqual(ask('0'.repeat(64)), noMatch);
  assert.equal(made, 2);
});

test('a key is asked only where no secret fitted, and its verdict is as good', async () => {
  const pair = generateKeyPairSync('ed25519');
  const content = 'm1.1900000000.{"a":1}';
  const v1a = `v1a,${sign(null, Buffer.from(content), pair.privateKey).toString('base64')}`;
  const v1 = `v1,${createHmac('sha256', Buffer.from('secret')).update(content).digest('base64')}`;
  const jwk = pair.publicKey.export({ format: 'jwk' });
  const keys = prepareKeys(standardRule, ['whsec_c2VjcmV0'], nodeMac);
  const byKeys = verifyingBy([Buffer.from(jwk.x ?? '', 'base64url')], undefined);
  const ask = (signature: string, more: object) => {
    const fields: Fields = {
      'webhook-id': 'm1',
      'webhook-timestamp': '1900000000',
      'webhook-signature': signature,
    };
    const message = { body, header: (name: string) => fields[name] };
    return verifyByRule(standardRule, message, keys, { primitives: nodeMac, nowMs: 19e11, ...more });
  };
  const believed = { ok: true, timestamp: 1_900_000_000, id: 'm1' };
  assert.deepEqual(ask(`${v1a} ${v1}`, { byKeys }), { ...believed, secret: 0 }, 'at once');
  assert.deepEqual(ask(v1a, {}), noMatch);
  const later = ask(v1a, { byKeys });
  assert.ok(later instanceof Promise);
  assert.deepEqual(await later, { ...believed, secret: null });
  assert.deepEqual(await ask(v1a, { byKeys, nowMs: 1.9e12 + 301_000 }), { ok: false, reason: 'stale' });
  assert.deepEqual(await ask(v1a.replace('v1a,', 'v1a,A').slice(0, -1), { byKeys }), noMatch);
  assert.deepEqual(ask(`${v1a} `.repeat(5), { byKeys }), { ok: false, reason: 'malformed' });
  assert.equal(verifyingBy([], undefined), undefined);
});
