/** What an Upgrade over HTTP/1.1 comes to (§4.13): a WebSocket on either port, else the answer without it and the end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import type { Request, Response } from '../../../src/http/message.ts';
import { readWebSocketHandshake } from '../../../src/http/syntax/websocket-handshake.ts';
import { countContent, echo, portKinds, serve, text } from './serve.ts';

const handshake = (target = '/realtime', more = '') =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${more}\r\n`;
/** A masked text frame whose mask is zero. */
const frame = (message: string) => `\x81${String.fromCharCode(0x80 | message.length)}\0\0\0\0${message}`;

/** Says back what it is told, on `/realtime`; everything else is echo's. */
function converse(request: Request): Response {
  if (request.target !== '/realtime') return echo(request);
  if (readWebSocketHandshake(request).kind !== 'sound') return text(400, 'malformed');
  return {
    status: 101,
    fields: ['X-Test', '1'],
    content: null,
    route: '/realtime',
    conversation: {
      subprotocol: undefined,
      open: (peer) => ({ onMessage: (message) => peer.send(message), onClosed: () => undefined }),
    },
  };
}

for (const kind of portKinds) {
  test(`opens a WebSocket, over ${kind}, and counts it until it has closed`, async (t) => {
    const { port, listener, observed } = await serve(t, converse, {}, { kind });
    const scheme = kind === 'TLS' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://127.0.0.1:${port}/realtime`, { rejectUnauthorized: false });
    t.after(() => socket.terminate());
    const [answer] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')]);
    assert.equal(answer[0].headers['x-test'], '1');
    assert.equal(answer[0].headers['api-version'], '1');
    assert.ok(answer[0].headers.date);
    socket.send('hello');
    const [message] = await once(socket, 'message');
    assert.equal(String(message), 'hello');
    assert.deepEqual(
      { ...listener.counts() },
      { connections: 1, requests: 0, streams: 0, sockets: 1, tunnels: 0 },
    );
    socket.close(1000);
    await once(socket, 'close');
    while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(listener.counts().sockets, 0);
    const answered = observed.flatMap((fact) =>
      fact.kind === 'answered' ? [[fact.route, fact.status]] : [],
    );
    assert.deepEqual(answered, [['/realtime', 101]]);
  });

  test(`takes octets behind a handshake for the first frames, over ${kind}`, async (t) => {
    const { open } = await serve(t, converse, {}, { kind });
    const client = (await open()).send(`${handshake()}${frame('early')}`);
    assert.equal((await client.answer()).status, 101);
    assert.equal(await client.until('early'), '\x81\x05early');
  });

  test(`answers a request to upgrade as an ordinary one where nobody converses, and closes, over ${kind}`, async (t) => {
    const { open } = await serve(t, converse, {}, { kind });
    const client = (await open()).send(handshake('/other'));
    const answer = await client.answer();
    assert.equal(answer.body, 'GET /other');
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
  });

  test(`takes no octets behind an Upgrade that nobody took for a request, over ${kind}`, async (t) => {
    const seen: string[] = [];
    const record = (request: Request) => {
      seen.push(request.target);
      return text(200, 'x');
    };
    const { open } = await serve(t, record, {}, { kind });
    for (const protocol of ['websocket', 'TLS/1.3, other']) {
      seen.length = 0;
      const client = (await open()).send(
        `${handshake('/first').replace('websocket', protocol)}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`,
      );
      await client.answer();
      client.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
      assert.equal(await client.closed, 'end');
      assert.equal(client.received, '');
      assert.deepEqual(seen, ['/first']);
    }
  });
}

test('refuses an unsound handshake with the answer of the resource', async (t) => {
  const { open } = await serve(t, converse);
  const client = (await open()).send(handshake().replace('AAAA', 'A'));
  assert.equal((await client.answer()).status, 400);
  assert.equal(await client.closed, 'end');
});

test('answers 503 with Retry-After to more WebSockets than may be open', async (t) => {
  const { open } = await serve(t, converse, { realtimeSocketsMax: 1 });
  const first = (await open()).send(handshake());
  assert.equal((await first.answer()).status, 101);
  const second = (await open()).send(handshake());
  const refused = await second.answer();
  assert.equal(refused.status, 503);
  assert.ok(refused.fields.has('retry-after'));
  assert.equal(await second.closed, 'end');
});

test('closes WebSockets with 1001 when it drains, and cuts what stays at its bound', async (t) => {
  const { open, listener, port } = await serve(t, converse);
  const polite = new WebSocket(`ws://127.0.0.1:${port}/realtime`);
  await once(polite, 'open');
  const closed = once(polite, 'close');
  assert.equal(await listener.drain(5_000), 0);
  assert.equal((await closed)[0], 1001);
  assert.equal(listener.counts().sockets, 0);
  await assert.rejects(open());
});

test('hands over the connection after the answers that are owed before it', async (t) => {
  const first = Promise.withResolvers<Response>();
  const { open } = await serve(t, (request) =>
    request.target === '/first' ? first.promise : converse(request),
  );
  const client = (await open()).send(`GET /first HTTP/1.1\r\nHost: a\r\n\r\n${handshake()}${frame('hi')}`);
  await (await open()).send('GET /other HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(client.received, '');
  first.resolve(text(200, 'first'));
  assert.equal((await client.answer()).body, 'first');
  assert.equal((await client.answer()).status, 101);
  assert.equal(await client.until('hi'), '\x81\x02hi');
});

test('upgrades no connection that ends with an earlier answer', async (t) => {
  const { open } = await serve(t, converse);
  const client = (await open()).send(`GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n${handshake()}`);
  assert.equal((await client.answer()).body, 'GET /a');
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
});

for (const together of [true, false]) {
  test(`reads the content of an Upgrade that was not taken ${together ? 'with' : 'after'} its fields`, async (t) => {
    const { open } = await serve(t, countContent(100));
    const head = handshake().replace('GET', 'POST').replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\n');
    const client = await open();
    if (together) client.send(`${head}hello`);
    else {
      client.send(head);
      await (await open()).send('@\r\n\r\n').answer();
      client.send('hello');
    }
    assert.equal((await client.answer()).body, '5');
    assert.equal(await client.closed, 'end');
  });
}

test('outlives clients that reset the connection while their upgrade is decided', async (t) => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const { open, listener } = await serve(t, async (request) => {
    asked.resolve();
    await answer.promise;
    return converse(request);
  });
  const client = (await open()).send(handshake());
  await asked.promise;
  client.socket.resetAndDestroy();
  answer.resolve();
  while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listener.counts().sockets, 0);
});

test('refuses connect-ip, to which there is no answer without the Upgrade', async (t) => {
  const { open } = await serve(t, echo);
  const client = (await open()).send(
    'GET /.well-known/masque/ip/*/*/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: connect-ip\r\n\r\n',
  );
  const answer = await client.answer();
  assert.equal(answer.status, 501);
  assert.equal(JSON.parse(answer.body).code, 'protocol_unknown');
  assert.equal(await client.closed, 'end');
});
