/**
 * The judges: signatures that vendors published, and their own libraries, which sign what the presets believe and believe what is signed
 * here. Where a library is laxer or stricter than the preset, that is told.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sign as signGitHub, verify as verifyGitHub } from '@octokit/webhooks-methods';
import '@shopify/shopify-api/adapters/node';
import { ApiVersion, shopifyApi } from '@shopify/shopify-api';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { type PresetName, presets } from '../../../src/webhooks/presets.ts';
import { conducts, type SignedPreset, secret } from './signed-message.ts';
import { type Judging, verdictOf } from './verdict-of.ts';

const now = Math.floor(Date.now() / 1000);
const text = '{"id":"evt_1","type":"a.b","name":"Käse"}';

function judge(
  preset: PresetName,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array = text,
  { key = secret, ...judging }: Judging & { key?: string } = {},
) {
  const sent = { body: Buffer.from(body), headers, url: '' };
  return verdictOf(presets[preset].signature, sent, [key], { nowSeconds: now, ...judging });
}
const signed = (preset: SignedPreset, body: string | Uint8Array = text) => {
  const { headers } = conducts[preset].send({ body: Buffer.from(body), secrets: [secret], timestamp: now });
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
};
const noMatch = { ok: false, reason: 'no-match' };
const isFit = async (verdict: ReturnType<typeof judge>) => (await verdict).ok;

test("believes Slack's published request", async () => {
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V' +
    '&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=' +
    '&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN' +
    '&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
  const headers = {
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  };
  const asked = { key: '8f742231b10e8888abcd99yyyzzz85a5', nowSeconds: 1531420618 };
  const verdict = { ok: true, timestamp: 1531420618, id: null, secret: 0 };
  assert.deepEqual(await judge('slack', headers, body, asked), verdict);
  assert.deepEqual(await judge('slack', headers, body.replace('foobar', 'foobaz'), asked), noMatch);
});

test("believes the request of GitHub's documentation", async () => {
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  const asked = { key: "It's a Secret to Everybody" };
  assert.ok(await isFit(judge('github', { 'x-hub-signature-256': signature }, 'Hello, World!', asked)));
});

test('believes the vector of Standard Webhooks, in its own fields and in those of Svix', async () => {
  const values = [
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    '1614265330',
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  ];
  const asked = { key: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', nowSeconds: 1614265330 };
  for (const [preset, prefix] of [
    ['standard', 'webhook'],
    ['svix', 'svix'],
  ] as const) {
    const names = ['id', 'timestamp', 'signature'].map((name) => `${prefix}-${name}`);
    const headers = Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']));
    assert.ok(await isFit(judge(preset, headers, '{"test": 2432232314}', asked)), preset);
  }
});

test('is of one mind with stripe; stricter where it takes a time ahead, and a body that is no UTF-8', async () => {
  const stripe = new Stripe('sk_test_none');
  const { signature } = stripe.webhooks;
  const header = stripe.webhooks.generateTestHeaderString({ timestamp: now, payload: text, secret });
  assert.ok(await isFit(judge('stripe', { 'stripe-signature': header })));
  assert.deepEqual(await judge('stripe', { 'stripe-signature': header }, `${text} `), noMatch);
  const own = signed('stripe')['stripe-signature'] ?? '';
  assert.ok(signature?.verifyHeader(text, own, secret, 300));

  const ahead = stripe.webhooks.generateTestHeaderString({ timestamp: now + 3600, payload: text, secret });
  assert.ok(signature?.verifyHeader(text, ahead, secret, 300));
  assert.deepEqual(await judge('stripe', { 'stripe-signature': ahead }), { ok: false, reason: 'ahead' });

  const replaced = stripe.webhooks.generateTestHeaderString({ timestamp: now, payload: '\ufffd', secret });
  assert.ok(signature?.verifyHeader(Buffer.from([0xff]), replaced, secret, 300));
  assert.deepEqual(await judge('stripe', { 'stripe-signature': replaced }, Buffer.from([0xff])), noMatch);
});

test('is of one mind with @octokit/webhooks-methods', async () => {
  const header = { 'x-hub-signature-256': await signGitHub(secret, text) };
  assert.ok(await isFit(judge('github', header)));
  assert.deepEqual(await judge('github', header, `${text} `), noMatch);
  assert.ok(await verifyGitHub(secret, text, signed('github')['x-hub-signature-256'] ?? ''));
});

test('is of one mind with standardwebhooks and svix; of a body that is no UTF-8 they cannot say so', async () => {
  const judges = { standard: new StandardWebhook(secret), svix: new SvixWebhook(secret) } as const;
  for (const preset of ['standard', 'svix'] as const) {
    const prefix = preset === 'standard' ? 'webhook' : 'svix';
    const fields = (signature: string) => ({
      [`${prefix}-id`]: 'msg_1',
      [`${prefix}-timestamp`]: String(now),
      [`${prefix}-signature`]: signature,
    });
    const theirs = fields(judges[preset].sign('msg_1', new Date(now * 1000), text));
    assert.ok(await isFit(judge(preset, theirs)), preset);
    assert.deepEqual(await judge(preset, theirs, `${text} `), noMatch, preset);
    assert.doesNotThrow(() => judges[preset].verify(text, signed(preset)), preset);

    const octets = Buffer.from([0x22, 0xff, 0x22]);
    assert.ok(await isFit(judge(preset, signed(preset, octets), octets)), preset);
    assert.throws(() => judges[preset].verify(octets, signed(preset, octets)), preset);
  }
});

test('is of one mind with @shopify/shopify-api, which wants more fields than it verifies and no empty body', async () => {
  const shopify = shopifyApi({
    apiKey: 'key',
    apiSecretKey: secret,
    apiVersion: ApiVersion.July26,
    hostName: 'shop.example',
    isEmbeddedApp: false,
    logger: { log: () => undefined },
  });
  const fields = {
    'x-shopify-topic': 'orders/create',
    'x-shopify-shop-domain': 'a.myshopify.com',
    'x-shopify-api-version': '2026-07',
    'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
  };
  const validate = async (body: string, headers: Readonly<Record<string, string>>) => {
    const rawRequest = { method: 'POST', url: '/', headers };
    return (await shopify.webhooks.validate({ rawBody: body, rawRequest, rawResponse: {} })).valid;
  };
  for (const body of [text, 'x']) {
    const headers = { ...signed('shopify', body), ...fields };
    assert.ok(await isFit(judge('shopify', headers, body)));
    assert.ok(await validate(body, headers));
    assert.deepEqual(await judge('shopify', headers, `${body} `), noMatch);
    assert.ok(!(await validate(`${body} `, headers)));
  }
  assert.ok(await isFit(judge('shopify', signed('shopify'))));
  assert.ok(!(await validate(text, signed('shopify'))));
  assert.ok(await isFit(judge('shopify', signed('shopify', ''), '')));
  assert.ok(!(await validate('', { ...signed('shopify', ''), ...fields })));
});
