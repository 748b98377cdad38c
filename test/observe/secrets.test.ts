/**
 * No credential, query string or content in anything that is printed (§5.1): requests with a secret in each carrier go
 * through a real listener, well and badly, with the log at its most talkative, and everything written is searched.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { fanOut, type Observation } from '../../src/observe/observation.ts';

import { createListener } from '../../src/server/listener.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { openRaw } from '../wire/server/raw-client.ts';

const secret = 'sk_SECRET0123456789';
const basic = Buffer.from(`user:${secret}`).toString('base64');
const content = `{"password":"${secret}"}`;

const carriers = [
  `Authorization: Bearer ${secret}`,
  `Authorization: ApiKey ${secret}`,
  `Authorization: Basic ${basic}`,
  `Proxy-Authorization: Bearer ${secret}`,
  `X-API-Key: ${secret}`,
  `Cookie: session=${secret}`,
  `Idempotency-Key: "${secret}"`,
  `Referer: http://a/?api_key=${secret}`,
];

const fields = carriers.map((field) => `${field}\r\n`).join('');
const requests = [
  `POST /api/v1/notes/${secret}?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: ${content.length}\r\n\r\n${content}`,
  `POST /fails?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: ${content.length}\r\n\r\n${content}`,
  `POST /unavailable?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: ${content.length}\r\n\r\n${content}`,
  `GET /?api_key=${secret} HTTP/2.0\r\nHost: a\r\n${fields}\r\n`,
  // Parser errors carry the octets that were being read.
  `${secret.toLowerCase()} /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`,
  `get /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`,
  `GET /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}Bad Field: ${secret}\r\n\r\n`,
  `GET /?api_key=${secret}${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  `POST /?api_key=${secret} HTTP/1.1\r\nHost: a\r\n${fields}Transfer-Encoding: chunked\r\n\r\n${secret}\r\n`,
  `CONNECT ${secret}:443 HTTP/1.1\r\nHost: a\r\n${fields}\r\n`,
];

test('prints no secret from any carrier, in any outcome, at debug', async (t) => {
  let printed = '';
  const metrics = createMetrics({ process: false });
  const log = createLog({
    level: 'debug',
    destination: {
      write: (line) => {
        printed += line;
      },
    },
  });
  const listener = createListener({
    apiVersion: '1',
    observe: fanOut(log, metrics.observe),
    handler: async (request) => {
      const received = await request.readContent(1_000);
      if (request.target.startsWith('/fails')) throw new Error('the handler failed');
      if (request.target.startsWith('/unavailable'))
        throw new StoreUnavailable('busy', { retryAfterSeconds: 1 });
      return { status: received.ok ? 201 : 400, fields: [], content: null, route: '/api/v1/notes/{id}' };
    },
  });
  t.after(() => listener.drain(0));
  const { port } = await listener.listen('127.0.0.1', 0);
  for (const request of requests) {
    const client = await openRaw(port);
    client.send(request);
    const answer = await client.answer();
    assert.equal(answer.head.includes(secret) || answer.body.includes(secret), false, answer.head);
    client.destroy();
  }
  printed += await metrics.render();
  for (const outcome of [
    '"status":201',
    '"msg":"request failed"',
    '"status":500',
    '"status":503',
    '"status":505',
    '"code":"method_unknown"',
    '"code":"message_invalid"',
    '"code":"target_too_long"',
    '"code":"method_not_allowed"',
  ]) {
    assert.ok(printed.includes(outcome), `${outcome} is logged`);
  }
  for (const trace of [secret, secret.toLowerCase(), basic, 'api_key', 'password', 'SECRET']) {
    assert.equal(printed.includes(trace), false, `${trace} is printed`);
  }
});

/** What a mail server or a provider may repeat of what it was sent, in the words around it that such servers use. */
const repeated = [
  'sk_4f3c2b1a09d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4',
  'pk_x',
  'rt_ses_01k1jx7v2mh5s8b4c9d0e6f3ga.Zm9vYmFyYmF6cXV4.c2VjcmV0',
  'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3IifQ.c2ln',
  'q9Xw-3vJr0LkT8sYb2NdPz7uHf1MgAeCi5oVxRtK6jE',
  '9f86d081884c7d659a2feaa0c55ad015',
  'ada.lovelace@shop.example',
];

const ofOthers = repeated.flatMap((word): readonly Observation[] => {
  const words = [
    `550 5.1.1 <${word}>: Recipient address rejected: ${word}`,
    `request to https://id.example/token?code=${word}&state=short failed`,
    `${'x '.repeat(95)}${word}`,
    `invalid_grant: the code "${word}", has been used (${word})`,
  ];
  return words.flatMap((message): readonly Observation[] => {
    const cause = Object.assign(new Error(message), { code: word, response: word, command: word });
    const error = new Error(message, { cause });
    return [
      { kind: 'mail-delayed', mail: 'mail_1', attempts: 1, error },
      { kind: 'mail-given-up', mail: 'mail_1', reason: 'attempts', attempts: 4, error },
      { kind: 'mail-given-up', mail: 'mail_1', reason: 'refused', attempts: 1, error: message },
      { kind: 'issuer-failed', issuer: 'https://issuer.example', error },
      { kind: 'provider-failed', provider: 'google', error: new Error('odd', { cause: { word } }) },
      { kind: 'provider-failed', provider: 'google', error },
    ];
  });
});

test('prints no secret and no address that a mail server, an issuer or a provider repeats', () => {
  let printed = '';
  const log = createLog({
    level: 'debug',
    destination: {
      write: (line) => {
        printed += line;
      },
    },
  });
  for (const fact of ofOthers) log(fact);
  assert.equal(printed.split('\n').length - 1, ofOthers.length);
  assert.ok(printed.includes('Recipient address rejected'), 'what the server said is told');
  assert.ok(printed.includes('https://id.example/token'), 'and whom we asked');
  for (const word of repeated) {
    for (const trace of [word, word.slice(0, 24), word.slice(-10)]) {
      assert.equal(printed.includes(trace), false, `${trace} is printed`);
    }
  }
});
