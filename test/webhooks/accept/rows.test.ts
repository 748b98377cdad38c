/** What is kept of a message: by which key it is told apart, its type and fields, when it is due, and by which secrets it is believed. */
import assert from 'node:assert/strict';
import { createHmac, hash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Received } from '../../../src/model/received.ts';
import { presets } from '../../../src/webhooks/presets.ts';
import { failing, openEmbedded } from '../../harness/stores.ts';
import {
  declared,
  plainFields,
  secret,
  shopSenders,
  timestampedField,
  walkSenders,
} from './walked-senders.ts';

const store = await openEmbedded();

describe('a message that is kept', () => {
  const room = walkSenders(store, {
    senders: [
      ...shopSenders,
      declared('box', 'plain', { handOn: { kind: 'inbox' } }),
      declared('kept', 'plain', { rule: { ...presets.plain, keep: ['x-note', 'x-gone'] } }),
      declared('keyless', 'hmac'),
    ],
  });
  const billed = async (body: string): Promise<Received> => {
    const before = new Set((await room.received('billing')).map(({ id }) => id));
    const answered = await room.post('billing', { body, fields: timestampedField(body, room.clock()) });
    assert.equal(answered.status, 204);
    const added = (await room.received('billing')).filter(({ id }) => !before.has(id));
    assert.equal(added.length, 1);
    return added[0] as Received;
  };
  const digest = (text: string) => `sha256:${hash('sha256', text, 'base64url')}`;

  test('is told apart by the id that its sender gave, up to 256 printable characters', async () => {
    const longest = `${'k'.repeat(250)}/ "\\~`;
    assert.equal(longest.length, 255);
    for (const key of ['evt_1', ' ', longest, `${longest}k`]) {
      assert.equal((await billed(JSON.stringify({ id: key }))).dedupeKey, key);
    }
    assert.equal((await billed('{"id": 42}')).dedupeKey, '42');
  });

  test('is told apart by the digest of an id that is longer or not printable ASCII', async () => {
    for (const key of ['k'.repeat(257), 'smörgås', 'a\u0000b', 'line\nline']) {
      assert.equal((await billed(JSON.stringify({ id: key }))).dedupeKey, digest(key));
    }
  });

  test('is told apart by the digest of its body where no place holds an id', async () => {
    for (const body of ['{"id":null}', '{"id":{"a":1}}', '{"id":""}', 'no JSON', '']) {
      assert.equal((await billed(body)).dedupeKey, digest(body), body);
    }
    const body = '{"type":"a","id":"of an order"}';
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    for (let times = 0; times < 2; times += 1) {
      assert.equal((await room.post('keyless', { body, fields: ['X-Signature', signature] })).status, 204);
    }
    assert.deepEqual(
      (await room.received('keyless')).map(({ dedupeKey }) => dedupeKey),
      [digest(body)],
    );
  });

  test('has its type where it is printable and at most 200 characters, else none', async () => {
    for (const [type, expected] of [
      ['checkout.completed', 'checkout.completed'],
      ['nobody heeds "this"', 'nobody heeds "this"'],
      ['t'.repeat(200), 't'.repeat(200)],
      ['t'.repeat(201), null],
      ['a\u0007b', null],
      [{ a: 1 }, null],
    ] as const) {
      assert.equal((await billed(JSON.stringify({ id: `t${Math.random()}`, type }))).type, expected);
    }
  });

  test('waits without a time where nothing hands it on', async () => {
    assert.equal((await room.post('box', { body: '{}', fields: plainFields('{}', 'b1') })).status, 204);
    const [received] = await room.received('box');
    assert.deepEqual([received?.status, received?.dueAt], ['pending', null]);
  });

  test('keeps the fields that the rule names and no other, joined where they came more than once', async () => {
    const fields = [...plainFields('{}', 'k1'), 'X-Note', 'one', 'Cookie', 'a=b', 'x-note', 'två "'];
    assert.equal((await room.post('kept', { body: '{}', fields })).status, 204);
    assert.deepEqual((await room.content('kept', 'k1')).headers, { 'x-note': 'one, två "' });
  });

  test('is believed by every secret that holds, and by none whose time is over', async () => {
    const signed = (key: string, id: string) => {
      const body = JSON.stringify({ id });
      return room.post('billing', { body, fields: timestampedField(body, room.clock(), key) });
    };
    const until = room.clock() + 60_000;
    room.setSecrets('billing', [
      { secret: 'whsec_bmV3', until: null },
      { secret, until },
    ]);
    assert.equal((await signed(secret, 's1')).status, 204);
    assert.equal((await signed('whsec_bmV3', 's2')).status, 204);
    assert.equal((await signed('whsec_b2xk', 's3')).status, 400);
    room.moveClock(61);
    assert.equal((await signed(secret, 's4')).status, 400);
    assert.equal((await signed('whsec_bmV3', 's5')).status, 204);
    room.setSecrets('billing', [{ secret: 'whsec_b2xk', until: null }]);
    assert.equal((await signed('whsec_b2xk', 's6')).status, 204);
    assert.equal((await signed('whsec_bmV3', 's7')).status, 400);
    room.setSecrets('billing', []);
    assert.equal((await signed('whsec_b2xk', 's8')).status, 400);
    room.setSecrets('billing', [{ secret, until: null }]);
  });

  test('is believed where one of several signatures fits, whichever secret is over', async () => {
    const body = '{"id":"both"}';
    const seconds = Math.floor(room.clock() / 1000);
    const [one, other] = ['whsec_b2xk', 'whsec_bmV3'].map((key) =>
      createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex'),
    );
    room.setSecrets('billing', [
      { secret: 'whsec_bmV3', until: null },
      { secret: 'whsec_b2xk', until: room.clock() - 1 },
    ]);
    const fields = ['Service-Signature', `t=${seconds},v1=${one},v1=${other}`];
    assert.equal((await room.post('billing', { body, fields })).status, 204);
    room.setSecrets('billing', [{ secret, until: null }]);
  });
});

describe('the URL that a sender signs', () => {
  const phone = declared('phone', 'twilio');
  const signed = (url: string) => [
    'X-Twilio-Signature',
    createHmac('sha1', secret).update(`${url}From+4912`).digest('base64'),
    'Content-Type',
    'application/x-www-form-urlencoded',
  ];
  const posting = { body: 'From=%2B4912', query: '?a=1' };

  test('is that of the setting where there is one', async () => {
    for (const publicUrl of ['https://hooks.example', 'https://hooks.example/']) {
      const room = walkSenders(store, { senders: [phone], publicUrl });
      const fields = signed('https://hooks.example/api/v1/webhooks/phone?a=1');
      assert.equal((await room.post('phone', { ...posting, fields })).status, 204);
      const others = signed('http://shop.example/api/v1/webhooks/phone?a=1');
      assert.equal((await room.post('phone', { ...posting, fields: others })).status, 400);
    }
  });

  test('is that at the Host where there is none', async () => {
    const room = walkSenders(store, { senders: [phone] });
    const fields = signed('http://shop.example/api/v1/webhooks/phone?a=1');
    assert.equal((await room.post('phone', { ...posting, fields })).status, 204);
    assert.equal((await room.post('phone', { ...posting, fields, query: '' })).status, 400);
  });
});

describe('a store that fails', () => {
  test('has the message refused as unavailable and nothing told, and the next attempt accepted', async () => {
    const broken = failing(store);
    const room = walkSenders(broken);
    broken.fault = 'lost-once';
    const fields = plainFields('{}', 'after the fault');
    const post = () => room.post('forge', { body: '{}', fields });
    await assert.rejects(post(), { name: 'StoreUnavailable' });
    assert.equal(room.observed.length, 0);
    assert.equal((await post()).status, 204);
    const told = { kind: 'webhook-received', sender: 'forge', outcome: 'accepted', reason: undefined };
    assert.deepEqual(room.observed, [told]);
    broken.fault = 'answer-lost';
    const unsure = plainFields('{}', 'committed, and nobody told');
    const again = () => room.post('forge', { body: '{}', fields: unsure });
    await assert.rejects(again(), { name: 'StoreUnavailable' });
    broken.fault = 'none';
    assert.equal((await again()).status, 204);
    const kept = (await room.received('forge')).filter(({ dedupeKey }) => dedupeKey === unsure[3]);
    assert.equal(kept.length, 1);
  });
});
