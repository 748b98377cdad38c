/** Questions of vendors before and between their messages, the statuses that they want, and messages that they repeat. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Received } from '../../../src/model/received.ts';
import { keptRow } from '../../../src/store/store.ts';
import type { PresetName } from '../../../src/webhooks/presets.ts';
import { challengeCharactersMax } from '../../../src/webhooks/receive/challenge.ts';
import { receivedCollection } from '../../../src/webhooks/receiving/received-tables.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { declared, plainFields, secret, walkSenders } from './walked-senders.ts';

const store = await openEmbedded();
const names = [
  ...(['meta', 'nylas', 'dropbox', 'okta', 'x', 'trello', 'zoom', 'twitch', 'xero', 'mailgun'] as const),
  ...(['microsoft-graph', 'github', 'slack', 'plain'] as const),
] satisfies readonly PresetName[];
const senders = [...names.map((name) => declared(name, name)), declared('verifying', 'meta')];
const room = walkSenders(store, { senders, tokens: { verifying: ['agreed'] } });
const hmac = (text: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', secret).update(text).digest(encoding);
const zoomFields = (body: string) => {
  const seconds = Math.floor(room.clock() / 1000);
  const signature = `v0=${hmac(`v0:${seconds}:${body}`, 'hex')}`;
  return ['x-zm-signature', signature, 'x-zm-request-timestamp', String(seconds)];
};
const twitchFields = (body: string) => {
  const at = new Date(room.clock()).toISOString();
  return [
    ...['twitch-eventsub-message-id', 'm-1', 'twitch-eventsub-message-timestamp', at],
    ...['twitch-eventsub-message-signature', `sha256=${hmac(`m-1${at}${body}`, 'hex')}`],
  ];
};
const longest = 'c'.repeat(challengeCharactersMax);
const zoomed = JSON.stringify({ event: 'endpoint.url_validation', payload: { plainToken: 'p 1' } });
const twitched = JSON.stringify({
  challenge: 'pogchamp',
  subscription: { status: 'webhook_callback_verification_pending' },
});

type Asked = {
  readonly of: string;
  readonly method?: string;
  readonly query?: string;
  readonly fields?: readonly string[];
  readonly body?: string;
  readonly answer: readonly [status: number, type: string | undefined, content: string];
};
const text = 'text/plain; charset=utf-8';
const json = 'application/json';

const questions: readonly Asked[] = [
  {
    of: 'meta',
    method: 'GET',
    query: `?hub.mode=subscribe&hub.verify_token=${secret}&hub.challenge=115%3C`,
    answer: [200, text, '115<'],
  },
  { of: 'nylas', method: 'GET', query: '?challenge=abc', answer: [200, text, 'abc'] },
  { of: 'dropbox', method: 'GET', query: '?challenge=abc', answer: [200, text, 'abc'] },
  { of: 'dropbox', method: 'HEAD', query: '?challenge=abc', answer: [200, text, ''] },
  {
    ...{ of: 'okta', method: 'GET', fields: ['x-okta-verification-challenge', 'c1'] },
    answer: [200, json, '{"verification":"c1"}'],
  },
  {
    ...{ of: 'x', method: 'GET', query: '?crc_token=t1&nonce=2' },
    answer: [200, json, JSON.stringify({ response_token: `sha256=${hmac('t1', 'base64')}` })],
  },
  { of: 'trello', method: 'HEAD', answer: [200, text, ''] },
  { of: 'microsoft-graph', query: '?validationToken=a%20b', answer: [200, text, 'a b'] },
  {
    ...{ of: 'zoom', body: zoomed, fields: zoomFields(zoomed) },
    answer: [200, json, JSON.stringify({ plainToken: 'p 1', encryptedToken: hmac('p 1', 'hex') })],
  },
  { of: 'twitch', body: twitched, fields: twitchFields(twitched), answer: [200, text, 'pogchamp'] },
  { of: 'nylas', method: 'GET', query: `?challenge=${longest}`, answer: [200, text, longest] },
  {
    ...{ of: 'verifying', method: 'GET', query: '?hub.verify_token=agreed&hub.challenge=7' },
    answer: [200, text, '7'],
  },
];

describe('a question of a vendor is answered and not stored', () => {
  for (const { of, method, query, fields, body = '', answer } of questions) {
    test(`${of} ${method ?? 'POST'} ${(query ?? '').slice(0, 40)}`, async () => {
      const asked = { fields: fields ?? [], body, ...(method && { method }), ...(query && { query }) };
      const { status, field, content } = await room.post(of, asked);
      // The walk leaves it to the server to send no content with HEAD.
      const sent = method === 'HEAD' ? '' : String(content);
      assert.deepEqual([status, field('Content-Type'), sent], answer);
      assert.equal((await room.received(of)).length, 0);
    });
  }

  test('that lacks what it asks for, is too long, or has another token is refused', async () => {
    for (const [of, query, status] of [
      ['nylas', '', 400],
      ['nylas', '?other=1', 400],
      ['nylas', `?challenge=${longest}c`, 400],
      ['okta', '', 400],
      ['verifying', '?hub.verify_token=another&hub.challenge=7', 403],
      ['verifying', '?hub.challenge=7', 403],
      ['verifying', `?hub.verify_token=${secret}&hub.challenge=7`, 403],
      ['verifying', '?hub.verify_token=&hub.challenge=7', 403],
      ['meta', '?hub.verify_token=agreed&hub.challenge=7', 403],
      ['plain', '?challenge=abc', 405],
      ['zoom', '?challenge=abc', 405],
    ] as const) {
      const answered = await room.post(of, { method: 'GET', query });
      assert.equal(answered.status, status, `${of} ${query.slice(0, 40)}`);
    }
    // Without its parameter, a POST is a message, and is not signed.
    assert.equal((await room.post('microsoft-graph', { body: '{}' })).status, 400);
  });
});

describe('a vendor gets the status that it wants', () => {
  const signature = (body: string) => ['x-xero-signature', hmac(body, 'base64')];
  test('when its message is stored, and again when it repeats it', async () => {
    for (const _ of [1, 2]) {
      const { status, content } = await room.post('xero', {
        body: '{"events":[]}',
        fields: signature('{"events":[]}'),
      });
      assert.deepEqual([status, String(content)], [200, '']);
    }
    assert.equal((await room.received('xero')).length, 1);
  });

  test('when its signature is wrong', async () => {
    const xero = await room.post('xero', { body: '{}', fields: signature('{ }') });
    assert.deepEqual([xero.status, xero.json.code, xero.json.reason], [401, 'signature_invalid', 'no-match']);
    const body = JSON.stringify({ signature: { timestamp: '1', token: 't', signature: 'ab'.repeat(32) } });
    assert.equal((await room.post('mailgun', { body })).status, 406);
    assert.equal((await room.post('github', { body })).status, 400);
  });
});

test('a form with its JSON in a field has the id and the type of that JSON', async () => {
  const payload = JSON.stringify({ action: 'opened', number: 7 });
  const body = String(new URLSearchParams({ payload }));
  const form = ['Content-Type', 'application/x-www-form-urlencoded'];
  const fields = [
    ...['X-Hub-Signature-256', `sha256=${hmac(body, 'hex')}`, ...form],
    ...['X-GitHub-Delivery', 'd-1', 'X-GitHub-Event', 'pull_request'],
  ];
  assert.equal((await room.post('github', { body, fields })).status, 204);
  const [received] = await room.received('github');
  assert.deepEqual([received?.type, received?.dedupeKey], ['pull_request.opened', 'd-1']);

  const clicked = String(new URLSearchParams({ payload: '{"type":"block_actions","trigger_id":"12.34"}' }));
  const seconds = Math.floor(room.clock() / 1000);
  const slack = [
    ...['X-Slack-Request-Timestamp', String(seconds), ...form],
    ...['X-Slack-Signature', `v0=${hmac(`v0:${seconds}:${clicked}`, 'hex')}`],
  ];
  assert.equal((await room.post('slack', { body: clicked, fields: slack })).status, 204);
  const [interaction] = await room.received('slack');
  assert.deepEqual([interaction?.type, interaction?.dedupeKey], ['block_actions', '12.34']);
});

test('a message that failed is due again when its sender repeats it, and only such a one', async () => {
  const body = '{"type":"a.b"}';
  const post = () => room.post('plain', { body, fields: plainFields(body, 'd-9') });
  const message = async (): Promise<Received> => {
    const [received] = await room.received('plain');
    assert.ok(received !== undefined);
    return received;
  };
  const mark = async (status: Received['status']) => {
    const { id } = await message();
    const row = await store.read(receivedCollection.name, id);
    assert.ok(row !== undefined);
    const doc = JSON.stringify({
      ...JSON.parse(row.doc),
      status,
      dueAt: null,
      lastError: 'thrown',
      attempts: 9,
    });
    await store.commit({
      changes: [
        {
          ...{ table: receivedCollection.name, id, expect: { rev: row.rev } },
          next: keptRow(doc, row.owner, row.createdAt, row.updatedAt),
        },
      ],
      events: [],
    });
  };
  assert.equal((await post()).status, 204);
  await mark('processed');
  assert.equal((await post()).status, 204);
  assert.deepEqual([(await message()).status, (await message()).dueAt], ['processed', null]);
  await mark('failed');
  const answers = await Promise.all(Array.from({ length: 20 }, post));
  assert.ok(answers.every(({ status }) => status === 204));
  const again = await message();
  assert.deepEqual(
    [again.status, again.lastError, again.attempts, again.dueAt === null],
    ['pending', null, 9, false],
  );
});
