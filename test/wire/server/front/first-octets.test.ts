/** How the port in cleartext finds out what a client speaks (§4.13). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { test } from 'node:test';
import { protocolOf } from '../../../../src/server/port.ts';
import { echo, serve, text } from '../serve.ts';

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
/** Preface, an empty SETTINGS, and a GET of `/` at `a` as stream 1 (indexed fields, then a literal authority). */
const http2Start =
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0' + '\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a';

test('tells HTTP/2 by the third octet of its preface, and nothing else for it', () => {
  const rows: readonly [string, 'http1' | 'http2' | undefined][] = [
    ['', undefined],
    ['P', undefined],
    ['PR', undefined],
    ['PRI', 'http2'],
    [http2Start, 'http2'],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0', 'http2'],
    ['PRI /x', 'http1'],
    ['PRO', 'http1'],
    ['PO', 'http1'],
    ['G', 'http1'],
    ['pri', 'http1'],
    ['\x16', 'http1'],
    ['\r\nGET', 'http1'],
  ];
  for (const [octets, protocol] of rows)
    assert.equal(protocolOf(Buffer.from(octets, 'latin1')), protocol, octets);
});

test('speaks HTTP/1.1 and HTTP/2 on one port', async (t) => {
  const { open, port } = await serve(t, echo);
  assert.equal((await (await open()).send(get).answer()).status, 200);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({ ':path': '/two' });
  const [fields] = await once(stream, 'response');
  assert.equal(fields[':status'], 200);
  stream.resume();
  await once(stream, 'close');
  session.close();
  await once(session, 'close');
});

for (const [name, ...parts] of [
  ['a request', get],
  ['a request in two parts', get.slice(0, 9), get.slice(9)],
  ['a request with content', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n', 'abc'],
  ['a stream of HTTP/2', http2Start],
] as const) {
  test(`answers ${name} with the client's end behind it, which came while the connection waited for its turn`, async (t) => {
    const targets: string[] = [];
    const { open, observed } = await serve(t, ({ target }) => {
      targets.push(target);
      // Longer than a turn of the event loop may take.
      if (target === '/busy') for (const began = performance.now(); performance.now() - began < 12; );
      return text(200, target);
    });
    const [busy, waiting] = [await open(), await open()];
    busy.send('GET /busy HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(8));
    for (const part of parts) {
      waiting.send(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    waiting.socket.end();
    for (let index = 0; index < 8; index += 1) assert.equal((await busy.answer()).status, 200);
    while (observed.filter((fact) => fact.kind === 'answered' && fact.status === 200).length < 9)
      await new Promise((resolve) => setImmediate(resolve));
    assert.equal(targets.filter((target) => target === '/').length, 1);
  });
}

for (const [name, octets] of [
  ['HTTP/2', http2Start],
  ['HTTP/1.1', 'PUT / HTTP/1.1\r\nHost: a\r\n\r\n'],
] as const) {
  test(`knows ${name} that comes one octet at a time`, async (t) => {
    const { open, observed } = await serve(t, echo);
    const client = await open();
    for (const octet of octets) {
      client.send(octet);
      await new Promise((resolve) => setImmediate(resolve));
    }
    while (!observed.some((fact) => fact.kind === 'answered')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (name === 'HTTP/1.1') assert.equal((await client.answer()).body, 'PUT /');
    else assert.notEqual(client.received.slice(0, 4), 'HTTP');
  });
}

test('takes a client that stops after PR for one of HTTP/1.1, and answers 408', async (t) => {
  const { open } = await serve(t, echo, { h2cTimeoutMs: 200, headersTimeoutMs: 600 });
  const client = (await open()).send('PR');
  assert.equal((await client.answer()).status, 408);
  assert.equal(await client.closed, 'end');
});

test('closes a connection that says nothing, by a timer of its own', async (t) => {
  const { open, observed } = await serve(t, echo, { h2cTimeoutMs: 30, headersTimeoutMs: 60_000 });
  const client = await open();
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
  assert.deepEqual(observed, []);
});

test('forgets clients that leave before they say what they speak', async (t) => {
  const { open, listener } = await serve(t, echo);
  const clients = await Promise.all([open(), open(), open()]);
  const [ends, resets, begins] = clients;
  while (listener.counts().connections < 3) await new Promise((resolve) => setImmediate(resolve));
  ends?.socket.end();
  resets?.socket.resetAndDestroy();
  begins?.socket.end('PR');
  while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(begins?.received, '');
});

test('answers a request that came with the end of the client', async (t) => {
  const { open } = await serve(t, echo);
  const client = await open();
  client.socket.end(get);
  assert.equal((await client.answer()).body, 'GET /');
});

test('ends a connection whose preface goes wrong after it was told, without failing itself', async (t) => {
  const { open } = await serve(t, echo);
  const client = (await open()).send('PRI * HTTP/2.0\r\n\r\n');
  // By the time another is answered, HTTP/2 has the connection.
  assert.equal((await (await open()).send(get).answer()).status, 200);
  client.send('XX\r\n\r\n and no more of it');
  await client.closed;
  assert.doesNotMatch(client.received, /HTTP\/1/);
  assert.equal((await (await open()).send(get).answer()).status, 200);
});

test('answers 400 to a preface that is wrong from its first packet on', async (t) => {
  const { open } = await serve(t, echo);
  const client = (await open()).send('PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n');
  assert.equal((await client.answer()).status, 400);
  assert.equal(await client.closed, 'end');
});
