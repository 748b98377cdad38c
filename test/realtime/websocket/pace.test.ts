/** What becomes of clients that are slow, silent or gone, and of a server that ends a WebSocket (§4.13; RFC 6455 §5.5, §7), over both protocols. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { ConversationPeer } from '../../../src/http/message.ts';
import { ampleMemory } from '../../memory/ample.ts';
import { EchoServer, protocols, type ServerOptions } from './echo-server.ts';
import { clientClose, clientFrame, opcodes, RawPeer } from './raw-peer.ts';

const { close, ping, pong, text } = opcodes;
const kib = 1024;

const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Long enough for the system to take what it will. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 50));

const opened: { readonly server: EchoServer; readonly peers: RawPeer[] }[] = [];
afterEach(async () => {
  for (const { server, peers } of opened.splice(0)) {
    for (const peer of peers) peer.release();
    await server.stop();
  }
});

for (const protocol of protocols) {
  describe(`the pace of a WebSocket over ${protocol}`, () => {
    it('says when more waits than a fourth of the bound, and when the client has taken it', async () => {
      const { peer, own } = await start();
      peer.stream.pause();
      const ready = Promise.withResolvers<void>();
      own.onReady(ready.resolve);
      let sent = 0;
      while (own.send('x'.repeat(8 * kib))) sent += 1;
      assert.ok(own.waitingBytes() > 64 * kib, 'more than a fourth of 256 KiB waits');
      assert.ok(sent >= 7, 'a fourth of the bound may wait');
      assert.equal(own.send('y'), false, 'nothing is lost by sending on');
      peer.stream.resume();
      await ready.promise;
      assert.ok(own.waitingBytes() <= 64 * kib);
      for (let count = 0; count <= sent; count += 1)
        assert.equal((await peer.frame())?.payload.length, 8 * kib);
      assert.equal(await peer.text(), 'y');
    });

    // A stream of HTTP/2 takes what is written to it after the turn.
    if (protocol === 'HTTP/1.1') {
      it('counts what was sent in one turn to a client that takes it as taken', async () => {
        const { peer, own } = await start();
        let isReady = true;
        for (let count = 0; count < 20; count += 1) isReady = own.send('x'.repeat(5 * kib)) && isReady;
        assert.equal(isReady, true, 'the socket itself takes 100 KiB');
        for (let count = 0; count < 20; count += 1)
          assert.equal((await peer.frame())?.payload.length, 5 * kib);
      });
    }

    // ws itself would wait 30 s.
    it('cuts a client that takes nothing, within its time after the close', { timeout: 20_000 }, async () => {
      const { server, peer, own } = await start({ limits: { realtimeCloseMs: 100 } });
      peer.stream.pause();
      while (own.waitingBytes() < 1024 * kib) own.send('x'.repeat(64 * kib));
      own.close(1013, 'fell behind; resume after evt_1');
      assert.equal(own.send('late'), false);
      assert.deepEqual(await server.closed(0), { code: 1013, by: 'server' });
      assert.equal(server.sockets.size, 0);
    });

    it('closes with 1013 a client that answers pings and takes nothing, and no sooner than its time', async () => {
      const { server, peer, own } = await start({
        limits: { answerStallTimeoutMs: 1000, realtimeCloseMs: 50, realtimeCompression: 'off' },
      });
      const [socket] = server.sockets;
      peer.stream.pause();
      own.send('x'.repeat(8 * 1024 * kib));
      while (own.waitingBytes() === 0) await turn();
      for (let waiting = -1; waiting !== own.waitingBytes(); await settle()) waiting = own.waitingBytes();
      socket?.sweep(0);
      socket?.sweep(0);
      peer.write(clientFrame(pong, ''));
      socket?.sweep(1000);
      assert.equal(own.send('y'), false, 'it is open');
      assert.equal(server.facts.length, 0);
      socket?.sweep(1001);
      assert.deepEqual(await server.closed(0), { code: 1013, by: 'server' });
      assert.equal(server.sockets.size, 0);
    });

    it('keeps a client that takes a little of one long message', async () => {
      const { server, peer, own } = await start({
        limits: { answerStallTimeoutMs: 1000, realtimeCompression: 'off' },
      });
      const [socket] = server.sockets;
      peer.stream.pause();
      own.send('x'.repeat(64 * 1024 * kib));
      for (let nowMs = 0; nowMs < 3000; nowMs += 900) {
        const before = own.waitingBytes();
        peer.stream.resume();
        while (own.waitingBytes() > before - 16 * kib) await turn();
        peer.stream.pause();
        assert.ok(own.waitingBytes() > 0, 'more is left');
        socket?.sweep(nowMs);
      }
      assert.equal(server.facts.length, 0);
    });

    it('cuts a client that leaves a Close unanswered', async () => {
      const { server, peer, own } = await start({ limits: { realtimeCloseMs: 100 } });
      own.close(1001, 'the server stops');
      assert.deepEqual(await peer.closeFrame(), { code: 1001, reason: 'the server stops' });
      assert.deepEqual(await server.closed(0), { code: 1001, by: 'server' });
      assert.notEqual(await peer.ended, undefined);
    });

    it('sends what was sent before the close, and ends without a reset once the client agrees', async () => {
      const { server, peer, own } = await start();
      own.send('last');
      own.close(1008, 'credential ended');
      own.close(1011, 'too late');
      assert.equal(await peer.text(), 'last');
      assert.deepEqual(await peer.closeFrame(), { code: 1008, reason: 'credential ended' });
      peer.write(clientClose(1008));
      assert.equal(await peer.ended, 'end');
      peer.end();
      assert.deepEqual(await server.closed(0), { code: 1008, by: 'server' });
    });

    it('cuts a reason to 123 octets between two characters', async () => {
      const { peer, own } = await start();
      own.close(4000, '€'.repeat(60));
      assert.deepEqual(await peer.closeFrame(), { code: 4000, reason: '€'.repeat(41) });
    });

    it('pings, keeps whoever answers and cuts whoever does not', async () => {
      const { server, peer: silent } = await start({ limits: { realtimePingMs: 100 } });
      assert.ok(silent.stream.readable);
      const alive = await RawPeer.open(protocol, server);
      const answering = (async () => {
        for (let pings = 0; pings < 4; ) {
          const frame = await alive.frame();
          if (frame?.opcode !== ping) continue;
          alive.write(clientFrame(pong, frame.payload));
          pings += 1;
        }
      })();
      assert.deepEqual(await server.closed(0), { code: 1006, by: 'connection' });
      await answering;
      alive.write(clientClose(1000));
      alive.end();
      assert.deepEqual(await server.closed(1), { code: 1000, by: 'client' });
      alive.release();
    });

    it('answers the last of many pings when the client reads again, and keeps no more of them', async () => {
      const { server, peer, own } = await start();
      peer.stream.pause();
      while (own.waitingBytes() < 64 * kib) own.send('x'.repeat(64 * kib));
      const waiting = own.waitingBytes();
      for (let count = 0; count < 500; count += 1) peer.write(clientFrame(ping, `${count}`.padEnd(125)));
      // A message after them: when it is there, they were read.
      const read = Promise.withResolvers<void>();
      server.onMessage = () => read.resolve();
      peer.write(clientFrame(text, 'read'));
      await read.promise;
      assert.ok(own.waitingBytes() - waiting < 16 * 130 + kib, 'sixteen pongs wait, not five hundred');
      peer.stream.resume();
      let last = '';
      while (last.trim() !== '499') {
        const frame = await peer.frame();
        if (frame?.opcode === pong) last = frame.payload.toString();
      }
    });

    it('reads no more from a client that takes nothing of what it asks for', async () => {
      let answered = 0;
      const { server, peer } = await start({
        limits: { realtimePingMs: 400, realtimeCompression: 'off' },
        conversation: () => ({
          subprotocol: undefined,
          open: (own) => ({
            onMessage: () => {
              answered += 1;
              own.send('x'.repeat(64 * kib));
            },
            onClosed: () => undefined,
          }),
        }),
      });
      peer.stream.pause();
      for (let count = 0; count < 5000; count += 1) peer.write(clientFrame(text, 'm'.repeat(200)));
      assert.deepEqual(await server.closed(0), { code: 1006, by: 'connection' });
      assert.ok(answered < 2500, `${answered} of 5000 were answered`);
    });

    it('notices a client that ends without a Close', async () => {
      const { server, peer } = await start();
      peer.write(clientFrame(text, 'a', { fin: false }));
      peer.end();
      assert.equal(await peer.ended, 'end');
      assert.deepEqual(await server.closed(0), { code: 1006, by: 'connection' });
    });

    it('notices a client that resets', async () => {
      const { server, peer } = await start();
      peer.reset();
      assert.deepEqual(await server.closed(0), { code: 1006, by: 'connection' });
      assert.equal(server.sockets.size, 0);
    });

    it('cuts at once when it is told to', async () => {
      const { server, peer } = await start();
      for (const socket of server.sockets) socket.terminate();
      assert.deepEqual(await server.closed(0), { code: 1006, by: 'server' });
      assert.equal(await peer.closeFrame(), undefined);
    });

    it('ends with 1011 the WebSocket whose conversation throws, and no other', async () => {
      const { server, peer } = await start({
        conversation: (index) => ({
          subprotocol: undefined,
          open: (own) => ({
            onMessage: (message) => {
              if (index === 0) throw new Error('broken');
              own.send(message);
            },
            onClosed: () => undefined,
          }),
        }),
      });
      const other = await RawPeer.open(protocol, server);
      peer.write(clientFrame(text, 'a'));
      assert.equal((await peer.closeFrame())?.code, 1011);
      assert.ok(server.facts.some((fact) => fact.kind === 'operation-failed'));
      other.write(clientFrame(text, 'b'));
      assert.equal(await other.text(), 'b');
      other.release();
    });

    it('ends with 1011 when the conversation throws at its start, and lets one close at its start', async () => {
      const { server, peer } = await start({
        conversation: (index) => ({
          subprotocol: undefined,
          open: (own) => {
            if (index === 0) throw new Error('broken');
            own.close(1008, 'not now');
            return {
              onMessage: () => assert.fail('a closed one is told nothing'),
              onClosed: () => undefined,
            };
          },
        }),
      });
      const other = await RawPeer.open(protocol, server);
      other.write(clientFrame(text, 'b'));
      assert.equal((await peer.closeFrame())?.code, 1011);
      assert.equal((await other.closeFrame())?.code, 1008);
      other.write(clientFrame(close));
      assert.equal(await other.ended, 'end');
      other.release();
    });

    it('tells the conversation once that it has closed', async () => {
      let closed = 0;
      const { server, peer } = await start({
        conversation: () => ({
          subprotocol: undefined,
          open: () => ({ onMessage: () => undefined, onClosed: () => (closed += 1) }),
        }),
      });
      peer.write(clientClose(1000));
      assert.equal(await peer.ended, 'end');
      peer.end();
      await server.closed(0);
      await server.stop();
      assert.equal(closed, 1);
      assert.equal(server.facts.length, 1);
    });
  });

  const start = async (
    options: ServerOptions = {},
  ): Promise<{ server: EchoServer & { onMessage?: () => void }; peer: RawPeer; own: ConversationPeer }> => {
    let own: ConversationPeer | undefined;
    let made: (EchoServer & { onMessage?: () => void }) | undefined;
    const server: EchoServer & { onMessage?: () => void } = await EchoServer.start({
      conversation: () => ({
        subprotocol: undefined,
        open: (peer) => {
          own = peer;
          return { onMessage: () => made?.onMessage?.(), onClosed: () => undefined };
        },
      }),
      ...options,
    });
    made = server;
    const peers: RawPeer[] = [];
    opened.push({ server, peers });
    const peer = await RawPeer.open(protocol, server);
    peers.push(peer);
    return { server, peer, own: own ?? unopened };
  };
}

/** For tests that bring a conversation of their own. */
const unopened: ConversationPeer = {
  send: () => false,
  waitingBytes: () => 0,
  onReady: () => undefined,
  memory: ampleMemory,
  close: () => undefined,
};
