/**
 * Two options of examples/proxies/haproxy.cfg that decide more than others, each beside its absence, in the real HAProxy: `http-no-delay` for
 * event streams, and the rule that removes Upgrade, before Comity over HTTP/2.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { request } from 'undici';
import { WebSocket } from 'ws';
import { cert } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { findCommand } from './command.ts';
import { answersAt, haproxy, type ProxyProgram, startProxy } from './proxy-program.ts';

const path = findCommand(haproxy.command);
const skip = path === undefined ? `${haproxy.command} is not installed` : false;
const configuration = readFileSync('examples/proxies/haproxy.cfg', 'utf8');

/** @param edits of the file; a line is removed by an empty text */
async function open(t: TestContext, edits: Readonly<Record<string, string>>, options = haproxy) {
  const program = await startServer({ env: { COMITY_BEHIND_PROXY: 'on' } });
  t.after(() => program.stop());
  const before = async (more: Readonly<Record<string, string>>) => {
    const proxy = await startProxy(
      options,
      path ?? '',
      configuration,
      { ...more, '127.0.0.1:4000': `127.0.0.1:${program.port}` },
      answersAt,
    );
    t.after(() => proxy.stop());
    return proxy.port;
  };
  return { program, before, port: await before(edits) };
}

const overHttp2 = { 'server comity1 127.0.0.1:4000': 'server comity1 127.0.0.1:4000 proto h2' };
const upgradePasses = {
  'http-request del-header Connection unless websocket': '',
  'http-request del-header Upgrade unless websocket': '',
};

/** Without TLS, which sends each record at once. */
const cleartext: ProxyProgram = {
  ...haproxy,
  edits: ({ port }) => ({
    ':443 ssl crt /etc/ssl/shop.example.pem alpn h2,http/1.1': `127.0.0.1:${port}`,
  }),
};

/** The response to one request with `Upgrade: h2c`, as clients send it that try HTTP/2 in cleartext. */
async function offerH2c(port: number, method: string, target: string, content = ''): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: cert });
  let received = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  socket.write(
    [
      `${method} ${target} HTTP/1.1`,
      'Host: localhost',
      `X-API-Key: ${adminKey}`,
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
      ...(content === '' ? [] : ['Content-Type: application/json', `Content-Length: ${content.length}`]),
      `\r\n${content}`,
    ].join('\r\n'),
  );
  await once(socket, 'close');
  return received;
}

async function createCategory(program: RunningServer, name: string): Promise<string> {
  const made = await program.send('POST', '/api/v1/categories', { json: { name } });
  assert.equal(made.status, 201, made.body);
  return `/api/v1/categories/${(made.json() as { readonly id: string }).id}`;
}

test('HAProxy makes an extended CONNECT of Upgrade: h2c, which Comity refuses, because its method is lost', {
  skip,
}, async (t) => {
  const { program, port } = await open(t, { ...overHttp2, ...upgradePasses });
  const member = await createCategory(program, 'kept');
  for (const method of ['GET', 'DELETE']) {
    const answer = await offerH2c(port, method, member);
    assert.match(answer, /^HTTP\/1\.1 501 /, method);
    assert.match(answer, /a proxy that makes it of Upgrade must remove that field/);
  }
  assert.equal((await program.send('GET', member)).status, 200);
  // A request with content passes as it is.
  assert.match(await offerH2c(port, 'POST', '/api/v1/categories', '{"name":"new"}'), /^HTTP\/1\.1 201 /);
});

test('without Upgrade, which examples/proxies/haproxy.cfg removes, each method is answered over HTTP/2, and a WebSocket', {
  skip,
}, async (t) => {
  const { program, port } = await open(t, overHttp2);
  const member = await createCategory(program, 'removed');
  assert.match(await offerH2c(port, 'GET', member), /^HTTP\/1\.1 200 /);
  assert.match(await offerH2c(port, 'QUERY', '/api/v1/categories', '{"limit":1}'), /^HTTP\/1\.1 200 /);
  assert.match(await offerH2c(port, 'DELETE', member), /^HTTP\/1\.1 204 /);
  assert.equal((await program.send('GET', member)).status, 404);
  const socket = new WebSocket(`wss://localhost:${port}/api/v1/realtime`, 'comity.v1', { ca: cert });
  await once(socket, 'open');
  socket.close(1000);
  await once(socket, 'close');
});

test('with http-no-delay, an event comes at once; without it, 200 ms later', { skip }, async (t) => {
  const { program, before, port } = await open(t, {}, cleartext);
  const late = await before({ 'option http-no-delay': '' });
  const [quick, slow] = [await delays(program, port), await delays(program, late)];
  assert.ok(quick * 2 < slow, `${quick} ms with the option, ${slow} ms without it`);
});

/** The median time from the start of a write to its event, in milliseconds. */
async function delays(program: RunningServer, port: number): Promise<number> {
  const { body } = await request(`http://localhost:${port}/api/v1/events`, {
    headers: { accept: 'text/event-stream', 'x-api-key': adminKey },
  });
  let received = '';
  body.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  await once(body, 'data');
  const taken: number[] = [];
  for (let number = 0; number < 7; number += 1) {
    const startMs = performance.now();
    const member = await createCategory(program, `event${number}of${port}`);
    while (!received.includes(member.slice(-26))) await once(body, 'data');
    taken.push(performance.now() - startMs);
  }
  body.destroy();
  return taken.sort((a, b) => a - b)[3] ?? 0;
}
