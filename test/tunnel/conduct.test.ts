/** What goes through a tunnel over HTTP/1.1 and how it ends (§4.10), over real sockets: the probes that other proxies fail at. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { keySecretsTable } from '../../src/accounts/account-tables.ts';
import { plantKey, remove } from '../accounts/keys/planted.ts';
import { openStand, openTunnel, readToEnd, sendConnect, startDestination, startRig } from './rig.ts';

const stand = await openStand();

const echo = (socket: Socket): void => void socket.pipe(socket);

test('carries octets both ways and tells what it carried once', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.end('hello');
  assert.deepEqual(await readToEnd(socket), { text: 'hello', how: 'end' });
  const { why, sentBytes, receivedBytes, host, address, principal, how } = await rig.told('tunnel-closed');
  assert.deepEqual(
    { why, sentBytes, receivedBytes, host, address, principal, how },
    {
      ...{ why: 'ended', sentBytes: 5, receivedBytes: 5, host: '127.0.0.1', address: '127.0.0.1' },
      ...{ principal: 'key_tunnel', how: 'connect' },
    },
  );
  assert.equal(rig.factsOf('tunnel-opened').length, 1);
  assert.equal(rig.facts.length, 2);
  assert.equal(rig.proxy.count(), 0);
});

test('delivers the answer of a destination after the client has half-closed', async (context) => {
  const port = await startDestination(context, (socket) => {
    socket.resume().once('end', () => setImmediate(() => socket.end('late answer')));
  });
  const rig = await startRig(context, stand);
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.end('request');
  assert.deepEqual(await readToEnd(socket), { text: 'late answer', how: 'end' });
});

test('passes the end of a client that sends nothing and ends before the tunnel is open', async (context) => {
  const port = await startDestination(context, (socket) => {
    readToEnd(socket).then(({ text }) => socket.end(`after ${text.length} octets`));
  });
  const rig = await startRig(context, stand);
  const socket = connect({ port: rig.port, host: '127.0.0.1', allowHalfOpen: true });
  context.after(() => socket.destroy());
  socket.end(
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x.example\r\nProxy-Authorization: Bearer ${rig.key}\r\n\r\n`,
  );
  const { text, how } = await readToEnd(socket);
  assert.match(text, /^HTTP\/1\.1 200 .*\r\n\r\nafter 0 octets$/);
  assert.equal(how, 'end');
  assert.equal((await rig.told('tunnel-closed')).why, 'ended');
});

test('carries what the client sends after the destination has half-closed', async (context) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const port = await startDestination(context, (socket) => {
    socket.end('I am done');
    readToEnd(socket).then(({ text }) => resolve(text));
  });
  const rig = await startRig(context, stand);
  const { socket, answer } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  assert.equal((await readToEnd(socket, answer.rest)).text, 'I am done');
  socket.end('and I am not');
  assert.equal(await promise, 'and I am not');
  assert.equal((await rig.told('tunnel-closed')).why, 'ended');
});

test('carries first what came in the packet of the request', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const { socket, answer } = await openTunnel(context, rig, `127.0.0.1:${port}`, 'early ');
  socket.end('late');
  assert.equal((await readToEnd(socket, answer.rest)).text, 'early late');
  const { sentBytes, receivedBytes } = await rig.told('tunnel-closed');
  assert.deepEqual([sentBytes, receivedBytes], [10, 10]);
});

test('carries what a destination says first, and its end', async (context) => {
  const port = await startDestination(context, (socket) => void socket.resume().end('220 ready'));
  const rig = await startRig(context, stand);
  const { socket, answer } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.end();
  assert.deepEqual(await readToEnd(socket, answer.rest), { text: '220 ready', how: 'end' });
});

test('passes a reset of the destination on to the client', async (context) => {
  const port = await startDestination(context, (socket) => {
    socket.once('data', () => socket.resetAndDestroy());
  });
  const rig = await startRig(context, stand);
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.write('x');
  assert.equal((await readToEnd(socket)).how, 'ECONNRESET');
  assert.equal((await rig.told('tunnel-closed')).why, 'destination-reset');
});

test('passes a reset of the client on to the destination', async (context) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const port = await startDestination(context, (socket) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.write('ready');
  });
  const rig = await startRig(context, stand);
  const { socket, answer } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  if (answer.rest === '' && socket.readableLength === 0) await once(socket, 'readable');
  socket.resetAndDestroy();
  assert.equal(await promise, 'ECONNRESET');
  assert.equal((await rig.told('tunnel-closed')).why, 'client-reset');
});

test('closes a tunnel that carries nothing, and none that carries a little now and then', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand, { settings: { tunnelIdleMs: 200 } });
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  const startedMs = performance.now();
  const ticking = setInterval(() => socket.write('.'), 40);
  setTimeout(() => clearInterval(ticking), 500);
  const { text, how } = await readToEnd(socket);
  assert.ok(performance.now() - startedMs >= 600, 'it was open while it carried something');
  assert.ok(text.length >= 5);
  assert.equal(how, 'end');
  assert.equal((await rig.told('tunnel-closed')).why, 'idle');
});

test('closes a half-closed tunnel that carries nothing sooner than an open one', async (context) => {
  const port = await startDestination(context, (socket) => void socket.resume());
  const rig = await startRig(context, stand, { settings: { tunnelHalfClosedMs: 100 } });
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  socket.end();
  await readToEnd(socket);
  assert.equal((await rig.told('tunnel-closed')).why, 'idle');
});

test('cuts a tunnel when its credential is revoked', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const { text, digest } = await plantKey(stand.store, { scopes: ['tunnel'] });
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`, '', text);
  await remove(stand.store, keySecretsTable, digest);
  assert.equal((await readToEnd(socket)).how, 'ECONNRESET');
  assert.equal((await rig.told('tunnel-closed')).why, 'revoked');
});

test('draining refuses new tunnels, leaves running ones their time, and cuts them then', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  // Time for what comes before the end of the drain, on a busy machine too.
  const drained = rig.proxy.drain(1000);
  const fields = [`Proxy-Authorization: Bearer ${rig.key}`];
  const { answer } = await sendConnect(context, rig.port, `127.0.0.1:${port}`, { fields });
  assert.equal(answer.status, 503);
  assert.equal(answer.fields.get('retry-after'), '5');
  socket.write('still here');
  await drained;
  assert.deepEqual(await readToEnd(socket), { text: 'still here', how: 'ECONNRESET' });
  assert.equal((await rig.told('tunnel-closed')).why, 'drained');
});

test('draining is over as soon as the last tunnel has ended', async (context) => {
  const port = await startDestination(context, echo);
  const rig = await startRig(context, stand);
  const { socket } = await openTunnel(context, rig, `127.0.0.1:${port}`);
  const drained = rig.proxy.drain(20_000);
  socket.end();
  await readToEnd(socket);
  await drained;
  assert.equal(rig.factsOf('tunnel-closed').at(0)?.why, 'ended');
});

test('draining without tunnels is over at once', async (context) => {
  const rig = await startRig(context, stand);
  await rig.proxy.drain(20_000);
});

test('closes the connection to the destination when the client is gone before the answer', async (context) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const rig = await startRig(context, stand, {
    dial: ({ signal }) =>
      new Promise((_, reject) => {
        resolve();
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
  });
  const socket = connect({ port: rig.port, host: '127.0.0.1' });
  socket.write(`CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer ${rig.key}\r\n\r\n`);
  await promise;
  assert.equal(rig.proxy.count(), 1);
  const drained = rig.proxy.drain(20_000);
  socket.resetAndDestroy();
  await drained;
  assert.equal(rig.proxy.count(), 0);
  assert.deepEqual(rig.facts, []);
});
