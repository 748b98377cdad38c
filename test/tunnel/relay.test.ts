/** The relay under load (§4.10, §8): what is carried stays what it was though all relays share memory, and what is slow holds little. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import type { TunnelEnd } from '../../src/observe/observation.ts';
import { createRelays, findReadBuffer } from '../../src/tunnel/relay.ts';
import { cert, key } from '../accounts/mail/certificate.ts';
import { listen } from '../harness/listening.ts';
import { readToEnd, startDestination } from './rig.ts';

type TestContext = Parameters<typeof startDestination>[0];
type Over = { readonly why: TunnelEnd; readonly sentBytes: number; readonly receivedBytes: number };

const MiB = 1024 * 1024;
const times = { tunnelIdleMs: 60_000, tunnelHalfClosedMs: 60_000 };

/** Everything that connects is joined with a new connection to the destination. */
async function startRelay(context: TestContext, destinationPort: number, { tls = false } = {}) {
  const relays = createRelays(times);
  const over: Over[] = [];
  const onClient = (client: Socket): void => {
    client.on('error', () => undefined);
    const destination = connect({ port: destinationPort, host: '127.0.0.1', allowHalfOpen: true });
    destination.on('error', () => undefined);
    destination.once('connect', () =>
      relays.join({
        client: { duplex: client, head: Buffer.alloc(0), reset: () => client.resetAndDestroy() },
        destination,
        spend: () => true,
        onOver: (why, sentBytes, receivedBytes) => over.push({ why, sentBytes, receivedBytes }),
      }),
    );
  };
  const server = tls
    ? createTlsServer({ cert, key, allowHalfOpen: true }, onClient)
    : createServer({ allowHalfOpen: true }, onClient);
  return { port: (await listen(server, context)).port, over };
}

/** Octets that differ from place to place and from seed to seed. */
function octets(seed: number, length: number): Buffer {
  const block = createHash('sha512').update(String(seed)).digest();
  return Buffer.alloc(length, block);
}

test('this version of Node has the parts that reading into given memory needs', () => {
  assert.notEqual(findReadBuffer(), undefined);
});

test('mixes nothing up between tunnels that share memory, some of them slow', async (context) => {
  const port = await startDestination(context, (socket) => void socket.pipe(socket));
  const relay = await startRelay(context, port);
  const rounds = Array.from({ length: 12 }, async (_, seed) => {
    const socket = connect({ port: relay.port, host: '127.0.0.1', allowHalfOpen: true });
    const sent = octets(seed, 2 * MiB + seed * 7919);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (seed % 3 !== 0 || chunks.length % 8 !== 0) return;
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
    const step = seed % 2 === 0 ? 100_003 : 300_007;
    for (let at = 0; at < sent.length; at += step) {
      if (!socket.write(sent.subarray(at, at + step))) await once(socket, 'drain');
    }
    socket.end();
    await once(socket, 'close');
    assert.equal(Buffer.concat(chunks).equals(sent), true, `tunnel ${seed}`);
  });
  await Promise.all(rounds);
  assert.equal(relay.over.length, 12);
  for (const { why, sentBytes, receivedBytes } of relay.over) {
    assert.equal(why, 'ended');
    assert.equal(sentBytes, receivedBytes);
  }
});

for (const [what, isUp] of [
  ['client', true],
  ['destination', false],
] as const) {
  test(`takes no more from a fast ${what} than the other side takes`, async (context) => {
    let written = 0;
    const flood = (socket: Socket): void => {
      const chunk = Buffer.alloc(65_536);
      const pump = (): void => {
        while (written < 256 * MiB && socket.write(chunk)) written += chunk.length;
      };
      socket.on('drain', pump);
      pump();
    };
    const slow: Socket[] = [];
    const port = await startDestination(context, (socket) => {
      if (isUp) slow.push(socket.pause());
      else flood(socket);
    });
    const relay = await startRelay(context, port);
    const socket = connect({ port: relay.port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    if (isUp) flood(socket);
    const atStart = process.memoryUsage().rss;
    for (let before = -1; before !== written; ) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    // What is under way stands in the buffers of the system: six MiB a socket at most, four sockets.
    assert.ok(written < 48 * MiB, `${written} octets were taken`);
    assert.ok(process.memoryUsage().rss - atStart < 48 * MiB);
    socket.destroy();
    // Nothing is read from a side whose octets have nowhere to go, its end neither.
    for (const each of slow) each.resume().once('end', () => each.end());
    while (relay.over.length === 0) await new Promise((resolve) => setImmediate(resolve));
  });
}

test('leaves no handle of a thousand tunnels, however they ended', async (context) => {
  const port = await startDestination(context, (socket) => void socket.pipe(socket));
  const relay = await startRelay(context, port);
  const handles = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const total = 1000;
  for (let done = 0; done < total; done += 100) {
    const hundred = Array.from({ length: 100 }, async (_, at) => {
      const socket = connect({ port: relay.port, host: '127.0.0.1' });
      socket.on('error', () => undefined).write('x');
      await once(socket, 'data');
      if (at % 3 === 0) socket.resetAndDestroy();
      else if (at % 3 === 1) socket.destroy();
      else socket.end();
      await once(socket, 'close');
    });
    await Promise.all(hundred);
  }
  while (relay.over.length < total || handles() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(relay.over.length, total);
  assert.equal(relay.over.filter(({ why }) => why === 'client-reset').length, 340);
  assert.equal(handles(), 0);
});

test('carries the end of either side over TLS as well', async (context) => {
  const port = await startDestination(context, (socket) => {
    readToEnd(socket).then(({ text }) => socket.end(`got ${text.length}`));
  });
  const relay = await startRelay(context, port, { tls: true });
  const raw = connect({ port: relay.port, host: '127.0.0.1', allowHalfOpen: true });
  const socket = connectTls({ socket: raw, host: '127.0.0.1', ca: cert });
  socket.allowHalfOpen = true;
  await once(socket, 'secureConnect');
  socket.end(octets(1, 3 * MiB));
  assert.deepEqual(await readToEnd(socket), { text: `got ${3 * MiB}`, how: 'end' });
  while (relay.over.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(relay.over, [{ why: 'ended', sentBytes: 3 * MiB, receivedBytes: 11 }]);
});
