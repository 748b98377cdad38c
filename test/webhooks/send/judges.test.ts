/**
 * What was really sent is verified by the published receivers of each scheme, by this package's own, and by no judge when one octet is
 * another.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verify, verifyWithFallback } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { verifyPlain, verifyStandard, verifyTimestamped } from '../../../src/webhooks/index.ts';
import { startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { claimOf, current, previous, startSender } from './fixture.ts';

const object = '{"id":"prd_1","name":"Käse \u{1F9C0} \\"{}\\"","data":{"object":{}}}';

const store = await openEmbedded();
const { url: origin, received } = await startDeliveryReceiver();
const url = new URL('/hooks', origin);
const { post, send, keys } = await startSender(store);
const eventId = await post(object);
/** The secret of before goes on signing for a minute. */
const rolled = [
  { secret: current, until: null },
  { secret: previous, until: Date.now() + 60_000 },
];

async function sent(scheme: 'standard' | 'timestamped' | 'plain', secrets = rolled.slice(0, 1)) {
  const { outcome } = await send(claimOf({ scheme, url, eventId, secrets }));
  assert.equal(outcome.kind === 'answered' && outcome.status, 204);
  const last = received.at(-1);
  assert.ok(last !== undefined);
  return { ...last, text: last.body.toString(), field: (name: string) => String(last.headers[name]) };
}

test('the package standardwebhooks verifies deliveries of the standard scheme, by each active secret', async () => {
  for (const [secrets, verifying] of [
    [rolled.slice(0, 1), [current]],
    [rolled, [current, previous]],
  ] as const) {
    const { text, headers } = await sent('standard', [...secrets]);
    for (const secret of verifying) {
      const message = new Webhook(secret).verify(text, headers as Record<string, string>) as {
        data: unknown;
      };
      assert.deepEqual(message.data, JSON.parse(object));
      assert.throws(() => new Webhook(secret).verify(`${text} `, headers as Record<string, string>));
    }
  }
  const { text, headers } = await sent('standard');
  assert.throws(() => new Webhook(previous).verify(text, headers as Record<string, string>));
});

test('the package stripe verifies deliveries of the timestamped scheme, by each active secret', async () => {
  const { webhooks } = new Stripe('sk_test_none');
  for (const [secrets, verifying] of [
    [rolled.slice(0, 1), [current]],
    [rolled, [current, previous]],
  ] as const) {
    const { body, field } = await sent('timestamped', [...secrets]);
    for (const secret of verifying) {
      const event = webhooks.constructEvent(body, field('service-signature'), secret);
      assert.equal(event.id, eventId);
      assert.equal(event.type as string, 'products.created');
      assert.deepEqual(event.data.object as unknown, JSON.parse(object));
      const changed = Buffer.concat([body, Buffer.from(' ')]);
      assert.throws(() => webhooks.constructEvent(changed, field('service-signature'), secret));
    }
  }
  const { body, field } = await sent('timestamped');
  assert.throws(() => webhooks.constructEvent(body, field('service-signature'), previous));
});

test('the package @octokit/webhooks-methods verifies deliveries of the plain scheme, by the current secret', async () => {
  const { text, field } = await sent('plain');
  assert.equal(await verify(current, text, field('x-hub-signature-256')), true);
  assert.equal(await verify(current, `${text} `, field('x-hub-signature-256')), false);
  assert.equal(await verify(previous, text, field('x-hub-signature-256')), false);
  const during = await sent('plain', rolled);
  assert.equal(await verify(current, during.text, during.field('x-hub-signature-256')), true);
  assert.equal(await verify(previous, during.text, during.field('x-hub-signature-256-previous')), true);
  const header = during.field('x-hub-signature-256');
  assert.equal(await verifyWithFallback(previous, during.text, header, [current]), true);
});

test('comity/webhooks verifies deliveries of every scheme, by each active secret and by the published keys', async () => {
  const timestamped = await sent('timestamped', rolled);
  const plain = await sent('plain', rolled);
  const standard = await sent('standard', rolled);
  for (const secrets of [[current], [previous]]) {
    const header = timestamped.field('service-signature');
    assert.ok((await verifyTimestamped({ body: timestamped.body, header, secrets })).ok);
    const both = ['x-hub-signature-256', 'x-hub-signature-256-previous'].map(plain.field).join(',');
    assert.ok((await verifyPlain({ body: plain.body, header: both, secrets })).ok);
  }
  const message = {
    body: standard.body,
    id: standard.field('webhook-id'),
    timestamp: standard.field('webhook-timestamp'),
    signature: standard.field('webhook-signature'),
  };
  const timestamp = Number(message.timestamp);
  const good = { ok: true, id: eventId, timestamp };
  assert.deepEqual(await verifyStandard({ ...message, secrets: [previous] }), { ...good, version: 'v1' });
  const publicKeys = keys.published();
  assert.deepEqual(await verifyStandard({ ...message, publicKeys }), { ...good, version: 'v1a' });
  const changed = { ...message, body: `${standard.text} ` };
  assert.deepEqual(await verifyStandard({ ...changed, publicKeys }), { ok: false, reason: 'no-match' });
});
