/** What a row of the audit trail may hold: bounded texts, and no credential of any shape. */
import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type AuditFact, auditRow } from '../../src/accounts/audit.ts';

const at = Date.UTC(2030, 0, 1);
const id = 'aud_01k1jx7v2mh5s8b4c9d0e6f3ga';
const plain: AuditFact = { type: 'login.failed', actor: null, subject: null, address: null };

const random = randomBytes(32).toString('base64url');
const session = 'ses_01k1jx7v2mh5s8b4c9d0e6f3ga';
const jwt = `eyJhbGciOiJFZERTQSJ9.${Buffer.from('{"sub":"usr_1"}').toString('base64url')}.${random}`;

/** Every shape in which this program, its callers or its providers write a secret. */
const credentials: Readonly<Record<string, string>> = {
  'a secret key': `sk_${random}`,
  'the administrator key': `sk_${randomBytes(20).toString('hex')}`,
  'a publishable key': `pk_${random}`,
  'a refresh token': `rt_${session}.${random}.${random}`,
  'an access token': jwt,
  'the head of a token': 'eyJhbGciOiJFZERTQSJ9',
  'a session cookie': `${session}.${random}`,
  'a Cookie field': `__Host-comity_session=${session}.${random}`,
  'a code of a mail': random,
  'a secret in hex': randomBytes(16).toString('hex'),
  'a digest of a secret': hash('sha256', random, 'base64url'),
  'a webhook secret': `whsec_${randomBytes(24).toString('base64')}`,
  'a password hash': `$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$${random}`,
  'a Basic field': `Basic ${Buffer.from('ada@shop.example:hunter2').toString('base64')}`,
  'a Bearer field': 'Bearer short',
  'a key field': 'ApiKey short',
  'a private key': '-----BEGIN PRIVATE KEY-----',
};

for (const [shape, secret] of Object.entries(credentials)) {
  test(`keeps no part of ${shape}, wherever it stands`, () => {
    const texts = [secret, `the login with ${secret} failed`, `a\u0000${secret}`, ` ${secret} `];
    for (const text of texts) {
      const detail = { text, list: ['web', text], name: 'kept' };
      const { doc, search } = auditRow(
        id,
        { ...plain, actor: text, subject: text, address: text, detail },
        at,
      );
      assert.equal(doc.includes(secret.slice(0, 12)), false, doc);
      assert.equal(search?.includes(secret.slice(0, 12).toLowerCase()), false);
      assert.deepEqual(JSON.parse(doc).detail, { list: ['web'], name: 'kept' });
    }
  });
}

test('keeps what tells keys, sessions, accounts and principals of other issuers apart', () => {
  const fact: AuditFact = {
    ...plain,
    actor: `https://login.example/tenant/v2.0|${random}`,
    subject: session,
    address: '2001:db8:1234:5678::/64',
    detail: { prefix: 'sk_AbCd', kid: '01k1jx7v2mh5s8b4c9d0e6f3ga', key: 'key_01k1jx7v2mh5s8b4c9d0e6f3ga' },
  };
  const { type, actor, subject, address, detail } = JSON.parse(auditRow(id, fact, at).doc);
  assert.deepEqual({ type, actor: actor.id, subject, address, detail }, fact);
  assert.equal(actor.kind, 'user');
});

test('cuts texts, lists and members at their bounds', () => {
  const word = 'long words ';
  const detail = {
    text: word.repeat(100),
    list: Array.from({ length: 100 }, () => word.repeat(100)),
    ...Object.fromEntries(Array.from({ length: 100 }, (_, number) => [`member${number}`, number])),
  };
  const fact = {
    ...plain,
    actor: word.repeat(100),
    subject: word.repeat(100),
    address: word.repeat(100),
    detail,
  };
  const { doc } = auditRow(id, fact, at);
  const row = JSON.parse(doc);
  assert.equal(row.actor.id.length, 255);
  assert.equal(row.detail.text.length, 200);
  assert.equal(row.detail.list.length, 32);
  assert.ok(row.detail.list.every((text: string) => text.length === 200));
  assert.equal(Object.keys(row.detail).length, 16);
  assert.ok(doc.length < 8000);
});

test('writes no control character and no half of a character', () => {
  const text = `a\u0000b\r\nc\u0085d\ud800`;
  const { doc } = auditRow(id, { ...plain, actor: text, detail: { text } }, at);
  const row = JSON.parse(doc);
  assert.equal(row.actor.id, 'a b  c d\ufffd');
  assert.equal(row.detail.text, 'a b  c d\ufffd');
});

test('leaves out what is no word, number, truth value or list of words', () => {
  const detail = JSON.parse(
    '{"a":{"b":1},"c":[1,{"d":2},"e"],"__proto__":"f","Upper":"g","with space":"h","i":null,"j":false}',
  );
  detail.k = Number.NaN;
  detail.l = 10n;
  const row = JSON.parse(auditRow(id, { ...plain, detail }, at).doc);
  assert.deepEqual(row.detail, { c: ['e'], j: false });
});

test('leaves out members without a value', () => {
  assert.deepEqual(JSON.parse(auditRow(id, { ...plain, detail: {} }, at).doc), {
    id,
    type: 'login.failed',
    actor: { kind: 'system', id: null },
    createdAt: '2030-01-01T00:00:00.000Z',
    updatedAt: '2030-01-01T00:00:00.000Z',
  });
});
