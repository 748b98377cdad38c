/** The timestamped scheme (§5.6): what it signs, what it believes, and why it does not. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { signTimestamped, verifyTimestamped } from '../../../src/webhooks/index.ts';

const secret = 'whsec_b2xkIHNlY3JldCBvZiBhbiBlbmRwb2ludA==';
const newer = 'whsec_bmV3IHNlY3JldCBvZiBhbiBlbmRwb2ludA==';
const timestamp = 1_900_000_000;
const nowMs = timestamp * 1000;
const body = '{"id":"evt_1","name":"Käse"}';
const hex = (key: string, content: string | Buffer) =>
  createHmac('sha256', key).update(content).digest('hex');
const right = `t=${timestamp},v1=${hex(secret, `${timestamp}.${body}`)}`;

const verdictOf = (header: string | null | undefined, more: object = {}) =>
  verifyTimestamped({ body, header, secrets: [secret], nowMs, ...more });
const good = { ok: true, timestamp };
const refused = (reason: string) => ({ ok: false, reason });

test('signs "<t>.<body>" with the whole text of each secret, one v1 for each', async () => {
  assert.equal(await signTimestamped({ body, secrets: [secret], timestamp }), right);
  assert.equal(
    await signTimestamped({ body, secrets: [newer, secret], timestamp }),
    `t=${timestamp},v1=${hex(newer, `${timestamp}.${body}`)},v1=${hex(secret, `${timestamp}.${body}`)}`,
  );
});

test('signs with the time of now if none is given', async () => {
  const before = Math.floor(Date.now() / 1000);
  const signed = Number(/^t=(\d+),v1=/.exec(await signTimestamped({ body, secrets: [secret] }))?.[1]);
  assert.ok(signed >= before && signed <= Math.floor(Date.now() / 1000));
});

test('believes a header in which any v1 fits any of the secrets, and says which time was signed', async () => {
  const both = await signTimestamped({ body, secrets: [newer, secret], timestamp });
  assert.deepEqual(await verdictOf(both), good);
  assert.deepEqual(await verdictOf(both, { secrets: [newer] }), good);
  assert.deepEqual(await verdictOf(right, { secrets: ['whsec_other', newer, secret] }), good);
  assert.deepEqual(await verdictOf(right.toUpperCase().replace('T=', 't=').replace('V1=', 'v1=')), good);
  assert.deepEqual(await verdictOf(right.replace(',', ', ')), good);
});

test('takes bytes as they are, so that a body that is no UTF-8 verifies', async () => {
  const bytes = Uint8Array.of(0xff, 0xfe, 0x00, 0x80, 0x2e);
  const content = Buffer.concat([Buffer.from(`${timestamp}.`), bytes]);
  const header = await signTimestamped({ body: bytes, secrets: [secret], timestamp });
  assert.equal(header, `t=${timestamp},v1=${hex(secret, content)}`);
  assert.deepEqual(await verdictOf(header, { body: bytes }), good);
  assert.deepEqual(await verdictOf(header, { body: bytes.buffer }), good);
  assert.deepEqual(await verdictOf(header, { body: Buffer.from(bytes).toString() }), refused('no-match'));
  assert.deepEqual(await verdictOf(right, { body: Buffer.from(body) }), good, 'a text is its UTF-8');
});

test('ignores every version but v1', async () => {
  const signature = hex(secret, `${timestamp}.${body}`);
  assert.deepEqual(await verdictOf(`t=${timestamp},v0=${signature}`), refused('no-match'));
  assert.deepEqual(await verdictOf(`t=${timestamp},v2=${signature},v10=${signature}`), refused('no-match'));
  assert.deepEqual(await verdictOf(`t=${timestamp},v0=nonsense,v1=${signature},scheme=x`), good);
});

test('refuses another body, another secret, another time and a shorter signature', async () => {
  assert.deepEqual(await verdictOf(right, { body: `${body} ` }), refused('no-match'));
  assert.deepEqual(await verdictOf(right, { secrets: [newer] }), refused('no-match'));
  assert.deepEqual(await verdictOf(right.replace('t=19', 't=18')), refused('no-match'));
  assert.deepEqual(await verdictOf(right.slice(0, -1)), refused('no-match'));
  assert.deepEqual(await verdictOf(`t=${timestamp}`), refused('no-match'));
  assert.deepEqual(await verdictOf(`t=${timestamp},v1=`), refused('no-match'));
});

test('lets the signed time lie 300 seconds behind or ahead, and not one more', async () => {
  for (const [seconds, verdict] of [
    [300, good],
    [301, refused('stale')],
    [-300, good],
    [-301, refused('ahead')],
  ] as const) {
    assert.deepEqual(await verdictOf(right, { nowMs: nowMs + seconds * 1000 }), verdict, `${seconds}`);
  }
});

test('a tolerance can be set, and 0 takes any time', async () => {
  assert.deepEqual(await verdictOf(right, { nowMs: nowMs + 11_000, toleranceSeconds: 10 }), refused('stale'));
  for (const far of [10 ** 9, -(10 ** 9)]) {
    assert.deepEqual(await verdictOf(right, { nowMs: nowMs + far * 1000, toleranceSeconds: 0 }), good);
  }
});

test('says no-match of a message that is both old and not signed', async () => {
  assert.deepEqual(await verdictOf(right, { nowMs: nowMs + 10 ** 9, body: 'x' }), refused('no-match'));
});

test('refuses headers that are missing or malformed, and bounds what it looks at', async () => {
  for (const none of [undefined, null, '']) assert.deepEqual(await verdictOf(none), refused('missing'));
  const signature = hex(secret, `${timestamp}.${body}`);
  const malformed = [
    ...['nonsense', '=', ',', `v1=${signature}`, `t=,v1=${signature}`, `t=-1,v1=${signature}`],
    ...[`t=1e9,v1=${signature}`, `t=${timestamp}.0,v1=${signature}`, `t=${'9'.repeat(13)},v1=${signature}`],
    ...[
      `t=${timestamp},t=${timestamp},v1=${signature}`,
      `${right},`,
      `${right}${`,v1=${'0'.repeat(64)}`.repeat(15)}`,
    ],
    `${right},x=${'x'.repeat(8192)}`,
  ];
  for (const header of malformed)
    assert.deepEqual(await verdictOf(header), refused('malformed'), header.slice(0, 99));
  assert.deepEqual(await verdictOf(`${right}${`,v1=${'0'.repeat(64)}`.repeat(14)}`), good, 'sixteen items');
  const twice = [right, right] as unknown as string;
  assert.deepEqual(await verdictOf(twice), refused('malformed'), 'a field that came twice');
});

test('throws for mistakes of the program: what can be no secret, body or tolerance', async () => {
  const wrong = [{ secrets: [] }, { secrets: [''] }, { secrets: secret }, { secrets: [undefined] }];
  for (const more of wrong) await assert.rejects(verdictOf(right, more), TypeError);
  await assert.rejects(verdictOf(right, { body: JSON.parse(body) }), /not the parsed value/);
  for (const toleranceSeconds of [Number.NaN, -1]) {
    await assert.rejects(verdictOf(right, { toleranceSeconds }), TypeError);
  }
  await assert.rejects(signTimestamped({ body, secrets: [secret], timestamp: 1.5 }), TypeError);
  await assert.rejects(signTimestamped({ body, secrets: [secret], timestamp: Date.now() }), TypeError);
});
