/** connect-udp from end to end (RFC 9298), over both protocols. */
import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { bindApart, datagram, type Protocol, pathTo, startEcho, startProxy } from './proxy-under-test.ts';

const protocols: readonly Protocol[] = ['HTTP/1.1', 'HTTP/2'];
let echo: Awaited<ReturnType<typeof startEcho>>;

before(async () => {
  echo = await startEcho();
});

after(() => echo.socket.close());

/** A destination that can be told what to send, and that remembers who asked. */
async function startDestination(
  t: TestContext,
): Promise<{ socket: Socket; port: number; from: () => Promise<number> }> {
  const socket = createSocket('udp4');
  const senders: number[] = [];
  socket.on('message', (_payload, { port }) => senders.push(port));
  await bindApart(socket);
  let isOpen = true;
  socket.once('close', () => {
    isOpen = false;
  });
  t.after(() => {
    if (isOpen) socket.close();
  });
  const from = async (): Promise<number> => {
    if (senders.length === 0) await once(socket, 'message');
    return senders[0] ?? 0;
  };
  return { socket, port: socket.address().port, from };
}

for (const protocol of protocols) {
  test(`carries datagrams both ways over ${protocol}, and says that it speaks capsules`, async (t) => {
    const proxy = await startProxy(t);
    const { status, headers, tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) });
    assert.equal(status, protocol === 'HTTP/2' ? 200 : 101);
    assert.equal(headers['capsule-protocol'], '?1');
    assert.equal(headers['content-length'], undefined);
    for (const payload of ['', 'a', 'x'.repeat(1200), 'y'.repeat(60_000)]) {
      tunnel.send(payload);
      assert.equal((await tunnel.next()).toString(), payload);
    }
    tunnel.duplex.end();
    const fact = await proxy.closed();
    assert.equal(fact.how, 'udp');
    assert.equal(fact.why, 'ended');
    assert.equal(fact.sentBytes, 61_201);
    assert.equal(fact.receivedBytes, 61_201);
    assert.equal(fact.address, '127.0.0.1');
    assert.equal(await tunnel.gone, undefined);
  });

  test(`carries what came with the request over ${protocol}, capsules cut anywhere, unknown ones left out`, async (t) => {
    const proxy = await startProxy(t, { lookup: async () => ['127.0.0.1'] });
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('a.example', echo.port) });
    const stream = Buffer.concat([
      datagram('one'),
      Buffer.from([0x2f, 3, 1, 2, 3]),
      datagram('not agreed to', [2]),
      datagram('not agreed to', [0x7f, 0xff]),
      // Context 0 in two octets.
      datagram('two', [0x40, 0]),
      datagram('three'),
    ]);
    for (const octet of stream) tunnel.duplex.write(Uint8Array.of(octet));
    const answers = [await tunnel.next(), await tunnel.next(), await tunnel.next()];
    assert.deepEqual(answers.map(String), ['one', 'two', 'three']);
    tunnel.duplex.destroy();
  });

  test(`brings nothing back from another address or port over ${protocol}`, async (t) => {
    const proxy = await startProxy(t);
    const destination = await startDestination(t);
    const stranger = createSocket('udp4');
    t.after(() => void stranger.close());
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', destination.port) });
    tunnel.send('hello');
    const port = await destination.from();
    for (let count = 0; count < 20; count += 1) await send(stranger, 'amplified', port);
    await send(destination.socket, 'good', port);
    assert.equal(String(await tunnel.next()), 'good');
    assert.equal(tunnel.received.length, 0);
    tunnel.duplex.destroy();
  });

  test(`drops what a client over ${protocol} does not take, and holds none of it`, async (t) => {
    const proxy = await startProxy(t);
    const destination = await startDestination(t);
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', destination.port) });
    tunnel.send('hello');
    const port = await destination.from();
    tunnel.duplex.pause();
    const payload = Buffer.alloc(8000, 'd');
    for (let round = 0; round < 10_000; round += 1) {
      destination.socket.send(payload, port, '127.0.0.1');
      // The proxy, which is in this process, reads some of them.
      if (round % 10 === 0) await nextTurn();
    }
    tunnel.duplex.resume();
    const first = await tunnel.next();
    assert.equal(first.length, 8000, 'what was taken is whole');
    // What comes after the loss comes whole as well.
    const marks = setInterval(() => destination.socket.send('mark', port, '127.0.0.1'), 5);
    for (;;) {
      const next = String(await tunnel.next());
      if (next === 'mark') break;
      assert.equal(next.length, 8000);
    }
    clearInterval(marks);
    tunnel.duplex.destroy();
    // 80 MB were sent; some MB are in buffers of the system, which nobody but it can bound.
    const { receivedBytes } = await proxy.closed();
    assert.ok(receivedBytes < 40_000_000, `${receivedBytes} octets were passed on`);
  });

  for (const [what, sent] of [
    ['a payload of 65,528 octets', datagram(Buffer.alloc(65_528))],
    ['a longer payload whose end is not awaited', datagram(Buffer.alloc(70_000)).subarray(0, 100)],
    ['a datagram without a context', Buffer.from([0, 0])],
    ['half a context', Buffer.from([0, 1, 0x40])],
  ] as const) {
    test(`cuts off a client over ${protocol} that sends ${what}`, async (t) => {
      const proxy = await startProxy(t);
      const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) });
      tunnel.duplex.write(sent);
      const fact = await proxy.closed();
      assert.equal(fact.why, 'client-reset');
      assert.ok((await tunnel.gone) instanceof Error, 'the client sees that something broke');
    });
  }

  test(`takes 65,527 octets over ${protocol}, though no packet holds them`, async (t) => {
    const proxy = await startProxy(t);
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) });
    tunnel.duplex.write(Buffer.concat([datagram(Buffer.alloc(65_527)), datagram('after')]));
    assert.equal(String(await tunnel.next()), 'after');
    tunnel.duplex.destroy();
  });

  test(`resets the tunnel over ${protocol} when a capsule is cut by the end`, async (t) => {
    const proxy = await startProxy(t);
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) });
    tunnel.duplex.end(datagram('cut').subarray(0, 4));
    const fact = await proxy.closed();
    assert.equal(fact.why, 'client-reset');
  });

  test(`closes the tunnel over ${protocol} when nobody listens at the destination`, async (t) => {
    const proxy = await startProxy(t);
    const destination = await startDestination(t);
    destination.socket.close();
    await once(destination.socket, 'close');
    const { status, tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', destination.port) });
    assert.equal(status, protocol === 'HTTP/2' ? 200 : 101, 'nobody can say of UDP who listens');
    tunnel.send('anybody?');
    const fact = await proxy.closed();
    assert.equal(fact.why, 'destination-reset');
    assert.ok((await tunnel.gone) instanceof Error);
  });

  test(`cuts the tunnel over ${protocol} at once when its credential ends`, async (t) => {
    const proxy = await startProxy(t);
    const { tunnel } = await proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) });
    const over = once(tunnel.duplex, 'end');
    proxy.revoke();
    const fact = await proxy.closed();
    assert.equal(fact.why, 'revoked');
    await over;
    tunnel.duplex.destroy();
  });
}

test('reaches IPv6 destinations', async (t) => {
  const proxy = await startProxy(t);
  const six = await startEcho('::1').catch(() => undefined);
  if (six === undefined) return t.skip('no IPv6 on this machine');
  const { tunnel } = await proxy.ask('HTTP/2', { path: pathTo('::1', six.port) });
  tunnel.send('six');
  assert.equal(String(await tunnel.next()), 'six');
  tunnel.duplex.destroy();
  six.socket.close();
});

function send(socket: Socket, payload: Uint8Array | string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(payload, port, '127.0.0.1', (error) => (error ? reject(error) : resolve()));
  });
}
