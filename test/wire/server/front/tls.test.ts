/** The port over TLS (§4.13): ALPN, cleartext that comes there, handshakes that fail, two ports under one set of bounds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import type { Handler } from '../../../../src/http/message.ts';
import type { Observation } from '../../../../src/observe/observation.ts';
import type { ServerLimits } from '../../../../src/server/limits.ts';
import { createListener } from '../../../../src/server/listener.ts';
import { fixedCertificate } from '../certificates.ts';
import { openRaw, openRawTls } from '../raw-client.ts';
import { echo, serve } from '../serve.ts';

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const overTls = { kind: 'TLS' } as const;

async function shake(t: TestContext, port: number, options: ConnectionOptions = {}) {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

for (const [offer, chosen] of [
  [['h2', 'http/1.1'], 'h2'],
  [['http/1.1', 'h2'], 'h2'],
  [['http/1.1'], 'http/1.1'],
  [[], false],
] as const) {
  test(`chooses ${chosen || 'nothing'} by ALPN where the client offers ${offer.join(', ') || 'nothing'}`, async (t) => {
    const { port } = await serve(t, echo, {}, overTls);
    const socket = await shake(t, port, offer.length > 0 ? { ALPNProtocols: [...offer] } : {});
    assert.equal(socket.alpnProtocol, chosen);
    if (chosen === 'h2') {
      const session = connectHttp2('https://a', { createConnection: () => socket });
      const stream = session.request({ ':path': '/two' });
      assert.equal((await once(stream, 'response'))[0][':status'], 200);
      session.destroy();
    } else {
      socket.write(get);
      assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200/);
    }
  });
}

test('ends the handshake of a client that offers neither', async (t) => {
  const { port, observed } = await serve(t, echo, {}, overTls);
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['spdy/3'] });
  const [error] = await once(socket, 'error');
  assert.match(String(error.code), /NO_APPLICATION_PROTOCOL/);
  while (observed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(observed, [{ kind: 'client-error', code: 'tls_failed', status: 0, peer: '127.0.0.1' }]);
});

test('refuses TLS before 1.2', async (t) => {
  const { port } = await serve(t, echo, {}, overTls);
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...old });
  assert.match(String((await once(socket, 'error'))[0].code), /PROTOCOL_VERSION/);
  assert.equal((await shake(t, port, { maxVersion: 'TLSv1.2' })).getProtocol(), 'TLSv1.2');
  assert.equal((await shake(t, port)).getProtocol(), 'TLSv1.3');
});

test('says in cleartext to a request in cleartext that the port speaks TLS', async (t) => {
  const { port, observed } = await serve(t, echo, {}, overTls);
  const client = (await openRaw(port)).send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n`);
  t.after(() => client.destroy());
  const answer = await client.answer();
  assert.equal(answer.status, 400);
  assert.deepEqual(JSON.parse(answer.body), {
    error: 'this port requires TLS: use https',
    code: 'message_invalid',
  });
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
  assert.deepEqual(observed, [
    { kind: 'client-error', code: 'message_invalid', status: 400, peer: '127.0.0.1' },
  ]);
});

for (const [name, octets] of [
  ['no TLS', '\0\x01\x02'],
  ['a broken record', '\x16\x03\x01\0\x05hello'],
] as const) {
  test(`closes on ${name}, and goes on serving`, async (t) => {
    const { port, listener, open } = await serve(t, echo, {}, overTls);
    const client = (await openRaw(port)).send(octets);
    await client.closed;
    client.destroy();
    assert.doesNotMatch(client.received, /HTTP/);
    while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await (await open()).send(get).answer()).status, 200);
  });
}

for (const [name, octets] of [
  ['says nothing', ''],
  ['begins a handshake and stops', '\x16\x03\x01\x02\0\x01\0\x01\xfc'],
  ['begins a handshake and ends', '\x16\x03\x01\x02\0\x01\0\x01\xfc'],
] as const) {
  test(`closes on a client that ${name}`, async (t) => {
    const { port, listener } = await serve(t, echo, { headersTimeoutMs: 40 }, overTls);
    const client = (await openRaw(port)).send(octets);
    if (name.endsWith('ends')) client.socket.end();
    await client.closed;
    client.destroy();
    while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  });
}

test('answers a client that has closed its sending side already', async (t) => {
  const { open } = await serve(t, echo, {}, overTls);
  const client = await open();
  client.socket.end(get);
  assert.equal((await client.answer()).body, 'GET /');
});

test('never takes Upgrade: h2c over TLS', async (t) => {
  const { open } = await serve(t, echo, {}, overTls);
  const client = (await open()).send(
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  );
  assert.equal((await client.answer()).body, 'GET /');
  assert.equal(await client.closed, 'end');
});

/** Both ports of one listener. */
async function serveBoth(t: TestContext, limits: Partial<ServerLimits> = {}) {
  const observed: Observation[] = [];
  const observe = (fact: Observation) => observed.push(fact);
  // The answer to `/held` never comes.
  const handler: Handler = (request) =>
    request.target === '/held' ? new Promise(() => undefined) : echo(request);
  const listener = createListener({
    handler,
    observe,
    limits,
    apiVersion: '1',
  });
  const tls = { certificate: fixedCertificate(), alpn: 'http/1.1', port: 0 } as const;
  const listening = await listener.listen('127.0.0.1', 0, { tls });
  t.after(() => listener.drain(0));
  const { port, tlsPort } = listening;
  assert.ok(tlsPort !== undefined && tlsPort !== port);
  assert.equal(listening.secure, false);
  return { listener, observed, port, tlsPort };
}

test('serves cleartext and TLS on two ports, and ends both when it drains', async (t) => {
  const { listener, port, tlsPort } = await serveBoth(t);
  const clients = [await openRaw(port), await openRawTls(tlsPort)];
  for (const client of clients) assert.equal((await client.send(get).answer()).status, 200);
  assert.equal(listener.counts().connections, 2);
  assert.equal(await listener.drain(5_000), 0);
  for (const client of clients) {
    assert.equal(await client.closed, 'end');
    client.destroy();
  }
  await assert.rejects(openRaw(port));
  await assert.rejects(openRaw(tlsPort));
});

test('counts the connections of both ports under one bound', async (t) => {
  const limits = { connectionsMax: 2, connectionsReservedMax: 0 };
  const { observed, port, tlsPort, listener } = await serveBoth(t, limits);
  const first = await openRaw(port);
  const second = await openRawTls(tlsPort);
  // Busy: an answer is owed on each, so neither makes room.
  for (const client of [first, second]) client.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  while (listener.counts().requests < 2) await new Promise((resolve) => setImmediate(resolve));
  for (const each of [port, tlsPort]) {
    const third = await openRaw(each);
    await third.closed;
    third.destroy();
  }
  assert.deepEqual(
    observed.flatMap((fact) => (fact.kind === 'connection-refused' ? [fact.peer] : [])),
    ['127.0.0.1', '127.0.0.1'],
  );
  // A FIN alone would leave the answer owed.
  first.socket.resetAndDestroy();
  while (listener.counts().connections > 1) await new Promise((resolve) => setImmediate(resolve));
  const next = await openRawTls(tlsPort);
  assert.equal((await next.send(get).answer()).status, 200);
  for (const client of [second, next]) client.destroy();
});

test('offers HTTP/1.1 alone where the settings say so', async (t) => {
  const { tlsPort } = await serveBoth(t);
  const socket = await shake(t, tlsPort, { ALPNProtocols: ['h2', 'http/1.1'] });
  assert.equal(socket.alpnProtocol, 'http/1.1');
});

test('leaves no port open when the second cannot be', async (t) => {
  const { port: taken } = await serve(t, echo);
  const listener = createListener({ handler: echo, observe: () => undefined, apiVersion: '1' });
  const tls = { certificate: fixedCertificate(), alpn: 'http/1.1', port: taken } as const;
  await assert.rejects(listener.listen('127.0.0.1', 0, { tls }), { code: 'EADDRINUSE' });
  assert.equal(listener.state(), 'idle');
});
