/** Bounds of a connection, each at its edge (§8). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Response } from '../../../src/http/message.ts';
import { until } from '../../harness/until.ts';
import { echo, serve, text } from './serve.ts';

const get = (target = '/') => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;

test('takes a header section within its bound and answers 431 to a longer one', async (t) => {
  const { open, observed } = await serve(t, echo, { fieldsBytesMax: 1_000 });
  const withField = (length: number) => `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(length)}\r\n\r\n`;
  assert.equal((await (await open()).send(withField(900)).answer()).status, 200);
  const client = (await open()).send(withField(1_000));
  const refused = await client.answer();
  assert.equal(refused.status, 431);
  assert.equal(JSON.parse(refused.body).code, 'fields_too_large');
  assert.equal(await client.closed, 'end');
  assert.deepEqual(observed.at(-1), {
    kind: 'client-error',
    code: 'fields_too_large',
    status: 431,
    peer: '127.0.0.1',
  });
});

test('answers 414 to a target that alone is over the bound', async (t) => {
  const { open } = await serve(t, echo, { fieldsBytesMax: 1_000 });
  const answer = await (await open()).send(get(`/${'x'.repeat(2_000)}`)).answer();
  assert.equal(answer.status, 414);
});

test('answers 408 to a header section that does not end', async (t) => {
  const { open } = await serve(t, echo, { headersTimeoutMs: 500 });
  const client = (await open()).send('GET / HTTP/1.1\r\nHost: a\r\n');
  const answer = await client.answer();
  assert.equal(answer.status, 408);
  assert.equal(JSON.parse(answer.body).code, 'request_timeout');
  assert.equal(await client.closed, 'end');
});

test('closes a connection on which nothing was ever sent, without a word', async (t) => {
  const { open, observed } = await serve(t, echo, { headersTimeoutMs: 40 });
  const client = await open();
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
  assert.deepEqual(observed, []);
});

test('closes a connection that stays idle between requests', async (t) => {
  const { open } = await serve(t, echo, { keepAliveTimeoutMs: 20 });
  const client = (await open()).send(get());
  await client.answer();
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
});

test('handles so many pipelined requests, answers them, and closes without touching the rest', async (t) => {
  const seen: string[] = [];
  const go = Promise.withResolvers<void>();
  const { open } = await serve(
    t,
    async (request): Promise<Response> => {
      seen.push(request.target);
      if (request.target !== '/other') await go.promise;
      return text(200, request.target);
    },
    { pipelinedRequestsMax: 3 },
  );
  const client = (await open()).send(get('/1') + get('/2') + get('/3') + get('/4') + get('/5'));
  await (await open()).send(get('/other')).answer();
  go.resolve();
  for (const target of ['/1', '/2']) {
    const answer = await client.answer();
    assert.equal(answer.body, target);
    assert.equal(answer.fields.get('connection'), 'keep-alive');
  }
  const last = await client.answer();
  assert.equal(last.body, '/3');
  assert.equal(last.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
  assert.deepEqual(seen, ['/1', '/2', '/3', '/other']);
});

test('gives up an answer that the client does not take', async (t) => {
  const { port, listener } = await serve(t, () => text(200, 'x'.repeat(32_000_000)), {
    answerStallTimeoutMs: 40,
  });
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.pause();
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  socket.write(get());
  while (listener.counts().connections === 0) await new Promise((resolve) => setImmediate(resolve));
  const deadline = performance.now() + 60_000;
  while (listener.counts().connections > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(listener.counts().connections, 0);
});

test('sends a long answer to a slow client that keeps taking it', async (t) => {
  const bytes = 8_000_000;
  const stallMs = 1000;
  const { port } = await serve(t, () => text(200, 'x'.repeat(bytes)), { answerStallTimeoutMs: stallMs });
  await until(async () => {
    const { received, pauseMsMax } = await takeSlowly(port, t);
    if (received > bytes) return true;
    // A machine so busy that the client itself paused for as long proves nothing.
    assert.ok(pauseMsMax > stallMs / 2, `${received} octets, with pauses of ${pauseMsMax} ms at most`);
    return false;
  }, 'the client takes the answer without a long pause');
});

/** Takes an answer slowly, but for longer than the bound in all. */
async function takeSlowly(port: number, t: TestContext) {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  let received = 0;
  let pauseMsMax = 0;
  let lastAt = performance.now();
  for await (const chunk of socket) {
    received += (chunk as Buffer).length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    const now = performance.now();
    pauseMsMax = Math.max(pauseMsMax, now - lastAt);
    lastAt = now;
  }
  return { received, pauseMsMax };
}

test('a request whose client has left before its turn is not handled', async (t) => {
  const handled: string[] = [];
  const clients: Awaited<ReturnType<typeof served.open>>[] = [];
  const served = await serve(t, ({ target }) => {
    handled.push(target);
    // Longer than a turn of the event loop may take, so that the next request waits for another.
    for (const began = performance.now(); performance.now() - began < 15; );
    if (target === '/0') for (const client of clients) client.send('GET /left HTTP/1.1\r\nHost: a\r\n\r\n');
    if (target === '/4') for (const client of clients) client.socket.resetAndDestroy();
    return text(200, '');
  });
  const known = await served.open();
  known.send('GET /known HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.equal((await known.answer()).status, 200);
  // The connection of the second has sent nothing before, so that it waits as a whole and its request is never read.
  clients.push(known, await served.open());
  const staying = await served.open();
  staying.send(
    Array.from({ length: 20 }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''),
  );
  for (let index = 0; index < 20; index += 1) assert.equal((await staying.answer()).status, 200);
  await until(() => served.observed.some((seen) => seen.kind === 'answered' && seen.status === 499));
  assert.equal(handled.includes('/left'), false);
  assert.equal(served.listener.counts().requests, 0);
  await until(() => served.listener.counts().connections === 1);
});
