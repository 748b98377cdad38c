/**
 * `Upgrade: h2c` on the wire (§4.13), by clients that exist and by one that sends what those never would. curl and nghttp are skipped where they
 * are not installed;.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import type { Request, Response } from '../../../src/http/message.ts';
import { echo, type ServeOptions, serve, text } from '../../wire/server/serve.ts';

const run = promisify(execFile);
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const emptySettings = '\0\0\0\x04\0\0\0\0\0';

async function tell(request: Request): Promise<Response> {
  const content = await request.readContent(100_000);
  const told = [request.method, request.target, request.version, request.fields.host];
  return text(200, [...told, content.ok ? content.bytes.length : content.code].join(' '));
}

const upgrade = (method = 'GET', more = '', settings = 'AAMAAABk') =>
  `${method} /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n` +
  `HTTP2-Settings: ${settings}\r\n${more}\r\n`;

/** Sends the request, takes the 101, and returns the socket as node's HTTP/2 client gets it, with what its preface was. */
async function upgraded(t: TestContext, port: number, request: string) {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  t.after(() => socket.destroy());
  socket.write(request, 'latin1');
  const head = await readHead(socket);
  assert.equal(head, 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  return socket;
}

async function readHead(socket: Socket): Promise<string> {
  let head = '';
  while (!head.endsWith('\r\n\r\n')) {
    const octet: Buffer | null = socket.read(1);
    if (octet === null) await once(socket, 'readable');
    else head += octet.toString('latin1');
  }
  return head;
}

type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
};

/** The frames as they come, until one satisfies. */
async function framesUntil(socket: Socket, last: (frame: Frame) => boolean): Promise<readonly Frame[]> {
  const frames: Frame[] = [];
  for (;;) {
    const head = await take(socket, 9);
    const length = head.readUIntBE(0, 3);
    const payload = length === 0 ? Buffer.alloc(0) : await take(socket, length);
    const stream = head.readUInt32BE(5);
    const frame = { type: head[3] ?? 0, flags: head[4] ?? 0, stream, payload };
    frames.push(frame);
    if (last(frame)) return frames;
  }
}

async function take(socket: Socket, length: number): Promise<Buffer> {
  for (;;) {
    const octets: Buffer | null = socket.read(length);
    if (octets !== null) return octets;
    await once(socket, 'readable');
  }
}

const endOf =
  (stream: number) =>
  (frame: Frame): boolean =>
    frame.type === 0 && frame.stream === stream && (frame.flags & 1) === 1;
const dataOf = (frames: readonly Frame[], stream = 1) =>
  Buffer.concat(
    frames.filter((frame) => frame.type === 0 && frame.stream === stream).map((frame) => frame.payload),
  );

for (const [name, drip] of [
  ['at once', false],
  ['one octet at a time', true],
] as const) {
  test(`answers the request as stream 1 to a preface that comes ${name}, and acknowledges one SETTINGS`, async (t) => {
    const { port } = await serve(t, tell);
    const socket = await upgraded(t, port, upgrade());
    for (const piece of drip ? [...`${preface}${emptySettings}`] : [`${preface}${emptySettings}`]) {
      socket.write(piece, 'latin1');
      if (drip) await new Promise((resolve) => setImmediate(resolve));
    }
    const frames = await framesUntil(socket, endOf(1));
    assert.equal(String(dataOf(frames)), 'GET /up 2.0 a 0');
    assert.equal(frames.filter((frame) => frame.type === 4 && frame.flags === 1).length, 1);
  });
}

test('takes a preface that came behind the request with it', async (t) => {
  const { port } = await serve(t, tell);
  const socket = await upgraded(t, port, `${upgrade()}${preface}${emptySettings}`);
  assert.equal(String(dataOf(await framesUntil(socket, endOf(1)))), 'GET /up 2.0 a 0');
});

for (const bytes of [1, 2_000, 20_000]) {
  test(`hands over content of ${bytes} octets`, async (t) => {
    const { port } = await serve(t, tell);
    const content = 'x'.repeat(bytes);
    const request = upgrade('POST', `Content-Length: ${bytes}\r\n`) + content;
    // The preface behind the content shows where one ends and the other begins.
    const socket = await upgraded(t, port, request + preface + emptySettings);
    assert.equal(String(dataOf(await framesUntil(socket, endOf(1)))), `POST /up 2.0 a ${bytes}`);
  });
}

test('honours the window of HTTP2-Settings', async (t) => {
  const { port } = await serve(t, tell);
  // SETTINGS_INITIAL_WINDOW_SIZE = 10.
  const socket = await upgraded(t, port, upgrade('GET', '', 'AAQAAAAK'));
  socket.write(preface + emptySettings, 'latin1');
  const frames = await framesUntil(socket, (frame) => frame.type === 0);
  assert.equal(String(dataOf(frames)), 'GET /up 2.');
  // WINDOW_UPDATE of 100 on stream 1.
  socket.write('\0\0\x04\x08\0\0\0\0\x01\0\0\0\x64', 'latin1');
  assert.equal(String(dataOf(await framesUntil(socket, endOf(1)))), '0 a 0');
});

test('answers further requests on the connection, and reads what they compress', async (t) => {
  const { port, listener } = await serve(t, tell);
  const socket = await upgraded(t, port, upgrade());
  // Literals with indexing: the second block refers to what the first put into the table.
  const block = '\x82\x86\x84\x41\x01b';
  const headers = (stream: number, octets: string) =>
    `\0\0${String.fromCharCode(octets.length)}\x01\x05\0\0\0${String.fromCharCode(stream)}${octets}`;
  socket.write(`${preface}${emptySettings}${headers(3, block)}`, 'latin1');
  const frames = await framesUntil(socket, endOf(3));
  assert.equal(String(dataOf(frames, 3)), 'GET / 2.0 b 0');
  socket.write(headers(5, '\x82\x86\x84\xbe'), 'latin1');
  assert.equal(String(dataOf(await framesUntil(socket, endOf(5)), 5)), 'GET / 2.0 b 0');
  assert.equal(listener.counts().connections, 1);
});

const overHttp1: readonly [string, string, string][] = [
  [
    'Expect: 100-continue',
    upgrade('POST', 'Content-Length: 5\r\nExpect: 100-continue\r\n'),
    'POST /up 1.1 a 5',
  ],
  ['content that drips', upgrade('POST', 'Content-Length: 5\r\n'), 'POST /up 1.1 a 5'],
  ['two HTTP2-Settings', upgrade('GET', 'HTTP2-Settings: AAMAAABk\r\n'), 'GET /up 1.1 a 0'],
  ['bad base64', upgrade('GET', '', 'AAMAAAB!'), 'GET /up 1.1 a 0'],
  [
    'content over the bound',
    upgrade('POST', 'Content-Length: 5\r\n').replace(': 5', ': 11'),
    'POST /up 1.1 a 11',
  ],
];

for (const [name, request, body] of overHttp1) {
  test(`answers over HTTP/1.1 to ${name}`, async (t) => {
    const { open } = await serve(t, tell, { h2cContentBytesMax: 10 });
    const client = (await open()).send(request);
    // By then the fields have been read, and the content has not come.
    await (await open()).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').answer();
    if (name.startsWith('Expect')) assert.equal((await client.answer()).status, 100);
    const content = Number(body.split(' ').at(-1));
    for (let sent = 0; sent < content; sent += 1) {
      client.send('x');
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answer = await client.answer();
    assert.equal(answer.body, body);
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
  });
}

test('answers Upgrade: h2c of HTTP/1.0 over HTTP/1.0', async (t) => {
  const { open } = await serve(t, tell);
  const client = (await open()).send(upgrade().replace('HTTP/1.1', 'HTTP/1.0'));
  assert.equal((await client.answer()).body, 'GET /up 1.0 a 0');
  assert.equal(await client.closed, 'end');
});

const notTaken: readonly ServeOptions[] = [{ behindProxy: true }, { kind: 'TLS' }];

for (const options of notTaken) {
  test(`never takes it ${options.kind === 'TLS' ? 'over TLS' : 'behind a proxy'}`, async (t) => {
    const { open } = await serve(t, tell, {}, options);
    const client = (await open()).send(upgrade());
    assert.equal((await client.answer()).body, 'GET /up 1.1 a 0');
    assert.equal(await client.closed, 'end');
  });
}

for (const [name, sent, why] of [
  ['another protocol', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'the connection preface did not arrive'],
  [
    'no SETTINGS',
    `${preface}\0\0\x04\x08\0\0\0\0\0\0\0\0\x01`,
    'the connection preface has no SETTINGS frame',
  ],
  ['nothing in time', '', 'the connection preface did not arrive in time'],
  ['half a preface in time', 'PRI *', 'the connection preface did not arrive in time'],
] as const) {
  test(`cuts the connection on ${name} after 101`, async (t) => {
    const { port, observed, listener } = await serve(t, tell, {
      h2cTimeoutMs: why.endsWith('in time') ? 40 : 60_000,
    });
    const socket = await upgraded(t, port, upgrade());
    // A reset may come before the end; events.once would reject for it.
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.on('error', () => undefined);
    if (sent !== '') socket.write(sent, 'latin1');
    socket.resume();
    if (!socket.closed) await closed;
    assert.deepEqual(
      observed.flatMap((fact) => (fact.kind === 'http2-cut' ? [fact.why] : [])),
      [why],
    );
    while (listener.counts().connections > 0) await new Promise((resolve) => setImmediate(resolve));
  });
}

test('hands over the connection after the answers that are owed before it', async (t) => {
  const first = Promise.withResolvers<Response>();
  const { port, open } = await serve(t, (request) =>
    request.target === '/first' ? first.promise : tell(request),
  );
  const client = await open();
  client.send(`GET /first HTTP/1.1\r\nHost: a\r\n\r\n${upgrade()}`);
  await (await open()).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(client.received, '');
  first.resolve(text(200, 'first'));
  assert.equal((await client.answer()).body, 'first');
  assert.equal((await client.answer()).status, 101);
  assert.ok(port > 0);
});

test('ends upgraded connections when it drains', async (t) => {
  const { port, listener } = await serve(t, tell, { drainIdleMs: 0 });
  const socket = await upgraded(t, port, upgrade());
  socket.write(preface + emptySettings, 'latin1');
  await framesUntil(socket, endOf(1));
  socket.resume();
  const closed = once(socket, 'close');
  assert.equal(await listener.drain(5_000), 0);
  await closed;
});

const isInstalled = async (program: string): Promise<boolean> =>
  access(`/usr/bin/${program}`).then(
    () => true,
    () => false,
  );

const curl = await isInstalled('curl');
const nghttp = await isInstalled('nghttp');

test('is taken by curl --http2, which reuses the connection (skipped without curl)', {
  skip: !curl,
}, async (t) => {
  const { port } = await serve(t, tell);
  const url = `http://127.0.0.1:${port}`;
  const format = ['-s', '--http2', '-w', ' %{http_version} %{num_connects}\n'];
  const { stdout } = await run('curl', [...format, `${url}/a`, `${url}/b`]);
  assert.equal(stdout, `GET /a 2.0 127.0.0.1:${port} 0 2 1\nGET /b 2.0 127.0.0.1:${port} 0 2 0\n`);
  const posted = await run('curl', [...format, '-d', 'hello', `${url}/a`]);
  assert.equal(posted.stdout, `POST /a 2.0 127.0.0.1:${port} 5 2 1\n`);
});

test('is taken by nghttp -u (skipped without nghttp)', { skip: !nghttp }, async (t) => {
  const { port } = await serve(t, echo);
  const url = `http://127.0.0.1:${port}`;
  const { stdout } = await run('nghttp', ['-u', `${url}/a`, `${url}/b`]);
  assert.deepEqual(stdout.match(/GET \/./g), ['GET /a', 'GET /b']);
});
