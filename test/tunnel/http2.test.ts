/** The tunnel as a stream of an HTTP/2 connection (§4.10.7; RFC 9113 §8.5): ends as END_STREAM, breaks as RST_STREAM. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { openStand, type Rig, readToEnd, startDestination, startRig } from './rig.ts';

const stand = await openStand();

type TestContext = Parameters<typeof startRig>[0];

const echo = (socket: Socket): void => void socket.pipe(socket);

async function openStream(context: TestContext, rig: Rig, target: string): Promise<ClientHttp2Stream> {
  const session = connect(`http://127.0.0.1:${rig.port2}`);
  context.after(() => session.destroy());
  session.on('error', () => undefined);
  const stream = session.request({
    ':method': 'CONNECT',
    ':authority': target,
    'proxy-authorization': `Bearer ${rig.key}`,
  });
  stream.on('error', () => undefined);
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  assert.equal(headers[':status'], 200);
  return stream;
}

test('carries octets and ends both ways over HTTP/2', async (context) => {
  const port = await startDestination(context, (socket) => {
    socket.write('hello ');
    readToEnd(socket).then(({ text }) => socket.end(`late ${text}`));
  });
  const rig = await startRig(context, stand);
  const stream = await openStream(context, rig, `127.0.0.1:${port}`);
  stream.end('answer');
  assert.deepEqual(await readToEnd(stream), { text: 'hello late answer', how: 'end' });
  const { why, sentBytes, receivedBytes } = await rig.told('tunnel-closed');
  assert.deepEqual([why, sentBytes, receivedBytes], ['ended', 6, 17]);
});

for (const [what, endStream] of [
  ['with CONNECT', true],
  ['before the tunnel is open', false],
] as const) {
  test(`passes the end of a client that sends nothing and ends ${what}`, async (context) => {
    const port = await startDestination(context, (socket) => {
      readToEnd(socket).then(({ text }) => socket.end(`after ${text.length} octets`));
    });
    const rig = await startRig(context, stand);
    const session = connect(`http://127.0.0.1:${rig.port2}`);
    context.after(() => session.destroy());
    const asked = { ':method': 'CONNECT', ':authority': `127.0.0.1:${port}` };
    const stream = session.request({ ...asked, 'proxy-authorization': `Bearer ${rig.key}` }, { endStream });
    if (!endStream) stream.end();
    assert.deepEqual(await readToEnd(stream), { text: 'after 0 octets', how: 'end' });
    assert.equal((await rig.told('tunnel-closed')).why, 'ended');
  });
}

test('passes a reset of the destination on as CONNECT_ERROR', async (context) => {
  const port = await startDestination(context, (socket) => {
    socket.once('data', () => socket.resetAndDestroy());
  });
  const rig = await startRig(context, stand);
  const stream = await openStream(context, rig, `127.0.0.1:${port}`);
  stream.write('x');
  await new Promise<void>((resolve) => stream.once('close', () => resolve()));
  assert.equal(stream.rstCode, constants.NGHTTP2_CONNECT_ERROR);
  assert.equal((await rig.told('tunnel-closed')).why, 'destination-reset');
});

for (const code of ['NGHTTP2_CANCEL', 'NGHTTP2_CONNECT_ERROR', 'NGHTTP2_NO_ERROR'] as const) {
  test(`passes a stream reset with ${code} on to the destination as a reset`, async (context) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const port = await startDestination(context, (socket) => {
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      socket.resume().write('ready');
    });
    const rig = await startRig(context, stand);
    const stream = await openStream(context, rig, `127.0.0.1:${port}`);
    await once(stream, 'data');
    stream.close(constants[code]);
    assert.equal(await promise, 'ECONNRESET');
    assert.equal((await rig.told('tunnel-closed')).why, 'client-reset');
  });
}

test('passes the loss of the whole connection on as a reset of each destination', async (context) => {
  const lost: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const port = await startDestination(context, (socket) => {
    socket.resume().once('error', (error: NodeJS.ErrnoException) => {
      lost.push(error.code ?? '');
      if (lost.length === 2) resolve();
    });
  });
  const rig = await startRig(context, stand);
  const one = await openStream(context, rig, `127.0.0.1:${port}`);
  await openStream(context, rig, `127.0.0.1:${port}`).then((stream) => stream.session?.socket.destroy());
  one.session?.socket.destroy();
  await promise;
  assert.deepEqual(lost, ['ECONNRESET', 'ECONNRESET']);
});

test('reads no more from a destination than a slow stream takes', async (context) => {
  let written = 0;
  const port = await startDestination(context, (socket) => {
    const chunk = Buffer.alloc(65_536);
    const pump = (): void => {
      while (written < 64 * 1024 * 1024 && socket.write(chunk)) written += chunk.length;
    };
    socket.on('drain', pump);
    pump();
  });
  const rig = await startRig(context, stand);
  const stream = await openStream(context, rig, `127.0.0.1:${port}`);
  let before = -1;
  while (before !== written) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(written < 32 * 1024 * 1024, `${written} octets went somewhere`);
  stream.close();
  await rig.told('tunnel-closed');
});

test('carries much, and all of it', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const stream = await openStream(context, rig, `127.0.0.1:${port}`);
  const text = 'abcdefghijklmnopqrstuvwxyz012345'.repeat(100_000);
  stream.end(text);
  assert.equal((await readToEnd(stream)).text === text, true);
});
