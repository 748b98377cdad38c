/** Connections of HTTP/2 over time: silence, stalls, streams of events, and the end of the listener. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endHeaders, endStream, frameTypes, setting } from '../../../conduct/frames.ts';
import type { ContentSink, Response } from '../../../src/http/message.ts';
import { echo, serve, text } from '../server/serve.ts';
import { ask, openSession, receive } from './http2-client.ts';
import { get, openRawSession, request } from './raw-session.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

for (const [what, octets] of [
  ['sends nothing', Buffer.alloc(0)],
  ['sends half a header section', request(1, get('/'), endStream)],
] as const) {
  test(`closes a connection that ${what} after its preface`, async (t) => {
    const { port } = await serve(t, echo, { headersTimeoutMs: 500, unreadContentTimeoutMs: 20 });
    const client = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    client.send(octets);
    assert.equal(await client.goawayCode(), 0);
    await client.closed;
  });
}

test('closes an idle connection after its last request, also where the client keeps its side open', async (t) => {
  const { port, listener } = await serve(t, echo, { keepAliveTimeoutMs: 500, unreadContentTimeoutMs: 20 });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/')));
  await client.frame(frameTypes.data, 1);
  assert.equal(await client.goawayCode(), 0);
  await client.closed;
  while (listener.counts().connections > 0) await turn();
});

test('closes soon after a client that ends before its content does, once a HEAD is answered', async (t) => {
  const { port, listener } = await serve(t, echo, { unreadContentTimeoutMs: 20 });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  const head = [':method', 'HEAD', ':scheme', 'http', ':authority', 'a', ':path', '/'];
  client.send(request(1, head, endHeaders));
  client.socket.end();
  await client.closed;
  while (listener.counts().connections > 0) await turn();
});

for (const length of [10, 200_000]) {
  test(`gives up an answer of ${length} octets of which the client takes nothing`, async (t) => {
    const { port } = await serve(t, () => text(200, 'x'.repeat(length)), { answerStallTimeoutMs: 60 });
    const client = (await openRawSession(port)).start(setting(4, 0));
    t.after(() => client.socket.destroy());
    client.send(request(1, get('/')));
    assert.equal(await client.resetCode(1), 8);
  });
}

test('asks a silent client whether it is there, and cuts one that is not', async (t) => {
  const { port, listener } = await serve(
    t,
    () => ({ ...text(200, null), content: { open: () => () => undefined } }),
    {
      keepAliveTimeoutMs: 500,
      answerStallTimeoutMs: 500,
    },
  );
  const gone = (await openRawSession(port)).start();
  t.after(() => gone.socket.destroy());
  gone.send(request(1, get('/')));
  await gone.frame(frameTypes.ping);
  const session = openSession(t, port);
  const stream = session.request({ ':path': '/' });
  await new Promise((resolve) => stream.once('response', resolve));
  await gone.closed;
  while (listener.counts().connections > 1) await turn();
  assert.equal(listener.counts().streams, 1, 'who answers the PING keeps its stream');
});

/** A source whose stream the test holds. */
function createSource() {
  const opened = Promise.withResolvers<ContentSink>();
  const closed = Promise.withResolvers<void>();
  let closes = 0;
  const answer = (): Response => ({
    status: 200,
    fields: ['Content-Type', 'text/event-stream'],
    content: {
      open: (sink) => {
        opened.resolve(sink);
        return () => {
          closes += 1;
          closed.resolve();
        };
      },
    },
  });
  return { answer, sink: opened.promise, closed: closed.promise, closes: () => closes };
}

test('sends a stream as it is written, and ends it without its connection', async (t) => {
  const source = createSource();
  const { port, listener } = await serve(t, (given) =>
    given.target === '/events' ? source.answer() : echo(given),
  );
  const session = openSession(t, port);
  const stream = session.request({ ':path': '/events' });
  const got = receive(stream);
  const sink = await source.sink;
  assert.equal(sink.write('data: 1\n\n'), true);
  await new Promise((resolve) => stream.once('data', resolve));
  assert.equal(listener.counts().streams, 1);
  sink.write('data: 2\n\n');
  sink.end();
  assert.equal((await got).body, 'data: 1\n\ndata: 2\n\n');
  assert.equal(source.closes(), 0, 'a producer that ended is not told to');
  assert.equal((await ask(session, { ':path': '/' })).status, 200);
  assert.equal(listener.counts().streams, 0);
});

for (const how of ['stream', 'connection'] as const) {
  test(`tells the producer once when the client gives up its ${how}`, async (t) => {
    const source = createSource();
    const { port, listener } = await serve(t, source.answer);
    const session = openSession(t, port);
    const stream = session.request({ ':path': '/' });
    stream.on('error', () => undefined);
    const sink = await source.sink;
    if (how === 'stream') stream.close(8);
    else session.destroy();
    await source.closed;
    assert.equal(sink.write('late'), false);
    sink.end();
    assert.equal(source.closes(), 1);
    assert.equal(listener.counts().streams, 0);
  });
}

test('cuts off a reader that is slower than its buffer, once, and leaves its other streams', async (t) => {
  const source = createSource();
  const { port, observed } = await serve(
    t,
    (given) => (given.target === '/events' ? source.answer() : echo(given)),
    {
      streamBufferBytesMax: 300_000,
    },
  );
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/events')));
  const sink = await source.sink;
  let ready = 0;
  sink.onReady(() => {
    ready += 1;
  });
  while (source.closes() === 0) {
    sink.write('x'.repeat(100_000));
    await turn();
  }
  assert.equal(await client.resetCode(1), 8);
  assert.equal(observed.filter(({ kind }) => kind === 'stream-cut').length, 1);
  assert.equal(ready, 0);
});

for (const ended of [false, true]) {
  test(`cuts off a reader that takes nothing of a stream that ${ended ? 'has ended' : 'goes on'}`, async (t) => {
    const source = createSource();
    const { port, observed, listener } = await serve(
      t,
      (given) => (given.target === '/events' ? source.answer() : echo(given)),
      { answerStallTimeoutMs: 100 },
    );
    const client = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    client.send(request(1, get('/events')));
    const sink = await source.sink;
    // More than a window that nobody opens.
    for (let written = 0; written < 128 * 1024; written += 16_000) sink.write('x'.repeat(16_000));
    if (ended) sink.end();
    assert.equal(await client.resetCode(1), 8);
    assert.equal(listener.counts().streams, 0);
    const cuts = observed.flatMap((fact) => (fact.kind === 'stream-cut' ? [fact.why] : []));
    assert.deepEqual(cuts, ended ? [] : ['stalled']);
    assert.equal(source.closes(), ended ? 0 : 1);
    client.send(request(3, get('/')));
    await client.frame(frameTypes.headers, 3);
  });
}

test('calls a producer that was held back when the client has taken what waited', async (t) => {
  const source = createSource();
  const { port } = await serve(t, source.answer);
  const stream = openSession(t, port).request({ ':path': '/' });
  const sink = await source.sink;
  const ready = new Promise<void>((resolve) => sink.onReady(resolve));
  while (sink.write('x'.repeat(50_000))) await turn();
  stream.resume();
  await ready;
});

test('answers 503 with Retry-After to a stream over the limit', async (t) => {
  const source = createSource();
  const { port } = await serve(t, source.answer, { streamsMax: 1 });
  const session = openSession(t, port);
  session.request({ ':path': '/' }).on('error', () => undefined);
  await source.sink;
  const refused = await ask(session, { ':path': '/' });
  assert.equal(refused.status, 503);
  assert.ok(refused.rawFields.includes('retry-after'));
});

test('drains: GOAWAY, what is under way is answered, streams end, nothing is cut', async (t) => {
  const source = createSource();
  const held = Promise.withResolvers<void>();
  let handled = 0;
  const { port, listener } = await serve(
    t,
    async (given) => {
      handled += 1;
      if (given.target === '/events') return source.answer();
      await held.promise;
      return echo(given);
    },
    { drainIdleMs: 20 },
  );
  const session = openSession(t, port);
  const events = receive(session.request({ ':path': '/events' }));
  const slow = ask(session, { ':path': '/slow' });
  await source.sink;
  while (handled < 2) await turn();
  const idle = (await openRawSession(port)).start();
  await idle.frame(frameTypes.settings);
  const told = new Promise<void>((resolve) => session.once('goaway', () => resolve()));
  const drained = listener.drain(10_000);
  await told;
  assert.equal((await events).rstCode, 0);
  assert.equal(source.closes(), 1);
  assert.equal(await idle.goawayCode(), 0);
  await idle.closed;
  idle.socket.end();
  held.resolve();
  assert.equal((await slow).body, 'GET /slow');
  assert.equal(await drained, 0);
});

test('answers a request that was on its way when the drain began, and names the last stream', async (t) => {
  const { port, listener } = await serve(t, echo, { drainIdleMs: 2000 });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/1')));
  await client.frame(frameTypes.data, 1);
  const drained = listener.drain(20_000);
  client.send(request(3, get('/2')));
  assert.equal((await client.frame(frameTypes.data, 3)).payload.toString(), 'GET /2');
  assert.equal((await client.frame(frameTypes.goaway)).payload.readUInt32BE(0), 3);
  client.socket.end();
  assert.equal(await drained, 0);
});

test('answers what was asked before the client closed its side, and ends what would stay open', async (t) => {
  const source = createSource();
  const held = Promise.withResolvers<void>();
  let handled = 0;
  const { port } = await serve(t, async (given) => {
    handled += 1;
    if (given.target === '/events') return source.answer();
    await held.promise;
    return echo(given);
  });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/events')), request(3, get('/slow')));
  while (handled < 2) await turn();
  await source.sink;
  client.socket.end();
  await source.closed;
  held.resolve();
  assert.equal((await client.frame(frameTypes.data, 3)).payload.toString(), 'GET /slow');
  await client.closed;
});

test('cuts off what is left at the bound of a drain', async (t) => {
  const { port, listener } = await serve(t, () => new Promise<Response>(() => undefined));
  const session = openSession(t, port);
  const got = ask(session, { ':path': '/' });
  while (listener.counts().requests === 0) await turn();
  assert.equal(await listener.drain(30), 1);
  assert.equal((await got).status, 0);
});
