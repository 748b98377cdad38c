/** Requests over HTTP/2 with prior knowledge: what the handler sees of them, their content, and the answers on the wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { endHeaders, frame, frameTypes, uint32 } from '../../../conduct/frames.ts';
import type { Request } from '../../../src/http/message.ts';
import { uncountedBytesMax } from '../../../src/server/limits.ts';
import { countContent, echo, serve, text } from '../server/serve.ts';
import { ask, field, openSession, receive } from './http2-client.ts';
import { get, openRawSession, request } from './raw-session.ts';

const post = { ':method': 'POST', ':path': '/' };

test('hands on method, target, version and fields as HTTP/1.1 would have them', async (t) => {
  const seen: Request[] = [];
  const { port } = await serve(t, (given) => {
    seen.push(given);
    return text(200, 'x');
  });
  const session = openSession(t, port);
  await ask(session, {
    ':path': '/a?b=1',
    ':authority': 'shop.test',
    'x-list': ['1', '2'],
    cookie: ['a=1', 'b=2'],
  });
  const [given] = seen;
  assert.equal(given?.method, 'GET');
  assert.equal(given.target, '/a?b=1');
  assert.equal(given.version, '2.0');
  assert.equal(given.protocol, undefined);
  assert.deepEqual(given.rawFields, [
    'host',
    'shop.test',
    'x-list',
    '1',
    'x-list',
    '2',
    'cookie',
    'a=1; b=2',
  ]);
  assert.equal(given.fields.cookie, 'a=1; b=2');
  assert.equal(given.peer, '127.0.0.1');
});

test('reads octets of values beyond ASCII as HTTP/1.1 does', async (t) => {
  const { port } = await serve(t, (given) => text(200, JSON.stringify(given.rawFields)));
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(request(1, get('/', ['x-name', '\xe9'])));
  assert.match((await client.frame(frameTypes.data, 1)).payload.toString('utf8'), /"x-name","é"/);
});

test('answers with lower-case names, Date, API-Version and Content-Length, and no field of a connection', async (t) => {
  const { port } = await serve(t, () => ({ ...text(200, 'hällo'), close: true }));
  const session = openSession(t, port);
  const got = await ask(session, { ':path': '/' });
  assert.equal(got.status, 200);
  assert.deepEqual(
    got.rawFields.filter((_each, index) => index % 2 === 0),
    ['content-type', 'api-version', 'x-content-type-options', 'date', 'content-length'],
  );
  assert.equal(field(got, 'content-length'), '6');
  assert.equal(Buffer.from(got.body, 'latin1').toString(), 'hällo');
  assert.equal(
    (await ask(session, { ':path': '/' })).status,
    200,
    'close of an answer leaves the connection',
  );
});

for (const [status, method, length] of [
  [200, 'HEAD', '5'],
  [204, 'GET', undefined],
  [304, 'GET', undefined],
] as const) {
  test(`answers ${status} to ${method} without content, Content-Length ${length ?? 'absent'}`, async (t) => {
    const { port } = await serve(t, () => ({ ...text(status, 'hello'), headOnly: method === 'HEAD' }));
    const got = await ask(openSession(t, port), { ':path': '/', ':method': method });
    assert.equal(got.status, status);
    assert.equal(got.body, '');
    assert.equal(field(got, 'content-length'), length);
  });
}

test('sends long content whole, as text and as octets', async (t) => {
  const bytes = 3_000_001;
  const { port } = await serve(t, (given) => {
    const content = 'é'.repeat((bytes - 1) / 2) + '!';
    return { status: 200, fields: [], content: given.target === '/text' ? content : Buffer.from(content) };
  });
  const session = openSession(t, port);
  for (const path of ['/text', '/octets']) {
    const got = await ask(session, { ':path': path });
    assert.equal(got.body.length, bytes);
    assert.equal(field(got, 'content-length'), String(bytes));
    assert.ok(got.body.endsWith('!'));
  }
});

test('reads content with and without Content-Length', async (t) => {
  const { port } = await serve(t, countContent(100));
  const session = openSession(t, port);
  assert.equal((await ask(session, post, 'hello')).body, '5');
  assert.equal((await ask(session, { ...post, 'content-length': '5' }, 'hello')).body, '5');
  assert.equal((await ask(session, post)).body, '0');
  assert.equal((await ask(session, post, '')).body, '0');
});

test('reads content late: what has come meanwhile, and none that has ended unread', async (t) => {
  const count = countContent(100);
  const { port } = await serve(t, async (request) => {
    await pause(20);
    return count(request);
  });
  const session = openSession(t, port);
  for (const content of ['hello', '', undefined])
    assert.equal((await ask(session, post, content)).body, String(content?.length ?? 0));
  const expecting = { ...post, expect: '100-continue' };
  assert.equal((await ask(session, expecting, '')).body, '0', 'sent without waiting for 100');
});

test('stops at the limit of content, answers 413, and ends the stream with NO_ERROR', async (t) => {
  const { port } = await serve(t, countContent(100), { unreadContentTimeoutMs: 20 });
  const client = (await openRawSession(port)).start();
  t.after(() => client.socket.destroy());
  client.send(
    request(1, [':method', 'POST', ':scheme', 'http', ':authority', 'a', ':path', '/'], endHeaders),
  );
  client.send(frame(frameTypes.data, 0, 1, Buffer.alloc(60)), frame(frameTypes.data, 0, 1, Buffer.alloc(60)));
  assert.equal((await client.frame(frameTypes.data, 1)).payload.toString(), 'content_too_large');
  assert.equal(await client.resetCode(1), 0);
  client.send(request(3, get('/')));
  await client.frame(frameTypes.data, 3);
});

test('refuses a length announced over the limit before it is sent, and without 100', async (t) => {
  const { port } = await serve(t, countContent(100));
  const session = openSession(t, port);
  const stream = session.request({ ...post, 'content-length': '101', expect: '100-continue' });
  const got = await receive(stream);
  assert.deepEqual([got.status, got.interim, got.rstCode], [413, [], 0]);
});

test('sends 100 when content that waits for it is read', async (t) => {
  const { port } = await serve(t, countContent(100));
  const stream = openSession(t, port).request({ ...post, expect: '100-continue' });
  stream.on('headers', () => stream.end('hello'));
  const got = await receive(stream);
  assert.deepEqual([got.status, got.interim, got.body], [200, [100], '5']);
});

test('answers after content that no operation reads, so that clients of node:http2 keep the connection', async (t) => {
  const { port } = await serve(t, echo);
  const session = openSession(t, port);
  for (const bytes of [2_000_000, 8_000_000, 8_000_000, 30_000_000]) {
    const got = await ask(session, post, 'x'.repeat(bytes));
    assert.deepEqual([got.status, got.body, got.rstCode], [200, 'POST /', 0], `${bytes} octets`);
  }
  assert.equal((await ask(session, { ':path': '/next' })).body, 'GET /next');
});

const patient = { unreadContentTimeoutMs: 600_000, contentGraceMs: 600_000, contentTimeoutMs: 600_000 };

test('gives back the room for what requests make before content that no operation reads has ended', async (t) => {
  const handler = async (given: Request) => {
    await given.memory?.makeRoom(Number.MAX_SAFE_INTEGER);
    return text(401, 'no');
  };
  const { port } = await serve(t, handler, patient);
  const session = openSession(t, port);
  const waiting = session.request(post);
  let isAnswered = false;
  waiting.on('response', () => (isAnswered = true));
  waiting.write('x');
  assert.equal((await ask(session, {})).status, 401);
  assert.equal(isAnswered, false);
});

test('keeps short answers alone back until content that no operation reads has ended', async (t) => {
  for (const [bytes, isWaiting] of [
    [uncountedBytesMax, true],
    [uncountedBytesMax + 1, false],
  ] as const) {
    const { port } = await serve(t, () => text(200, 'x'.repeat(bytes)), patient);
    const session = openSession(t, port);
    const stream = session.request(post);
    let isAnswered = false;
    stream.on('response', () => (isAnswered = true));
    stream.on('error', () => undefined).resume();
    stream.write('x');
    await ask(session, {});
    assert.equal(isAnswered, !isWaiting, `${bytes} octets`);
  }
});

for (const [what, limits, length, sent] of [
  ['silent', { unreadContentTimeoutMs: 20 }, undefined, 10],
  ['longer than the limit', { unreadContentBytesMax: 100, unreadContentTimeoutMs: 600_000 }, undefined, 101],
  ['announced longer', { unreadContentBytesMax: 100, unreadContentTimeoutMs: 600_000 }, '101', 0],
  ['slow', { contentTimeoutMs: 20, unreadContentTimeoutMs: 600_000 }, undefined, 0],
] as const)
  test(`answers, and ends the stream with NO_ERROR, where content that no operation reads is ${what}`, async (t) => {
    const { port } = await serve(t, echo, limits);
    const session = openSession(t, port);
    const stream = session.request({
      ...post,
      ...(length === undefined ? {} : { 'content-length': length }),
    });
    if (sent > 0) stream.write('x'.repeat(sent));
    const got = await receive(stream);
    assert.deepEqual([got.status, got.body, got.rstCode], [200, 'POST /', 0]);
    assert.equal((await ask(session, { ':path': '/next' })).body, 'GET /next');
  });

for (const [how, code] of [
  ['CANCEL', 8],
  ['NO_ERROR', 0],
] as const) {
  test(`takes content that ends with RST_STREAM ${how} for broken off`, async (t) => {
    const outcome = Promise.withResolvers<unknown>();
    const { port } = await serve(t, async (given) => {
      outcome.resolve(await given.readContent(100));
      return text(200, 'x');
    });
    const client = (await openRawSession(port)).start();
    t.after(() => client.socket.destroy());
    const head = [':method', 'POST', ':scheme', 'http', ':authority', 'a', ':path', '/'];
    client.send(request(1, head, endHeaders), frame(frameTypes.data, 0, 1, Buffer.from('hello')));
    // The connection answers a PING behind it: by then the handler reads.
    await client.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8))).frame(frameTypes.ping);
    await new Promise((resolve) => setImmediate(resolve));
    client.send(frame(frameTypes.rstStream, 0, 1, uint32(code)));
    assert.deepEqual(await outcome.promise, { ok: false, code: 'content_malformed' });
  });
}

test('answers 408 to content that stops coming', async (t) => {
  const { port } = await serve(t, countContent(100), { contentTimeoutMs: 60, contentGraceMs: 60 });
  const stream = openSession(t, port).request(post);
  stream.write('he');
  const got = await receive(stream);
  assert.deepEqual([got.status, got.rstCode], [408, 0]);
});

test('reports each answer once, and counts none as under way afterwards', async (t) => {
  const { port, observed, listener } = await serve(t, echo);
  const session = openSession(t, port);
  await Promise.all(Array.from({ length: 20 }, (_each, index) => ask(session, { ':path': `/${index}` })));
  assert.equal(observed.filter(({ kind }) => kind === 'answered').length, 20);
  assert.equal(listener.counts().requests, 0);
  assert.equal(listener.counts().connections, 1);
});

test('answers 500 with the id of the request when the handler fails', async (t) => {
  const { port, observed } = await serve(t, () => Promise.reject(new Error('defect')));
  const got = await ask(openSession(t, port), { ':path': '/' });
  assert.equal(got.status, 500);
  assert.equal(JSON.parse(got.body).code, 'internal');
  assert.equal(observed.filter(({ kind }) => kind === 'failed').length, 1);
});
