/** Compressed messages (RFC 7692 §7), by one table over both protocols. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { EchoServer, protocols } from './echo-server.ts';
import { clientFrame, type Frame, opcodes, RawPeer } from './raw-peer.ts';

const offer = ['Sec-WebSocket-Extensions', 'permessage-deflate; client_max_window_bits'];
const compressed = { rsv: 4 };
const { continuation, ping, text } = opcodes;
const bomb = deflate(Buffer.alloc(32 * 1024 * 1024));

describe('compressed messages', () => {
  let server: EchoServer;
  before(async () => {
    server = await EchoServer.start();
  });
  after(() => server.stop());

  for (const protocol of protocols) {
    const open = () => RawPeer.open(protocol, server, offer);

    it(`over ${protocol}: compresses from the threshold on, each message on its own`, async () => {
      const peer = await open();
      const [short, long] = ['x'.repeat(1023), 'x'.repeat(1024)];
      peer.write(clientFrame(text, short), clientFrame(text, long), clientFrame(text, long));
      const frames = [await peer.frame(), await peer.frame(), await peer.frame()] as const;
      assert.deepEqual(
        frames.map((frame) => frame?.rsv1),
        [false, true, true],
      );
      assert.equal(frames[0]?.payload.toString(), short);
      assert.equal(inflate(frames[1]), long);
      assert.equal(inflate(frames[2]), long);
      peer.release();
    });

    it(`over ${protocol}: sends what compression would lengthen as it is`, async () => {
      const own = await EchoServer.start({ limits: { realtimeCompressionBytesMin: 0 } });
      const peer = await RawPeer.open(protocol, own, offer);
      peer.write(clientFrame(text, 'ab'), clientFrame(text, 'a'.repeat(100)));
      const [shortest, longer] = [await peer.frame(), await peer.frame()];
      assert.equal(shortest?.rsv1, false);
      assert.equal(shortest?.payload.toString(), 'ab');
      assert.equal(inflate(longer), 'a'.repeat(100));
      peer.release();
      await own.stop();
    });

    it(`over ${protocol}: reads compressed messages, whole, empty, in fragments and with a final block`, async () => {
      const peer = await open();
      const octets = deflate('in fragments');
      peer.write(
        clientFrame(text, deflate('whole'), compressed),
        clientFrame(text, Uint8Array.of(0), compressed),
        clientFrame(text, octets.subarray(0, 3), { fin: false, rsv: 4 }),
        clientFrame(ping, 'p'),
        clientFrame(continuation, '', { fin: false }),
        clientFrame(continuation, octets.subarray(3)),
        clientFrame(text, Buffer.concat([deflateRawSync('final'), Uint8Array.of(0)]), compressed),
        clientFrame(text, 'plain'),
      );
      const got: (string | undefined)[] = [];
      for (let count = 0; count < 6; count += 1) got.push(await peer.text());
      assert.deepEqual(got, ['whole', '', 'p', 'in fragments', 'final', 'plain']);
      peer.release();
    });

    const bad: readonly (readonly [title: string, sent: readonly Uint8Array[], code: number])[] = [
      ['what is not deflated', [clientFrame(text, Uint8Array.of(0xff, 0xff, 0xff), compressed)], 1007],
      [
        'text that is not UTF-8 once it is inflated',
        [clientFrame(text, deflate(Uint8Array.of(0xff)), compressed)],
        1007,
      ],
      ['a compressed ping', [clientFrame(ping, 'p', compressed)], 1002],
      [
        'a continuation with the bit of compression',
        [
          clientFrame(text, deflate('a'), { fin: false, rsv: 4 }),
          clientFrame(continuation, deflate('b'), compressed),
        ],
        1002,
      ],
      ['another reserved bit', [clientFrame(text, deflate('a'), { rsv: 6 })], 1002],
      ['a message of 32 MiB in 32 KiB', [clientFrame(text, bomb, compressed)], 1009],
      [
        'a message of one octet too many',
        [clientFrame(text, deflate('x'.repeat(128 * 1024 + 1)), compressed)],
        1009,
      ],
    ];
    for (const [title, sent, code] of bad) {
      it(`over ${protocol}: ends with ${code} for ${title}`, async () => {
        const peer = await open();
        const started = process.memoryUsage().rss;
        peer.write(...sent);
        assert.equal((await peer.closeFrame())?.code, code);
        assert.equal(await peer.ended, 'end');
        assert.ok(process.memoryUsage().rss - started < 24 * 1024 * 1024, 'the whole message was never had');
        peer.end();
        assert.deepEqual(await server.closed(server.opened - 1), { code, by: 'server' });
        peer.release();
      });
    }

    it(`over ${protocol}: reads a message of just the bound`, async () => {
      const peer = await open();
      peer.write(clientFrame(text, deflate('x'.repeat(128 * 1024)), compressed));
      // Longer than what is compressed for sending.
      assert.equal((await peer.frame())?.payload.length, 128 * 1024);
      peer.release();
    });
  }

  it('compresses for each window apart, and a client with a small one can read it', async () => {
    const message = Array.from({ length: 3000 }, (_, index) => `${(index * 7919) % 1000}`).join(' ');
    for (const bits of [9, 12, 15]) {
      const asked = ['Sec-WebSocket-Extensions', `permessage-deflate; server_max_window_bits=${bits}`];
      const peer = await RawPeer.open('HTTP/1.1', server, asked);
      peer.write(clientFrame(text, message));
      assert.equal(inflate(await peer.frame(), bits), message);
      peer.release();
    }
  });

  it('sends a client that asked for no compression the same message as it is', async () => {
    const peers: ((text: string) => void)[] = [];
    const own = await EchoServer.start({
      conversation: () => ({
        subprotocol: undefined,
        open: (peer) => {
          peers.push((message) => peer.send(message));
          return {
            onMessage: (message) => {
              for (const send of peers) send(message);
            },
            onClosed: () => undefined,
          };
        },
      }),
    });
    const plain = await RawPeer.open('HTTP/1.1', own);
    const deflated = await RawPeer.open('HTTP/2', own, offer);
    const message = 'm'.repeat(5000);
    plain.write(clientFrame(text, message));
    assert.equal(await plain.text(), message);
    const frame = await deflated.frame();
    assert.equal(frame?.rsv1, true);
    assert.equal(inflate(frame), message);
    plain.release();
    deflated.release();
    await own.stop();
  });
});

function deflate(content: string | Uint8Array): Buffer {
  return deflateRawSync(content, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
}

function inflate(frame: Frame | undefined, windowBits = 15): string {
  const payload = Buffer.concat([frame?.payload ?? Buffer.alloc(0), Uint8Array.of(0, 0, 0xff, 0xff)]);
  return inflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH, windowBits }).toString();
}
