/** Responses on the wire: framing, the fields that this layer adds, and failures of the handler. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Response } from '../../../src/http/message.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { echo, serve, text } from './serve.ts';

const get = (target = '/', more = '') => `GET ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;

test('sends text with its length in octets, Date and API-Version', async (t) => {
  const { open } = await serve(t, () => text(200, 'naïve €'));
  const client = (await open()).send(get());
  const answer = await client.answer();
  assert.equal(answer.fields.get('content-length'), '10');
  assert.equal(Buffer.from(answer.body, 'latin1').toString('utf8'), 'naïve €');
  assert.equal(answer.fields.get('api-version'), '1');
  assert.match(answer.fields.get('date') ?? '', /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
});

test('sends octets as they are', async (t) => {
  const { open } = await serve(t, () => ({
    status: 200,
    fields: [],
    content: new Uint8Array([0, 255, 128]),
  }));
  const answer = await (await open()).send(get()).answer();
  assert.equal(answer.fields.get('content-length'), '3');
  assert.deepEqual(Buffer.from(answer.body, 'latin1'), Buffer.from([0, 255, 128]));
});

for (const status of [204, 304]) {
  test(`sends ${status} without content, Content-Length and Transfer-Encoding`, async (t) => {
    const { open } = await serve(t, () => ({ status, fields: ['ETag', '"1"'], content: null }));
    const client = (await open()).send(get() + get());
    for (const answer of [await client.answer(), await client.answer()]) {
      assert.equal(answer.status, status);
      assert.equal(answer.fields.has('content-length'), false);
      assert.equal(answer.fields.has('transfer-encoding'), false);
    }
  });
}

test('sends Content-Length 0 for an answer without content that could have some', async (t) => {
  const { open } = await serve(t, () => ({ status: 303, fields: ['Location', '/x'], content: null }));
  const answer = await (await open()).send(get()).answer();
  assert.equal(answer.fields.get('content-length'), '0');
});

test('answers HEAD with the fields of GET and no content', async (t) => {
  const { open } = await serve(t, (request) => ({
    ...text(200, 'four'),
    headOnly: request.method === 'HEAD',
  }));
  const client = (await open()).send(`HEAD / HTTP/1.1\r\nHost: a\r\n\r\n${get('/next')}`);
  const head = await client.answer({ headOnly: true });
  assert.equal(head.fields.get('content-length'), '4');
  assert.equal((await client.answer()).body, 'four');
});

test('closes after an answer to HTTP/1.0 and keeps the connection when asked', async (t) => {
  const { open } = await serve(t, echo);
  const closing = (await open()).send('GET /a HTTP/1.0\r\n\r\n');
  assert.equal((await closing.answer()).fields.get('connection'), 'close');
  assert.equal(await closing.closed, 'end');
  const kept = (await open()).send('GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');
  assert.equal((await kept.answer()).fields.get('connection'), 'keep-alive');
  assert.equal((await kept.send('GET /b HTTP/1.0\r\n\r\n').answer()).body, 'GET /b');
});

test('answers pipelined requests in their order, whichever is ready first', async (t) => {
  const slow = Promise.withResolvers<Response>();
  const { open } = await serve(t, (request) => {
    if (request.target === '/slow') return slow.promise;
    slow.resolve(text(200, 'slow'));
    return text(200, 'fast');
  });
  const client = (await open()).send(get('/slow') + get('/fast'));
  assert.equal((await client.answer()).body, 'slow');
  assert.equal((await client.answer()).body, 'fast');
});

test('answers a client that has closed its sending side already', async (t) => {
  const { open } = await serve(t, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    return text(200, 'late');
  });
  const client = await open();
  client.socket.end(get());
  assert.equal((await client.answer()).body, 'late');
  assert.equal(await client.closed, 'end');
});

for (const [how, handler] of [
  [
    'throws',
    () => {
      throw new Error('secret reason');
    },
  ],
  ['rejects', () => Promise.reject(new Error('secret reason'))],
] as const) {
  test(`answers 500 with the request id, and nothing of the reason, when the handler ${how}`, async (t) => {
    const { open, observed } = await serve(t, handler);
    const client = (await open()).send(get());
    const answer = await client.answer();
    const body = JSON.parse(answer.body);
    assert.equal(answer.status, 500);
    assert.equal(answer.fields.get('content-type'), 'application/json');
    assert.deepEqual({ error: body.error, code: body.code }, { error: 'internal error', code: 'internal' });
    assert.doesNotMatch(answer.body, /secret/);
    const failed = observed.find((fact) => fact.kind === 'failed');
    const answered = observed.find((fact) => fact.kind === 'answered');
    assert.equal(failed?.id, body.requestId);
    assert.equal(answered?.exchange.id, body.requestId);
    assert.equal((await client.send(get()).answer()).status, 500, 'the connection goes on');
  });
}

test('answers 503 with Retry-After, and no failure, when the store cannot answer', async (t) => {
  const { open, observed } = await serve(t, () => {
    throw new StoreUnavailable('busy', { retryAfterSeconds: 1.2 });
  });
  const answer = await (await open()).send(get('/', 'Accept: application/problem+json\r\n')).answer();
  assert.equal(answer.status, 503);
  assert.equal(answer.fields.get('retry-after'), '2');
  assert.equal(answer.fields.get('content-type'), 'application/problem+json');
  assert.equal(JSON.parse(answer.body).status, 503);
  assert.equal(
    observed.some((fact) => fact.kind === 'failed'),
    false,
  );
});

test('answers 500 instead of a response whose fields cannot be sent', async (t) => {
  const { open, observed } = await serve(t, () => ({
    status: 200,
    fields: ['Location', '/a\r\nSet-Cookie: x'],
    content: 'x',
  }));
  const client = (await open()).send(get());
  assert.equal((await client.answer()).status, 500);
  assert.equal(observed.filter((fact) => fact.kind === 'failed').length, 1);
});

test('tells route, status, code and duration of each answer once', async (t) => {
  const { open, observed } = await serve(t, () => ({
    ...text(404, '{}'),
    route: '/api/v1/products/{id}',
    code: 'not_found',
  }));
  await (await open()).send(get('/api/v1/products/7?api_key=sk_x')).answer();
  assert.equal(observed.length, 1);
  const [fact] = observed;
  assert.ok(fact?.kind === 'answered');
  const { exchange, durationMs, ...rest } = fact;
  const { id, peer } = exchange;
  assert.match(id, /^[0-9a-f]{10}-1$/);
  assert.ok(durationMs >= 0);
  assert.deepEqual(rest, {
    kind: 'answered',
    method: 'GET',
    route: '/api/v1/products/{id}',
    status: 404,
    code: 'not_found',
  });
  assert.equal(peer, '127.0.0.1');
});
