/** The end of a listener: nothing acknowledged is lost, nothing under way is reset, and it ends within its bound. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { test } from 'node:test';
import type { Response } from '../../../src/http/message.ts';
import { openRaw } from './raw-client.ts';
import { countContent, echo, serve, text } from './serve.ts';

const get = (target = '/') => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;

test('is idle, serving, draining and stopped in this order', async (t) => {
  const answer = Promise.withResolvers<Response>();
  const { open, listener } = await serve(t, () => answer.promise);
  assert.equal(listener.state(), 'serving');
  const client = (await open()).send(get());
  while (listener.counts().requests === 0) await new Promise((resolve) => setImmediate(resolve));
  const drained = listener.drain(5_000);
  assert.equal(listener.state(), 'draining');
  answer.resolve(text(200, 'x'));
  await client.answer();
  assert.equal(await drained, 0);
  assert.equal(listener.state(), 'stopped');
});

test('closes idle connections at once and refuses new ones', async (t) => {
  const { open, listener, port } = await serve(t, echo, { drainIdleMs: 0 });
  const client = (await open()).send(get());
  await client.answer();
  assert.equal(await listener.drain(60_000), 0);
  assert.equal(await client.closed, 'end');
  await assert.rejects(openRaw(port));
});

test('answers requests under way, the last on each connection with Connection: close', async (t) => {
  const go = Promise.withResolvers<void>();
  const { open, listener } = await serve(t, async (request) => {
    await go.promise;
    return text(200, request.target);
  });
  const client = (await open()).send(get('/1') + get('/2'));
  while (listener.counts().requests < 2) await new Promise((resolve) => setImmediate(resolve));
  const drained = listener.drain(5_000);
  go.resolve();
  const first = await client.answer();
  const second = await client.answer();
  assert.deepEqual([first.body, first.fields.get('connection')], ['/1', 'keep-alive']);
  assert.deepEqual([second.body, second.fields.get('connection')], ['/2', 'close']);
  assert.equal(await client.closed, 'end');
  assert.equal(await drained, 0);
});

test('waits for the rest of content that is being read, and of a head that is being sent', async (t) => {
  const { open, listener } = await serve(t, countContent(100), { drainIdleMs: 0 });
  const reading = (await open()).send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe');
  const sending = (await open()).send('GET / HTTP/1.1\r\nHo');
  while (listener.counts().requests === 0) await new Promise((resolve) => setImmediate(resolve));
  // An exchange on a third connection: by then the half head has arrived.
  await (await open()).send('@\r\n\r\n').answer();
  const drained = listener.drain(5_000);
  reading.send('llo');
  assert.equal((await reading.answer()).body, '5');
  sending.send('st: a\r\n\r\n');
  const answer = await sending.answer();
  assert.equal(answer.body, '0');
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await drained, 0);
});

test('answers a request that was on its way when the drain began', async (t) => {
  const { open, listener } = await serve(t, echo, { drainIdleMs: 10_000 });
  const client = (await open()).send(get('/1'));
  await client.answer();
  const drained = listener.drain(20_000);
  const answer = await client.send(get('/2')).answer();
  assert.equal(answer.body, 'GET /2');
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await drained, 0);
});

for (const [when, sendsFirst] of [
  ['before the drain', true],
  ['while it waits', false],
] as const) {
  test(`answers a request that arrives ${when}, although the event loop reads it later than an idle connection is kept`, async (t) => {
    const { open, listener } = await serve(t, echo, { drainIdleMs: 20 });
    const clients = await Promise.all(Array.from({ length: 50 }, open));
    for (const client of clients) await client.send(get('/1')).answer();
    const send = () => {
      for (const client of clients) client.send(get('/2'));
      // The octets are in the kernel now, and the loop reads none of them before the connections look idle.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    };
    if (sendsFirst) send();
    const drained = listener.drain(20_000);
    if (!sendsFirst) send();
    for (const client of clients) {
      const answer = await client.answer();
      assert.deepEqual([answer.body, answer.fields.get('connection')], ['GET /2', 'close']);
      assert.equal(await client.closed, 'end');
    }
    assert.equal(await drained, 0);
  });
}

test('waits for a further request whose beginning came while draining', async (t) => {
  const { open, listener } = await serve(t, echo, { drainIdleMs: 50 });
  const client = (await open()).send(get('/1'));
  await client.answer();
  const drained = listener.drain(20_000);
  client.send('GET /2 HTTP/1.1\r\n');
  // Longer than an idle connection would be kept: that it is kept is what this test is about.
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal((await client.send('Host: a\r\n\r\n').answer()).body, 'GET /2');
  assert.equal(await drained, 0);
});

test('flushes a long answer to a slow client before it closes', async (t) => {
  const bytes = 8_000_000;
  const { open, listener, observed } = await serve(t, () => text(200, 'x'.repeat(bytes)), { drainIdleMs: 0 });
  const client = await open();
  client.socket.pause();
  client.send(get());
  while (observed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const drained = listener.drain(20_000);
  client.socket.resume();
  assert.equal((await client.answer()).body.length, bytes);
  assert.equal(await drained, 0);
});

test('cuts off what is left at its bound, and says how much', async (t) => {
  const { open, listener } = await serve(t, () => new Promise<Response>(() => undefined));
  const client = (await open()).send(get());
  while (listener.counts().requests === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await listener.drain(30), 1);
  await client.closed;
  assert.equal(client.received, '');
});

for (const [load, heldMs, clients, answers] of [
  ['load', 0, 16, 500],
  ['a load that holds the event loop longer than an idle connection is kept', 10, 40, 100],
] as const)
  test(`drains under ${load} without a reset and without losing an answer`, async (t) => {
    let handled = 0;
    let isWarm = false;
    const { listener, port } = await serve(t, async (request) => {
      const content = await request.readContent(1_000);
      await new Promise((resolve) => setImmediate(resolve));
      if (isWarm) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, heldMs);
      handled += 1;
      return text(content.ok ? 201 : 400, String(handled));
    });
    const agent = new Agent({ keepAlive: true, maxSockets: clients });
    t.after(() => agent.destroy());
    let acknowledged = 0;
    const failures: string[] = [];
    let accepting = true;
    const post = () =>
      new Promise<void>((resolve) => {
        const outgoing = httpRequest({ host: '127.0.0.1', port, agent, method: 'POST' }, (incoming) => {
          assert.equal(incoming.statusCode, 201);
          incoming.resume().on('end', () => {
            acknowledged += 1;
            resolve();
          });
        });
        outgoing.on('error', (error: NodeJS.ErrnoException) => {
          // A connection that was never opened has lost nothing.
          if (error.code === 'ECONNREFUSED') accepting = false;
          else failures.push(String(error.code));
          resolve();
        });
        outgoing.end('x'.repeat(300));
      });
    const worker = async () => {
      while (accepting) await post();
    };
    const workers = Array.from({ length: clients }, worker);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    while (acknowledged < answers || listener.counts().connections < clients) await turn();
    isWarm = true;
    for (const enough = acknowledged + clients; acknowledged < enough; ) await turn();
    assert.equal(await listener.drain(10_000), 0);
    await Promise.all(workers);
    assert.deepEqual(failures, []);
    assert.equal(acknowledged, handled);
  });

test('keeps no connection of its own after the clients have gone', async (t) => {
  const { open, listener } = await serve(t, echo);
  const clients = await Promise.all(Array.from({ length: 10 }, open));
  for (const client of clients) await client.send(get()).answer();
  assert.equal(listener.counts().connections, 10);
  await Promise.all(
    clients.map(async (client) => {
      client.destroy();
      if (!client.socket.closed) await once(client.socket, 'close');
    }),
  );
  while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listener.counts().requests, 0);
});
