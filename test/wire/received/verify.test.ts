/** Messages that `verify` of their sender judges (§4.14.1), on a thread of handlers. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const [older, newer] = ['the older secret of a sender', 'the newer secret of a sender'];
const program: RunningServer = await startServer({
  config: fileURLToPath(new URL('./fixtures/verify.config.ts', import.meta.url)),
  env: {
    SOCIAL_CHALLENGE_TOKEN: 'the token of a challenge',
    SOCIAL_WEBHOOK_SECRET: 'the secret of messages',
    SIGNED_WEBHOOK_SECRET: `${newer},${older}`,
    COMITY_PUBLIC_URL: 'https://api.example.com',
    COMITY_HOOK_TIMEOUT_MS: '400',
  },
});
after(() => program.stop());

type Sending = { readonly secret?: string; readonly altered?: string };

function sendSigned(body: string, { secret = newer, altered = body }: Sending = {}) {
  const path = '/api/v1/webhooks/signed?from=eu';
  const digest = createHash('sha256').update(body).digest('hex');
  const signed = createHmac('sha256', secret)
    .update(`https://api.example.com${path}\na, b\n${digest}`)
    .digest('hex');
  return program.send('POST', path, {
    body: altered,
    headers: { 'X-Part': ['a', 'b'], 'X-Digest': signed, 'Content-Type': 'application/json' },
  });
}

const messageOf = (id: string) => JSON.stringify({ id, type: 'parcel.sent', text: 'é' });

for (const [title, sending, status] of [
  ['signed with the newer secret', {}, 204],
  ['signed with the older secret', { secret: older }, 204],
  ['signed with another secret', { secret: 'another' }, 401],
  ['altered on its way', { altered: messageOf('altered') }, 401],
] as const) {
  test(`gives the function octets, fields, URL and secrets of a message ${title}: ${status}`, async () => {
    const id = title.replaceAll(' ', '-');
    const answer = await sendSigned(messageOf(id), sending);
    assert.equal(answer.status, status, answer.body);
    const kept = await program.list(`/api/v1/received?dedupeKey=${id}`);
    assert.deepEqual(
      kept.map(({ type }) => type),
      status === 204 ? ['parcel.sent'] : [],
    );
  });
}

test('gives the function long content whole, and answers a repetition as the first', async () => {
  const body = JSON.stringify({ id: 'long', type: 'parcel.sent', text: 'x'.repeat(5_000_000) });
  for (const _ of ['first', 'again']) assert.equal((await sendSigned(body)).status, 204);
  assert.equal((await program.list('/api/v1/received?dedupeKey=long')).length, 1);
});

function sendOdd(deed: string, id = deed) {
  return program.send('POST', '/api/v1/webhooks/odd', {
    json: { action: 'opened' },
    headers: { 'X-Deed': deed, 'X-GitHub-Delivery': id, 'X-GitHub-Event': 'issues' },
  });
}

for (const [deed, status, code, logged] of [
  ['true', 204, undefined, undefined],
  ['later', 204, undefined, undefined],
  ['false', 400, 'signature_invalid', undefined],
  ['nothing', 400, 'signature_invalid', 'verify must return true or false, and returned undefined'],
  ['truthy', 400, 'signature_invalid', 'verify must return true or false, and returned object'],
  ['throw', 400, 'signature_invalid', 'no signature of ours'],
  ['reject', 400, 'signature_invalid', 'no key'],
  ['wait', 503, 'unavailable', 'timeout: not done within 400 ms'],
  ['exit', 503, 'unavailable', 'thread-ended'],
  ['loop', 503, 'unavailable', 'timeout: not done within 400 ms'],
] as const) {
  test(`answers ${status} when the function does this: ${deed}`, async () => {
    const from = program.stderr().length;
    const answering = sendOdd(deed);
    // The thread that is busy is not the one that serves.
    assert.equal((await program.send('GET', '/health/live')).status, 200);
    const answer = await answering;
    assert.equal(answer.status, status, answer.body);
    assert.equal(status === 204 ? undefined : answer.json().code, code);
    const lines = program.stderr().slice(from);
    assert.equal(lines.includes(logged ?? 'receiving webhooks failed'), logged !== undefined, lines);
    assert.equal((await sendOdd('true', `after ${deed}`)).status, 204);
    const kept = await program.list(`/api/v1/received?dedupeKey=${deed}`);
    assert.deepEqual(
      kept.map(({ type }) => type),
      status === 204 ? ['issues.opened'] : [],
    );
  });
}

test('judges 200 messages at once, each by its own content', async () => {
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, at) => sendOdd(at % 2 === 0 ? 'later' : 'false', `crowd-${at}`)),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    answers.map((_, at) => (at % 2 === 0 ? 204 : 400)),
  );
});

test('answers a challenge with the token of its variable, and with no other', async () => {
  for (const [token, status] of [
    ['the token of a challenge', 200],
    ['the secret of messages', 403],
  ] as const) {
    const query = new URLSearchParams({ 'hub.challenge': '7', 'hub.verify_token': token });
    assert.equal((await program.send('GET', `/api/v1/webhooks/social?${query}`)).status, status);
  }
});

test('shows the sender as judged by a function, with no secret that was made for it', async () => {
  const odd = (await program.send('GET', '/api/v1/senders/odd')).json();
  assert.deepEqual([odd.signature, odd.secretCount], [{ kind: 'function' }, 0]);
  assert.doesNotMatch(program.stdout(), /ODD_WEBHOOK_SECRET/);
  const rotated = await program.send('POST', '/api/v1/senders/odd/rotate-secret', { json: {} });
  assert.deepEqual([rotated.status, rotated.json().code], [409, 'sender_secret_fixed']);
});
