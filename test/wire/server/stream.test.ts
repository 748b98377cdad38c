/** Content that is produced while it is sent: back pressure, clients that leave, slow readers, limits, drain. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { ContentSink, Response } from '../../../src/http/message.ts';
import { serve, text } from './serve.ts';

const get = (version = '1.1', more = '') => `GET /events HTTP/${version}\r\nHost: a\r\n${more}\r\n`;

/** A source whose stream the test holds, and which counts how often it was told to close. */
function createSource() {
  const opened: ContentSink[] = [];
  const closed: ContentSink[] = [];
  const closing = Promise.withResolvers<void>();
  const answer = (): Response => ({
    status: 200,
    fields: ['Content-Type', 'text/event-stream'],
    content: {
      open: (sink) => {
        opened.push(sink);
        return () => {
          closed.push(sink);
          closing.resolve();
        };
      },
    },
  });
  const sink = (): ContentSink => {
    const [first] = opened;
    if (first === undefined) throw new Error('no stream was opened');
    return first;
  };
  return { answer, sink, opened, closed, closing: closing.promise };
}

test('sends fields at once and text as it is written, chunked', async (t) => {
  const source = createSource();
  const { open } = await serve(t, source.answer);
  const client = (await open()).send(get());
  const head = await client.until('\r\n\r\n');
  assert.match(head, /Transfer-Encoding: chunked/);
  assert.doesNotMatch(head, /Content-Length/);
  assert.equal(source.sink().write('data: 1\n\n'), true);
  await client.until('data: 1\n\n\r\n');
  source.sink().end();
  await client.until('0\r\n\r\n');
  client.send('GET /again HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until('HTTP/1.1 200');
  assert.deepEqual(source.closed, [], 'a producer that ended is not told to');
});

test('sends a stream to HTTP/1.0 without chunks, whatever TE says, and ends it with the connection', async (t) => {
  const source = createSource();
  const { open } = await serve(t, source.answer);
  const client = (await open()).send(get('1.0', 'TE: chunked\r\nConnection: keep-alive\r\n'));
  assert.doesNotMatch(await client.until('\r\n\r\n'), /chunked/);
  source.sink().write('data: 1\n\n');
  source.sink().end();
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, 'data: 1\n\n');
});

test('answers HEAD with the fields of the stream and opens none', async (t) => {
  const source = createSource();
  const { open } = await serve(t, () => ({ ...source.answer(), headOnly: true }));
  const client = (await open()).send('HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n');
  const answer = await client.answer({ headOnly: true });
  assert.equal(answer.fields.get('content-type'), 'text/event-stream');
  assert.deepEqual(source.opened, []);
});

for (const how of ['end', 'resetAndDestroy'] as const) {
  test(`tells the producer once when the client leaves by ${how}`, async (t) => {
    const source = createSource();
    const { open, listener } = await serve(t, source.answer);
    const client = (await open()).send(get());
    await client.until('\r\n\r\n');
    assert.equal(listener.counts().streams, 1);
    client.socket[how]();
    await source.closing;
    assert.equal(source.sink().write('late'), false);
    source.sink().end();
    await client.closed;
    assert.equal(source.closed.length, 1);
    assert.equal(listener.counts().streams, 0);
  });
}

test('holds the producer back while the client reads slowly, and calls it when there is room', async (t) => {
  const source = createSource();
  const { port } = await serve(t, source.answer, { streamBufferBytesMax: 64_000_000 });
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write(get());
  while (source.opened.length === 0) await new Promise((resolve) => setImmediate(resolve));
  socket.pause();
  const piece = 'x'.repeat(100_000);
  let written = 0;
  while (source.sink().write(piece)) {
    written += 1;
    if (written % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(written < 1_000, 'the buffers of the kernel are not endless');
  }
  const ready = new Promise<void>((resolve) => source.sink().onReady(resolve));
  socket.resume();
  await ready;
});

test('cuts off a reader that is slower than its buffer, once', async (t) => {
  const source = createSource();
  const { port, observed, listener } = await serve(t, source.answer, { streamBufferBytesMax: 300_000 });
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.write(get());
  while (source.opened.length === 0) await new Promise((resolve) => setImmediate(resolve));
  socket.pause();
  const piece = 'x'.repeat(100_000);
  for (let written = 0; written < 1_000 && source.closed.length === 0; written += 1) {
    source.sink().write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(source.closed.length, 1);
  assert.equal(listener.counts().streams, 0);
  assert.equal(observed.filter((fact) => fact.kind === 'stream-cut').length, 1);
  socket.resume();
  await once(socket, 'close');
});

test('cuts off a reader that takes nothing, and tells the producer once', async (t) => {
  const source = createSource();
  const { port, observed, listener } = await serve(t, source.answer, { answerStallTimeoutMs: 100 });
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.write(get());
  while (source.opened.length === 0) await new Promise((resolve) => setImmediate(resolve));
  socket.pause();
  const fill = (): void => {
    while (source.sink().write('x'.repeat(16_000)));
  };
  source.sink().onReady(fill);
  fill();
  await source.closing;
  assert.equal(listener.counts().streams, 0);
  const [cut] = observed.filter((fact) => fact.kind === 'stream-cut');
  assert.equal(cut?.why, 'stalled');
  socket.resume();
  await once(socket, 'close');
  assert.equal(source.closed.length, 1);
});

test('answers 503 with Retry-After to a stream over the limit, which is not opened', async (t) => {
  const source = createSource();
  const { open } = await serve(t, source.answer, { streamsMax: 1 });
  const first = (await open()).send(get());
  await first.until('\r\n\r\n');
  const refused = await (await open()).send(get()).answer();
  assert.equal(refused.status, 503);
  assert.ok(Number(refused.fields.get('retry-after')) > 0);
  assert.equal(source.opened.length, 1);
  first.destroy();
  await source.closing;
  await (await (await open()).send(get())).until('HTTP/1.1 200');
});

test('ends streams properly when the server drains', async (t) => {
  const source = createSource();
  const { open, listener } = await serve(t, source.answer);
  const client = (await open()).send(get());
  await client.until('\r\n\r\n');
  source.sink().write('data: last\n\n');
  const drained = listener.drain(5_000);
  await client.until('data: last\n\n\r\n0\r\n\r\n');
  assert.equal(await client.closed, 'end');
  assert.equal(await drained, 0);
  assert.equal(source.closed.length, 1);
});

test('reports a producer that throws at its start, and cuts the connection', async (t) => {
  const { open, observed, listener } = await serve(t, () => ({
    status: 200,
    fields: [],
    content: {
      open: () => {
        throw new Error('no source');
      },
    },
  }));
  const client = (await open()).send(get());
  await client.closed;
  assert.equal(observed.filter((fact) => fact.kind === 'failed').length, 1);
  assert.deepEqual(listener.counts().streams, 0);
  assert.equal(listener.counts().requests, 0);
});

test('does not hold a stream for stalled because it has nothing to say', async (t) => {
  const source = createSource();
  const { open } = await serve(t, source.answer, {
    answerStallTimeoutMs: 300,
    keepAliveTimeoutMs: 300,
    requestTimeoutMs: 300,
    headersTimeoutMs: 300,
  });
  const client = (await open()).send(get());
  await client.until('\r\n\r\n');
  // Longer than every bound above: silence is what this test is about.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  source.sink().write('data: still here\n\n');
  await client.until('still here');
});

test('keeps ordinary answers apart from streams', async (t) => {
  const { open, listener } = await serve(t, () => text(200, 'x'));
  await (await open()).send(get()).answer();
  assert.equal(listener.counts().streams, 0);
});
