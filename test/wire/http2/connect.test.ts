/** CONNECT, extended CONNECT and requests for other servers over HTTP/2, as far as the server has to do with them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Conversation, ConversationPeer, Request, Response } from '../../../src/http/message.ts';
import type { ClientSide, HttpProxy, ProxyReply } from '../../../src/tunnel/proxy-call.ts';
import { echo, serve, text } from '../server/serve.ts';
import { ask, field, openSession, receive } from './http2-client.ts';

const target = { ':method': 'CONNECT', ':authority': 'shop.test:443' };
const extended = { ':method': 'CONNECT', ':scheme': 'http', ':authority': 'a', ':path': '/realtime' };

/** A proxy that opens what `open` says, and remembers what it was asked. */
function createProxy(open: (signal: AbortSignal) => Promise<ProxyReply>) {
  const asked: Request[] = [];
  const take: HttpProxy['connect'] = ({ request, signal }) => {
    asked.push(request);
    return open(signal);
  };
  const proxy: HttpProxy = {
    connect: take,
    udp: take,
    isForeign: ({ target: given }) => given.startsWith('http://other.test'),
    forward: async ({ request, content, answer, interim }) => {
      asked.push(request);
      interim(103, ['Link', '</a>; rel=preload']);
      let bytes = 0;
      for await (const chunk of content) bytes += (chunk as Buffer).length;
      answer(201, ['X-From', 'other', 'Connection', 'close', 'Transfer-Encoding', 'chunked']).end(`${bytes}`);
      return undefined;
    },
    drain: () => Promise.resolve(),
    count: () => 0,
  };
  return { proxy, asked };
}

const upperCase = ({ duplex }: ClientSide) => {
  duplex.on('data', (chunk: Buffer) => duplex.write(chunk.toString().toUpperCase()));
  duplex.on('end', () => duplex.end());
};

test('answers 405 with Allow to CONNECT, 501 to protocols that it does not know, where nothing leads elsewhere', async (t) => {
  const { port } = await serve(t, () => assert.fail('the method of the client is unknown'));
  const session = openSession(t, port);
  const plain = await receive(session.request(target));
  assert.deepEqual([plain.status, field(plain, 'allow')], [405, 'GET, HEAD, POST, OPTIONS']);
  // h2c: HAProxy makes it of `Upgrade: h2c`.
  for (const protocol of ['connect-udp', 'connect-ip', 'bytestream', 'h2c']) {
    const got = await receive(session.request({ ...extended, ':protocol': protocol }));
    const { code, error } = JSON.parse(got.body) as { readonly code: string; readonly error: string };
    assert.deepEqual([got.status, code], [501, 'protocol_unknown']);
    assert.match(error, /a proxy that makes it of Upgrade must remove that field/);
  }
});

for (const [what, fields] of [
  ['CONNECT', target],
  ['connect-udp', { ...extended, ':protocol': 'connect-udp' }],
] as const) {
  test(`answers 200 to ${what} and joins the stream, whose end is not the end of the other side`, async (t) => {
    const { proxy, asked } = createProxy(async () => ({
      fields: ['X-Tunnel', 'yes'],
      join: upperCase,
      abandon: () => assert.fail('the client was there'),
    }));
    const { port } = await serve(t, echo, {}, { proxy });
    const stream = openSession(t, port).request(fields);
    const got = receive(stream);
    stream.end('early data');
    const { status, body, rawFields } = await got;
    assert.deepEqual([status, body], [200, 'EARLY DATA']);
    assert.equal(field({ rawFields }, 'x-tunnel'), 'yes');
    assert.equal(field({ rawFields }, 'content-length'), undefined);
    assert.equal(asked[0]?.method, what === 'CONNECT' ? 'CONNECT' : 'GET');
    assert.equal(asked[0]?.target, what === 'CONNECT' ? 'shop.test:443' : '/realtime');
    assert.equal(asked[0]?.protocol, what === 'CONNECT' ? undefined : what);
  });
}

test('resets a stream whose tunnel broke with CONNECT_ERROR', async (t) => {
  const { proxy } = createProxy(async () => ({
    fields: [],
    join: ({ duplex, reset }) => duplex.once('data', reset),
    abandon: () => undefined,
  }));
  const { port } = await serve(t, echo, {}, { proxy });
  const stream = openSession(t, port).request(target);
  const got = receive(stream);
  stream.write('x');
  assert.equal((await got).rstCode, 10);
});

test('sends what a tunnel is refused with, and takes further streams', async (t) => {
  const refused = { ...text(403, 'no'), code: 'forbidden' } satisfies Response;
  const { proxy } = createProxy(async () => ({ refused }));
  const { port, listener } = await serve(t, echo, {}, { proxy });
  const session = openSession(t, port);
  const got = await receive(session.request(target));
  assert.deepEqual([got.status, got.body], [403, 'no']);
  assert.equal((await ask(session, { ':path': '/' })).status, 200);
  assert.equal(listener.counts().requests, 0);
});

test('aborts what opens a tunnel when the client has gone, and gives it back', async (t) => {
  const opening = Promise.withResolvers<AbortSignal>();
  const abandoned = Promise.withResolvers<void>();
  const { proxy } = createProxy(async (signal) => {
    opening.resolve(signal);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    return { fields: [], join: () => assert.fail('nobody is there'), abandon: () => abandoned.resolve() };
  });
  const { port, listener } = await serve(t, echo, {}, { proxy });
  const stream = openSession(t, port).request(target);
  stream.on('error', () => undefined);
  await opening.promise;
  stream.close(8);
  await abandoned.promise;
  assert.equal(listener.counts().requests, 0);
});

test('forwards a request with Proxy-Authorization for another server, and serves its own', async (t) => {
  const { proxy, asked } = createProxy(() => Promise.reject(new Error('no tunnel was asked for')));
  const { port } = await serve(t, echo, {}, { proxy });
  const session = openSession(t, port);
  const credential = { 'proxy-authorization': 'Basic eDo=' };
  const other = { ':path': '/x?y', ':authority': 'other.test', ':method': 'POST' };
  const got = await ask(session, { ...other, ...credential }, 'hello');
  assert.deepEqual([got.status, got.body, got.interim], [201, '5', [103]]);
  assert.deepEqual(got.rawFields.slice(0, 2), ['x-from', 'other']);
  assert.equal(field(got, 'transfer-encoding'), undefined);
  assert.equal(asked[0]?.target, 'http://other.test/x?y');
  assert.equal(
    (await ask(session, { ...other, ':authority': 'own.test', ...credential }, '')).body,
    'POST /x?y',
  );
  assert.equal((await ask(session, other, '')).body, 'POST /x?y');
});

/** A conversation that greets, echoes and remembers its peer. */
function createConversation() {
  const opened = Promise.withResolvers<ConversationPeer>();
  const closed = Promise.withResolvers<void>();
  const conversation: Conversation = {
    subprotocol: undefined,
    open: (peer) => {
      opened.resolve(peer);
      peer.send('hello');
      return { onMessage: (message) => void peer.send(message), onClosed: () => closed.resolve() };
    },
  };
  const answer = (): Response => ({ status: 101, fields: ['X-Given', '1'], content: null, conversation });
  return { answer, opened: opened.promise, closed: closed.promise };
}

const websocket = { ...extended, ':protocol': 'websocket', 'sec-websocket-version': '13' };

async function firstBytes(stream: Duplex, length: number): Promise<Buffer> {
  let all = Buffer.alloc(0);
  while (all.length < length) {
    all = Buffer.concat([all, await new Promise<Buffer>((resolve) => stream.once('data', resolve))]);
  }
  return all;
}

test('hands an extended CONNECT for a WebSocket on as GET, answers 200 and makes the stream a conversation', async (t) => {
  const { answer, closed } = createConversation();
  const seen: Request[] = [];
  const { port, listener } = await serve(t, (given) => {
    seen.push(given);
    return answer();
  });
  const stream = openSession(t, port).request(websocket);
  stream.on('error', () => undefined);
  const head = new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve));
  assert.equal((await firstBytes(stream, 7)).toString('latin1'), '\x81\x05hello');
  const fields = await head;
  assert.deepEqual([fields[':status'], fields['x-given'], fields['api-version']], [200, '1', '1']);
  assert.deepEqual([seen[0]?.method, seen[0]?.target, seen[0]?.protocol], ['GET', '/realtime', 'websocket']);
  assert.equal(listener.counts().sockets, 1);
  stream.close(8);
  await closed;
  while (listener.counts().sockets > 0) await new Promise((resolve) => setImmediate(resolve));
});

for (const [what, key, accept] of [
  [
    'answers the key of RFC 6455 §1.3, which Envoy passes on',
    'dGhlIHNhbXBsZSBub25jZQ==',
    's3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
  ],
  ['makes nothing of an absent key', undefined, undefined],
] as const) {
  test(`${what}, in the 200 to an extended CONNECT for a WebSocket`, async (t) => {
    const { answer } = createConversation();
    const { port } = await serve(t, answer);
    const fields = key === undefined ? websocket : { ...websocket, 'sec-websocket-key': key };
    const stream = openSession(t, port).request(fields);
    stream.on('error', () => undefined);
    const [head] = (await once(stream, 'response')) as [Record<string, unknown>];
    assert.deepEqual([head[':status'], head['sec-websocket-accept']], [200, accept]);
    stream.close(8);
  });
}

test('closes a conversation whose client had ended its side before it was open', async (t) => {
  const { answer, closed } = createConversation();
  const { port } = await serve(t, async () => {
    await pause(20);
    return answer();
  });
  const session = openSession(t, port);
  await once(session, 'remoteSettings');
  const stream = session.request(websocket);
  stream.on('error', () => undefined);
  stream.resume().end();
  await closed;
});

test('answers 503 to a WebSocket over the limit, and sends other answers as they are', async (t) => {
  const { answer } = createConversation();
  const { port } = await serve(t, (given) => (given.target === '/realtime' ? answer() : text(403, 'no')), {
    realtimeSocketsMax: 0,
  });
  const session = openSession(t, port);
  const full = await receive(session.request(websocket));
  assert.deepEqual([full.status, JSON.parse(full.body).code], [503, 'unavailable']);
  assert.ok(field(full, 'retry-after') !== undefined);
  const refused = await receive(session.request({ ...websocket, ':path': '/other' }));
  assert.deepEqual([refused.status, refused.body], [403, 'no']);
});

test('closes WebSockets with 1001 when it drains', async (t) => {
  const { answer, opened } = createConversation();
  const { port, listener } = await serve(t, answer, { realtimeCloseMs: 40 });
  const stream = openSession(t, port).request(websocket);
  stream.on('error', () => undefined);
  await opened;
  await firstBytes(stream, 7);
  const drained = listener.drain(5_000);
  const close = await firstBytes(stream, 4);
  assert.equal(close[0], 0x88);
  assert.equal(close.readUInt16BE(2), 1001);
  stream.end();
  assert.equal(await drained, 0);
});
