/** What a connect-udp tunnel does once it is open, on a socket that is watched (RFC 9298 §3.1, §5). */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type Duplex, duplexPair } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TunnelEnd } from '../../../src/observe/observation.ts';
import { UdpTunnel } from '../../../src/tunnel/connect-udp.ts';
import { datagram, Tunnel } from './proxy-under-test.ts';

type Ended = { readonly why: TunnelEnd; readonly sentBytes: number; readonly receivedBytes: number };

/** The tunnel closes its own. */
async function bound(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

type Options = {
  readonly head?: Uint8Array;
  readonly idleMs?: number;
  readonly bufferBytesMax?: number;
  readonly budgetBytes?: number;
  /** The socket is bound and not connected, as it is for a moment before each tunnel. */
  readonly unconnected?: boolean;
  /** The client has ended its side before the tunnel starts. */
  readonly isEnded?: boolean;
};

async function startTunnel(t: TestContext, options: Options = {}) {
  const { bufferBytesMax = 65_536 } = options;
  const [socket, destination] = await Promise.all([bound(), bound()]);
  const { port } = destination.address();
  t.after(() => void destination.close());
  if (options.unconnected !== true) {
    socket.connect(port, '127.0.0.1');
    await once(socket, 'connect');
  }
  const [duplex, side]: Duplex[] = duplexPair();
  assert.ok(duplex !== undefined && side !== undefined);
  const { promise: ended, resolve } = Promise.withResolvers<Ended>();
  let resets = 0;
  let leftBytes = options.budgetBytes ?? Number.POSITIVE_INFINITY;
  const tunnel = new UdpTunnel({
    client: {
      duplex,
      head: options.head ?? new Uint8Array(),
      reset() {
        resets += 1;
        duplex.destroy();
      },
    },
    destination: { socket, address: '127.0.0.1', port, dnsMs: null },
    limits: { tunnelUdpIdleMs: options.idleMs ?? 60_000, tunnelUdpBufferBytesMax: bufferBytesMax },
    account: {
      spend(bytes) {
        leftBytes -= bytes;
        return leftBytes > 0;
      },
    },
    onEnd: (why, sentBytes, receivedBytes) => resolve({ why, sentBytes, receivedBytes }),
  });
  if (options.isEnded === true) {
    side.end();
    // As Node reads a stream of HTTP/2 that has no octets.
    duplex.read(0);
    await nextTurn();
    assert.ok(duplex.readableEnded);
  }
  tunnel.start();
  t.after(() => tunnel.end('drained'));
  const tunnelPort = socket.address().port;
  const reply = (payload: Uint8Array | string, from: Socket = destination) =>
    new Promise<void>((done, fail) => {
      from.send(payload, tunnelPort, '127.0.0.1', (error) => (error ? fail(error) : done()));
    });
  return { tunnel, socket, destination, duplex, side, ended, reply, resets: () => resets };
}

test('takes nothing from a stranger, though the socket does before it is connected', async (t) => {
  const { side, socket, reply } = await startTunnel(t, { unconnected: true });
  const client = new Tunnel(side);
  const stranger = await bound();
  t.after(() => void stranger.close());
  const arrived = once(socket, 'message');
  await reply('from a stranger', stranger);
  await arrived;
  await reply('from the destination');
  assert.equal(String(await client.next()), 'from the destination');
  assert.equal(client.received.length, 0);
});

test('holds no more of 10,000 datagrams for a client that takes none than its buffer may', async (t) => {
  const bufferBytesMax = 100_000;
  const { side, socket, duplex, reply, tunnel, ended } = await startTunnel(t, { bufferBytesMax });
  let arrived = 0;
  let waitingBytesMax = 0;
  socket.on('message', () => {
    arrived += 1;
    waitingBytesMax = Math.max(waitingBytesMax, duplex.writableLength);
  });
  const payload = Buffer.alloc(1200, 'd');
  for (let count = 0; count < 10_000; count += 1) {
    const sent = reply(payload);
    if (count % 50 === 0) {
      await sent;
      await nextTurn();
    }
  }
  assert.ok(arrived > 2000, `${arrived} arrived`);
  assert.ok(waitingBytesMax <= bufferBytesMax, `${waitingBytesMax} octets waited`);
  const client = new Tunnel(side);
  assert.equal((await client.next()).length, 1200);
  tunnel.end('ended');
  const { receivedBytes } = await ended;
  assert.ok(receivedBytes <= 2 * bufferBytesMax, 'what was dropped is not counted');
});

test('carries what came with the request', async (t) => {
  const head = Buffer.concat([datagram('one'), datagram('two')]);
  const { destination } = await startTunnel(t, { head });
  assert.equal(String((await once(destination, 'message'))[0]), 'one');
});

test('ends when nothing passes for its time, and not while something does', async (t) => {
  // Sent eight times as often, so that a busy machine does not make it idle.
  const idleMs = 400;
  const { side, ended, destination, resets } = await startTunnel(t, { idleMs });
  const client = new Tunnel(side);
  const end = once(side, 'end');
  const startedMs = performance.now();
  let over = false;
  void ended.then(() => {
    over = true;
  });
  for (let count = 0; count < 10; count += 1) {
    client.send('still here');
    await once(destination, 'message');
    await new Promise((resolve) => setTimeout(resolve, idleMs / 8));
    assert.ok(!over);
  }
  assert.ok(performance.now() - startedMs > idleMs);
  const { why } = await ended;
  assert.equal(why, 'idle');
  assert.equal(resets(), 0);
  await end;
});

test('counts neither unknown capsules nor dropped datagrams as passing', async (t) => {
  const { side, ended } = await startTunnel(t, { idleMs: 150 });
  const timer = setInterval(
    () => side.write(Buffer.concat([Buffer.from([9, 1, 0]), datagram('x', [4])])),
    20,
  );
  assert.deepEqual(await ended, { why: 'idle', sentBytes: 0, receivedBytes: 0 });
  clearInterval(timer);
});

test('ends when the daily limit of tunnelled octets is reached, in either direction', async (t) => {
  const { side, ended, reply } = await startTunnel(t, { budgetBytes: 10 });
  const client = new Tunnel(side);
  client.send('1234');
  await reply('123456');
  assert.deepEqual(await ended, { why: 'bytes', sentBytes: 4, receivedBytes: 6 });
  assert.equal(String(await client.next()), '123456', 'what was counted was carried');
});

test('ends once, whatever happens in which order', async (t) => {
  const { side, duplex, socket, ended, tunnel, resets } = await startTunnel(t);
  side.end();
  tunnel.end('revoked');
  tunnel.end('drained');
  duplex.destroy();
  assert.equal((await ended).why, 'revoked');
  assert.throws(() => socket.address(), 'the socket is closed');
  assert.equal(resets(), 0);
});

test('ends at once when the client was gone before it began', async (t) => {
  const [socket, destination] = await Promise.all([bound(), bound()]);
  t.after(() => void destination.close());
  const [duplex]: Duplex[] = duplexPair();
  assert.ok(duplex !== undefined);
  duplex.destroy();
  let why: TunnelEnd | undefined;
  new UdpTunnel({
    client: { duplex, head: datagram('late'), reset: () => undefined },
    destination: { socket, address: '127.0.0.1', port: destination.address().port, dnsMs: null },
    limits: { tunnelUdpIdleMs: 1000, tunnelUdpBufferBytesMax: 65_536 },
    account: { spend: () => true },
    onEnd: (given) => {
      why = given;
    },
  }).start();
  assert.equal(why, 'client-reset');
});

test('ends when the client had ended its side before it began', async (t) => {
  const { ended } = await startTunnel(t, { isEnded: true });
  assert.equal((await ended).why, 'ended');
});
