/** The plain scheme (§5.6): the body, and nothing about when. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { signPlain, verifyPlain } from '../../../src/webhooks/index.ts';

const secret = 'whsec_b2xkIHNlY3JldCBvZiBhbiBlbmRwb2ludA==';
const newer = 'whsec_bmV3IHNlY3JldCBvZiBhbiBlbmRwb2ludA==';
const body = '{"name":"Käse"}';
const headerOf = (key: string, content: string | Uint8Array) =>
  `sha256=${createHmac('sha256', key).update(content).digest('hex')}`;
const right = headerOf(secret, body);
const verdictOf = (header: string | null | undefined, more: object = {}) =>
  verifyPlain({ body, header, secrets: [secret], ...more });
const refused = (reason: string) => ({ ok: false, reason });

test('signs the body with the whole text of each secret, a value for each', async () => {
  assert.deepEqual(await signPlain({ body, secrets: [newer, secret] }), [headerOf(newer, body), right]);
});

test('believes what one of the secrets signed, also in a list', async () => {
  assert.deepEqual(await verdictOf(right), { ok: true });
  assert.deepEqual(await verdictOf(right, { secrets: [newer, secret] }), { ok: true });
  assert.deepEqual(await verdictOf(`${headerOf(newer, body)}, ${right}`), { ok: true });
  assert.deepEqual(await verdictOf(`sha1=00,${right}`), { ok: true });
});

test('takes bytes as they are', async () => {
  const bytes = Uint8Array.of(0xff, 0x00, 0xc3);
  assert.deepEqual(await verdictOf(headerOf(secret, bytes), { body: bytes }), { ok: true });
  assert.deepEqual(await verdictOf(headerOf(secret, bytes), { body: '\ufffd\0\ufffd' }), refused('no-match'));
});

test('refuses what none of the secrets signed', async () => {
  assert.deepEqual(await verdictOf(right, { body: `${body}\n` }), refused('no-match'));
  assert.deepEqual(await verdictOf(right, { secrets: [newer] }), refused('no-match'));
  assert.deepEqual(await verdictOf(right.replace('sha256', 'sha1')), refused('no-match'));
  assert.deepEqual(await verdictOf(right.slice(0, -2)), refused('no-match'));
  assert.deepEqual(await verdictOf(`${right}00`), refused('no-match'));
});

test('refuses headers that are missing or malformed, and bounds what it looks at', async () => {
  for (const none of [undefined, null, '']) assert.deepEqual(await verdictOf(none), refused('missing'));
  for (const header of [
    'nonsense',
    right.slice(7),
    `${right},`,
    `${right},`.repeat(16) + right,
    `${right}${' '.repeat(8192)}`,
  ]) {
    assert.deepEqual(await verdictOf(header), refused('malformed'), header.slice(0, 99));
  }
});

test('throws for what can be no secret and for a body that was parsed', async () => {
  for (const secrets of [[], [''], secret]) await assert.rejects(verdictOf(right, { secrets }), TypeError);
  await assert.rejects(verdictOf(right, { body: JSON.parse(body) }), TypeError);
});
