/** `receive` with messages that the vendors' own libraries sign, and with what goes wrong between a sender and it. */
import assert from 'node:assert/strict';
import { createHash, createHmac, generateKeyPairSync } from 'node:crypto';
import { describe, test } from 'node:test';
import { sign as signForge } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import {
  type Ed25519PrivateJwk,
  type Ed25519PublicJwk,
  type HeaderSource,
  memoryStore,
  type RawBody,
  type ReceiveOptions,
  receive,
  signPlain,
  signStandard,
  signTimestamped,
  type VerifiedMessage,
} from '../../../src/webhooks/index.ts';

const nowMs = 1795255460_000;
const seconds = nowMs / 1000;
const secret = 'whsec_c2VjcmV0IG9mIHRoZSBlbmRwb2ludCBlcF8x';
const octets = new TextEncoder();

type Message = {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly type?: string | null;
  readonly url?: string;
};

/** A message of each preset, signed where there is one by the vendor's own library, at a time. */
const messages: Readonly<Record<string, (body: string, at: number) => Message | Promise<Message>>> = {
  standard: (body, at) => ({
    body,
    headers: {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(at),
      'webhook-signature': new Webhook(secret).sign('msg_1', new Date(at * 1000), body),
    },
    key: 'msg_1',
  }),
  stripe: (body, timestamp) => ({
    body,
    headers: {
      'stripe-signature': new Stripe('unused').webhooks.generateTestHeaderString({
        payload: body,
        secret,
        timestamp,
      }),
    },
    key: 'evt_1',
  }),
  github: async (body) => ({
    body,
    headers: {
      'x-hub-signature-256': await signForge(secret, body),
      'x-github-delivery': 'dlv-1',
      'x-github-event': 'issues',
    },
    key: 'dlv-1',
    type: 'issues',
  }),
  timestamped: async (body, timestamp) => ({
    body,
    headers: { 'service-signature': await signTimestamped({ body, secrets: [secret], timestamp }) },
    key: 'evt_1',
  }),
  plain: async (body) => ({
    body,
    headers: {
      'x-hub-signature-256': String((await signPlain({ body, secrets: [secret] }))[0]),
      'x-service-delivery': 'dlv_1',
    },
    key: 'dlv_1',
  }),
  hmac: (body) => ({
    body,
    headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex') },
  }),
  slack: (body, at) => ({
    body,
    headers: {
      'x-slack-request-timestamp': String(at),
      'x-slack-signature': `v0=${createHmac('sha256', secret).update(`v0:${at}:${body}`).digest('hex')}`,
    },
  }),
  gitlab: (body) => ({ body, headers: { 'x-gitlab-token': secret, 'idempotency-key': 'k-1' }, key: 'k-1' }),
};

const event = '{"id":"evt_1","type":"products.created","data":{"id":"prd_1"}}';

function ask(
  sender: ReceiveOptions['sender'],
  body: RawBody,
  headers: HeaderSource,
  options: Partial<ReceiveOptions> = {},
) {
  return receive(body, headers, { sender, secrets: [secret], store: memoryStore(), nowMs, ...options });
}

/** A store that keeps what it was given. */
function keeping() {
  const kept: VerifiedMessage[] = [];
  const known = memoryStore({ nowMs: () => nowMs });
  return {
    kept,
    insert(message: VerifiedMessage) {
      kept.push(message);
      return known.insert(message);
    },
  };
}

describe('of each preset', () => {
  for (const [name, sign] of Object.entries(messages)) {
    const preset = name as 'standard';

    test(`accepts a message of ${name}, knows it again, and refuses it changed`, async () => {
      const { body, headers, key, type = 'products.created' } = await sign(event, seconds);
      const store = keeping();
      const first = await ask(preset, octets.encode(body), headers, { store });
      assert.deepEqual([first.status, first.outcome, first.body], [204, 'accepted', null]);
      const second = await ask(preset, octets.encode(body), headers, { store });
      assert.deepEqual([second.status, second.outcome], [204, 'duplicate']);
      const [message] = store.kept;
      if (key !== undefined) assert.equal(message?.dedupeKey, key);
      if (name !== 'gitlab' && name !== 'hmac') assert.equal(message?.type, type);
      assert.equal(message?.sender, name);
      assert.deepEqual(message?.json(), JSON.parse(body));
      // A token proves nothing of the body.
      if (name === 'gitlab') return;
      const changed = await ask(preset, octets.encode(body.replace('prd_1', 'prd_2')), headers);
      assert.equal(changed.outcome === 'refused' && changed.reason, 'no-match');
      assert.deepEqual(
        [changed.status, changed.body],
        [400, '{"error":"invalid signature","code":"signature_invalid","reason":"no-match"}'],
      );
    });
  }

  test('refuses what was signed too long ago, too far ahead, and not at all', async () => {
    for (const preset of ['standard', 'stripe', 'timestamped', 'slack'] as const) {
      for (const [offset, reason] of [
        [-301, 'stale'],
        [301, 'ahead'],
      ] as const) {
        const { body, headers } = (await messages[preset]?.(event, seconds + offset)) ?? assert.fail();
        const answer = await ask(preset, body, headers);
        assert.equal(
          answer.body,
          `{"error":"the signed time is too far from now","code":"signature_stale","reason":"${reason}"}`,
        );
      }
      const unsigned = await ask(preset, event, {});
      assert.equal(unsigned.outcome === 'refused' && unsigned.reason, 'missing');
    }
  });
});

test('answers the challenge of Slack, and stores nothing', async () => {
  const sign = messages.slack ?? assert.fail();
  const { body, headers } = await sign('{"type":"url_verification","challenge":"3eZbrw1a"}', seconds);
  const store = keeping();
  const answer = await ask('slack', body, headers, { store });
  assert.deepEqual([answer.status, answer.body], [200, '{"challenge":"3eZbrw1a"}']);
  assert.equal(store.kept.length, 0);
});

test('answers the questions that senders ask by GET, HEAD and POST without a signature, and stores nothing', async () => {
  const store = keeping();
  const url = (query: string) => `https://shop.example/hook${query}#part`;
  for (const [sender, method, query, answer] of [
    ['meta', 'GET', `?hub.mode=subscribe&hub.verify_token=${secret}&hub.challenge=7%3F`, [200, '7?']],
    ['trello', 'HEAD', '', [200, '']],
    ['microsoft-graph', 'POST', '?validationToken=a%20b', [200, 'a b']],
    [
      ...(['x', 'GET', '?crc_token=t1'] as const),
      [
        200,
        JSON.stringify({
          response_token: `sha256=${createHmac('sha256', secret).update('t1').digest('base64')}`,
        }),
      ],
    ],
  ] as const) {
    const { status, body } = await ask(sender, null, {}, { store, method, url: url(query) });
    assert.deepEqual([status, body], answer, sender);
  }
  for (const [token, status] of [
    ['agreed', 200],
    ['other', 403],
  ] as const) {
    const asked = url(`?hub.verify_token=${token}&hub.challenge=7`);
    const answer = await receive(
      null,
      {},
      { sender: 'meta', secrets: [secret], challengeTokens: ['agreed'], store, method: 'GET', url: asked },
    );
    assert.equal(answer.status, status);
  }
  // An empty token, of a variable that is not set, is no token.
  const empty = { sender: 'meta', secrets: [secret], challengeTokens: [''], store, method: 'GET' } as const;
  for (const query of ['?hub.challenge=7', '?hub.challenge=7&hub.verify_token='])
    assert.equal((await receive(null, {}, { ...empty, url: url(query) })).status, 403);
  assert.equal(store.kept.length, 0);
});

test('gives the statuses that a sender wants, and the JSON of a form', async () => {
  const body = '{"events":[{"eventCategory":"INVOICE","eventType":"UPDATE"}]}';
  const signed = createHmac('sha256', secret).update(body).digest('base64');
  assert.equal((await ask('xero', body, { 'x-xero-signature': signed })).status, 200);
  assert.equal((await ask('xero', `${body} `, { 'x-xero-signature': signed })).status, 401);
  const form = String(new URLSearchParams({ payload: '{"action":"opened","id":9007199254740993}' }));
  const headers = {
    ...{ 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'issues' },
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(form).digest('hex')}`,
  };
  const received = await ask('github', form, headers);
  assert.ok(received.outcome === 'accepted');
  assert.equal(received.message.type, 'issues.opened');
  assert.throws(() => received.message.json(), RangeError);
  assert.deepEqual(received.message.json({ integers: 'text' }), { action: 'opened', id: '9007199254740993' });
});

test('verifies the URL that Twilio called, and asks for it', async () => {
  const body = 'MessageStatus=sent&MessageSid=SM1';
  const url = 'https://shop.example/sms?x=1';
  const signature = createHmac('sha1', secret)
    .update(`${url}MessageSidSM1MessageStatussent`)
    .digest('base64');
  const headers = { 'X-Twilio-Signature': signature, 'Content-Type': 'application/x-www-form-urlencoded' };
  assert.equal((await ask('twilio', body, headers, { url })).outcome, 'accepted');
  assert.equal((await ask('twilio', body, headers, { url: `${url}1` })).outcome, 'refused');
  await assert.rejects(ask('twilio', body, headers), /URL/);
});

test('takes signatures by published keys without a secret', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const headers = await signStandard({
    id: 'msg_1',
    body: event,
    privateKeys: [privateKey.export({ format: 'jwk' }) as Ed25519PrivateJwk],
    timestamp: seconds,
  });
  const trusted = {
    secrets: undefined,
    publicKeys: [publicKey.export({ format: 'jwk' }) as Ed25519PublicJwk],
  };
  assert.equal((await ask('standard', event, headers, trusted)).outcome, 'accepted');
  assert.equal((await ask('standard', `${event} `, headers, trusted)).outcome, 'refused');
  await assert.rejects(ask('standard', event, headers, { secrets: undefined }), TypeError);
});

test('hands the store all that there is to keep', async () => {
  const sign = messages.github ?? assert.fail();
  const { headers } = await sign('{"action":"opened"}', seconds);
  const store = keeping();
  const answer = await ask(
    'github',
    '{"action":"opened"}',
    new Headers({ ...headers, 'content-type': 'application/json', 'content-encoding': 'identity' }),
    { store, name: 'forge' },
  );
  assert.equal(answer.outcome, 'accepted');
  const [{ text, json, body, headers: kept, ...facts } = assert.fail()] = store.kept;
  assert.deepEqual(facts, {
    sender: 'forge',
    dedupeKey: 'dlv-1',
    type: 'issues.opened',
    timestamp: null,
    receivedAt: new Date(nowMs).toISOString(),
    contentType: 'application/json',
    contentEncoding: 'identity',
  });
  assert.equal(kept['x-github-event'], 'issues');
  assert.equal(kept['x-hub-signature-256'], undefined);
  assert.deepEqual(body, octets.encode(text()));
  assert.deepEqual(json(), { action: 'opened' });
});

test('makes a digest where a message has no key of its own that can be kept', async () => {
  const digest = (text: string | Uint8Array): string =>
    `sha256:${createHash('sha256').update(text).digest('base64url')}`;
  const sign = messages.hmac ?? assert.fail();
  const long = 'k'.repeat(257);
  for (const [body, expected] of [
    ['', digest('')],
    ['no JSON', digest('no JSON')],
    [JSON.stringify({ id: long }), digest(long)],
  ] as const) {
    const { headers } = await sign(body, seconds);
    const store = keeping();
    const rule = { preset: 'hmac', dedupe: [{ json: '/id' }] } as const;
    await ask(rule, body, headers, { store });
    assert.equal(store.kept[0]?.dedupeKey, expected);
  }
});

test('takes a preset with parts of it replaced, and rules of one’s own', async () => {
  const sign = messages.stripe ?? assert.fail();
  const { body, headers } = await sign(event, seconds - 500);
  assert.equal((await ask('stripe', body, headers)).outcome, 'refused');
  const patient = { preset: 'stripe', toleranceSeconds: 500 } as const;
  assert.equal((await ask(patient, body, headers)).outcome, 'accepted');
  const renamed = { preset: 'hmac', signature: { header: 'x-shop-hmac', encoding: 'base64' } } as const;
  const signature = createHmac('sha256', secret).update(body).digest('base64');
  assert.equal((await ask(renamed, body, { 'x-shop-hmac': signature })).outcome, 'accepted');
  const rule = { signature: { kind: 'token', header: 'x-key' }, dedupe: [], type: [], keep: [] } as const;
  assert.equal((await ask(rule, body, { 'x-key': secret })).outcome, 'accepted');
  assert.equal((await ask(rule, body, { 'x-key': `${secret}1` })).outcome, 'refused');
});

describe('of the header fields', () => {
  test('reads names in any case, and refuses a field that came twice in any way', async () => {
    const { headers, body } = (await messages.timestamped?.(event, seconds)) ?? assert.fail();
    const value = headers['service-signature'] ?? assert.fail();
    const reasonOf = async (fields: HeaderSource): Promise<string> => {
      const answer = await ask('timestamped', body, fields);
      return answer.outcome === 'refused' ? answer.reason : answer.outcome;
    };
    assert.equal(await reasonOf({ 'SERVICE-Signature': value }), 'accepted');
    assert.equal(await reasonOf({ 'Service-Signature': [value] }), 'accepted');
    assert.equal(await reasonOf(new Headers({ 'Service-Signature': value })), 'accepted');
    assert.equal(await reasonOf({ 'Service-Signature': value, 'service-signature': value }), 'malformed');
    assert.equal(await reasonOf({ 'service-signature': [value, value] }), 'malformed');
    assert.equal(await reasonOf({ 'service-signature': undefined }), 'missing');
    assert.equal(await reasonOf(Object.create({ 'service-signature': value }) as HeaderSource), 'missing');
  });

  test('throws for what holds no fields', async () => {
    for (const headers of [undefined, null, 'Service-Signature: t=1', [['service-signature', 't=1']]]) {
      await assert.rejects(ask('timestamped', event, headers as unknown as HeaderSource), /headers must be/);
    }
  });
});

describe('of the store', () => {
  test('rejects with what the store rejects with, so that the sender tries again', async () => {
    const { headers, body } = (await messages.timestamped?.(event, seconds)) ?? assert.fail();
    const store = { insert: () => Promise.reject(new Error('disk is full')) };
    await assert.rejects(ask('timestamped', body, headers, { store }), /disk is full/);
  });

  test('throws for a store that does not say what it did', async () => {
    const { headers, body } = (await messages.timestamped?.(event, seconds)) ?? assert.fail();
    for (const said of [undefined, true, 'inserted']) {
      const store = { insert: () => said as unknown as 'stored' };
      await assert.rejects(ask('timestamped', body, headers, { store }), /'stored' or 'duplicate'/);
    }
  });

  test('accepts one of thirty that come at once', async () => {
    const { headers, body } = (await messages.timestamped?.(event, seconds)) ?? assert.fail();
    const store = memoryStore();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => ask('timestamped', body, headers, { store })),
    );
    assert.equal(answers.filter(({ outcome }) => outcome === 'accepted').length, 1);
    assert.equal(answers.filter(({ outcome }) => outcome === 'duplicate').length, 29);
  });

  test('in memory is bounded in number and time, and knows senders apart', async () => {
    let now = 0;
    const store = memoryStore({ max: 2, seconds: 10, nowMs: () => now });
    const insert = (dedupeKey: string, sender = 'a') =>
      store.insert({ sender, dedupeKey } as VerifiedMessage);
    assert.deepEqual([insert('1'), insert('1'), insert('1', 'b')], ['stored', 'duplicate', 'stored']);
    assert.deepEqual([insert('2'), insert('1'), insert('2')], ['stored', 'stored', 'duplicate']);
    now = 9_999;
    assert.equal(insert('2'), 'duplicate');
    now = 10_000;
    assert.equal(insert('2'), 'stored');
    for (const options of [{ max: 0 }, { seconds: 0 }, { max: Number.NaN }]) {
      assert.throws(() => memoryStore(options), TypeError);
    }
  });
});
