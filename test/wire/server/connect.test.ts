/**
 * CONNECT over HTTP/1.1 (§4.10) as far as the server has it: what it refuses itself, how it asks whoever opens tunnels, and what it hands over.
 * The one asked is a stand-in; tunnels have tests of their own (test/tunnel).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Response } from '../../../src/http/message.ts';
import type { ListenerOptions } from '../../../src/server/listener.ts';
import type { ClientSide, ProxyCall, ProxyReply } from '../../../src/tunnel/proxy-call.ts';
import { echo, portKinds, serve, text } from './serve.ts';

type StandIn = {
  readonly proxy: NonNullable<ListenerOptions['proxy']>;
  readonly calls: ProxyCall[];
  readonly joined: Promise<ClientSide>;
  readonly abandoned: Promise<void>;
};

/** Answers with what `decide` says; without it every tunnel is opened at once. */
function standIn(decide?: (call: ProxyCall) => Promise<Response | undefined>): StandIn {
  const calls: ProxyCall[] = [];
  const joined = Promise.withResolvers<ClientSide>();
  const abandoned = Promise.withResolvers<void>();
  const ask = async (call: ProxyCall): Promise<ProxyReply> => {
    calls.push(call);
    const refused = await decide?.(call);
    if (refused !== undefined) return { refused };
    return { fields: ['X-Tunnel', '1'], join: joined.resolve, abandon: abandoned.resolve };
  };
  return {
    calls,
    joined: joined.promise,
    abandoned: abandoned.promise,
    proxy: {
      connect: ask,
      udp: ask,
      isForeign: ({ target }) => target.startsWith('http://other'),
      forward: async (call) => {
        calls.push(call);
        const chunks: Uint8Array[] = [];
        for await (const chunk of call.content) chunks.push(chunk);
        call.answer(299, ['X-Forwarded', call.request.target]).end(Buffer.concat(chunks));
        return undefined;
      },
      drain: async () => undefined,
      count: () => calls.length,
    },
  };
}

const connect = (target = 'a:443', more = 'Host: a:443\r\n') => `CONNECT ${target} HTTP/1.1\r\n${more}\r\n`;

for (const target of ['a:443', 'a', '/x', 'http://a/']) {
  test(`answers 405 with Allow to CONNECT ${target} where nothing leads elsewhere`, async (t) => {
    const { open } = await serve(t, echo);
    const client = (await open()).send(`${connect(target)}GET / HTTP/1.1\r\nHost: a\r\n\r\n`);
    const answer = await client.answer();
    assert.equal(answer.status, 405);
    assert.equal(answer.fields.get('allow'), 'GET, HEAD, POST, OPTIONS');
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(JSON.parse(answer.body).code, 'method_not_allowed');
    assert.equal(await client.closed, 'end');
    assert.equal(client.received, '');
  });
}

const refusals = [
  { name: 'another version', send: 'CONNECT a:1 HTTP/2.0\r\nHost: a\r\n\r\n', status: 505 },
  { name: 'Content-Length', send: connect('a:1', 'Host: a\r\nContent-Length: 2\r\n'), status: 400 },
  { name: 'Content-Length 0', send: connect('a:1', 'Host: a\r\nContent-Length: 0\r\n'), status: 400 },
  {
    name: 'Transfer-Encoding',
    send: connect('a:1', 'Host: a\r\nTransfer-Encoding: chunked\r\n'),
    status: 400,
  },
  { name: 'no Host', send: connect('a:1', ''), status: 400 },
  { name: 'two Host fields', send: connect('a:1', 'Host: a:1\r\nHost: a:1\r\n'), status: 400 },
  { name: 'a Host that is none', send: connect('a:1', 'Host: a b\r\n'), status: 400 },
];

for (const { name, send, status } of refusals) {
  test(`answers ${status} to CONNECT with ${name}, asks nobody, and closes`, async (t) => {
    const { proxy, calls } = standIn();
    const { open } = await serve(t, echo, {}, { proxy });
    const client = (await open()).send(`${send}smuggled`);
    const answer = await client.answer();
    assert.equal(answer.status, status);
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
    assert.equal(client.received, '');
    assert.equal(calls.length, 0);
  });
}

for (const kind of portKinds) {
  test(`hands over the connection and what came behind the request, over ${kind}`, async (t) => {
    const { proxy, joined, calls } = standIn();
    const { open, observed } = await serve(t, echo, {}, { proxy, kind });
    const client = (await open()).send(`${connect('b:443', 'Host: other\r\n')}early`);
    const side = await joined;
    assert.equal(Buffer.from(side.head).toString(), 'early');
    const head = await client.until('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 200 Connection established\r\nX-Tunnel: 1\r\nAPI-Version: 1\r\nDate: /);
    assert.doesNotMatch(head, /Content-Length|Transfer-Encoding|Connection:/i);
    side.duplex.on('data', (chunk) => side.duplex.write(chunk));
    side.duplex.on('end', () => side.duplex.end('late'));
    await client.send('echo').until('echo');
    client.socket.end();
    await client.until('late');
    assert.equal(await client.closed, 'end');
    const [call] = calls;
    assert.equal(call?.request.target, 'b:443', 'the target counts where Host differs');
    assert.deepEqual(
      observed.flatMap((fact) => (fact.kind === 'answered' ? [[fact.method, fact.status]] : [])),
      [['CONNECT', 200]],
    );
  });

  test(`resets the connection when the tunnel breaks, over ${kind}`, async (t) => {
    const { proxy, joined } = standIn();
    const { open, listener } = await serve(t, echo, {}, { proxy, kind });
    const client = (await open()).send(connect());
    const side = await joined;
    await client.until('\r\n\r\n');
    side.duplex.on('error', () => undefined);
    side.reset();
    assert.equal(await client.closed, 'reset');
    while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test(`answers a refusal as an ordinary one and closes, over ${kind}`, async (t) => {
    const { proxy } = standIn(async () => text(407, 'who?'));
    const { open } = await serve(t, echo, {}, { proxy, kind });
    const client = (await open()).send(`${connect()}early`);
    const answer = await client.answer();
    assert.equal(answer.status, 407);
    assert.equal(answer.body, 'who?');
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
  });
}

test('gives the tunnel what came while it was decided', async (t) => {
  const go = Promise.withResolvers<undefined>();
  const { proxy, joined, calls } = standIn(() => go.promise);
  const { open } = await serve(t, echo, {}, { proxy });
  const client = (await open()).send(`${connect()}one `);
  while (calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  client.send('two ');
  await (await open()).send('@\r\n\r\n').answer();
  client.socket.end('three');
  await (await open()).send('@\r\n\r\n').answer();
  go.resolve(undefined);
  const { head, duplex } = await joined;
  const chunks: Buffer[] = [Buffer.from(head)];
  duplex.on('data', (chunk: Buffer) => chunks.push(chunk));
  // That it ended before anybody read it is not lost either.
  await new Promise((resolve) => duplex.once('end', resolve));
  assert.equal(Buffer.concat(chunks).toString(), 'one two three');
  duplex.end();
});

test('gives back what was opened for a client that is gone meanwhile', async (t) => {
  const go = Promise.withResolvers<undefined>();
  const { proxy, abandoned, calls } = standIn((call) => {
    call.signal.addEventListener('abort', () => go.resolve(undefined));
    return go.promise;
  });
  const { open, listener } = await serve(t, echo, {}, { proxy });
  const client = (await open()).send(connect());
  while (calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  client.socket.resetAndDestroy();
  await abandoned;
  while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listener.counts().requests, 0);
});

test('answers CONNECT after the answers that are owed before it', async (t) => {
  const first = Promise.withResolvers<Response>();
  const { proxy, joined } = standIn();
  const { open } = await serve(
    t,
    (request) => (request.target === '/first' ? first.promise : text(200, 'x')),
    { keepAliveTimeoutMs: 50 },
    { proxy },
  );
  const client = (await open()).send(`GET /first HTTP/1.1\r\nHost: a\r\n\r\n${connect()}early`);
  await (await open()).send('GET /other HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(client.received, '');
  first.resolve(text(200, 'first'));
  assert.equal((await client.answer()).body, 'first');
  const { head, duplex } = await joined;
  await client.until('\r\n\r\n');
  assert.equal(Buffer.from(head).toString(), 'early');
  assert.equal((duplex as typeof client.socket).timeout ?? 0, 0, 'no timer of node:http is left');
  duplex.on('data', (chunk) => duplex.end(chunk));
  await client.send('ping').until('ping');
});

test('opens connect-udp with 101', async (t) => {
  const { proxy, joined } = standIn();
  const { open } = await serve(t, echo, {}, { proxy });
  const client = (await open()).send(
    'GET https://a/.well-known/masque/udp/b/443/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: connect-udp\r\n\r\ncapsule',
  );
  const { head, duplex } = await joined;
  assert.equal(Buffer.from(head).toString(), 'capsule');
  const answer = await client.answer();
  assert.equal(answer.status, 101);
  assert.equal(answer.fields.get('upgrade'), 'connect-udp');
  assert.equal(answer.fields.get('connection'), 'Upgrade');
  assert.equal(answer.fields.get('x-tunnel'), '1');
  duplex.end('back');
  await client.until('back');
});

test('answers pipelined requests in order, forwarded and its own, and closes with the last that asks for it', async (t) => {
  const { proxy } = standIn();
  const { open } = await serve(t, echo, {}, { proxy });
  const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  const client = (await open()).send(
    get('http://other/1') + get('http://other/2') + get('/own', 'Connection: close\r\n') + get('/after'),
  );
  const answers = [await client.answer(), await client.answer(), await client.answer()];
  assert.deepEqual(
    answers.map(({ body, fields }) => [fields.get('x-forwarded') ?? body, fields.get('connection')]),
    [
      ['http://other/1', 'keep-alive'],
      ['http://other/2', 'keep-alive'],
      ['GET /own', 'close'],
    ],
  );
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '', 'nothing is answered after it');
});

test('forwards a request for another server, and keeps the connection', async (t) => {
  const { proxy } = standIn();
  const { open } = await serve(t, echo, {}, { proxy });
  const client = (await open()).send(
    'POST http://other/x HTTP/1.1\r\nHost: other\r\nContent-Length: 5\r\n\r\nhello',
  );
  const answer = await client.answer();
  assert.equal(answer.status, 299);
  assert.equal(answer.fields.get('x-forwarded'), 'http://other/x');
  assert.equal(answer.body, 'hello');
  assert.equal(answer.fields.get('connection'), 'keep-alive');
  const again = await client.send('GET /own HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(again.body, 'GET /own');
  const bare = await (await open()).send('GET http://other/y HTTP/1.1\r\nHost: other\r\n\r\n').answer();
  assert.equal(bare.status, 299);
  const websocket = await (await open())
    .send('GET http://other/z HTTP/1.1\r\nHost: other\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    .answer();
  assert.equal(websocket.status, 299);
});
