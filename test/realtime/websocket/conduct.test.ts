/** What a WebSocket does with each kind of frame (RFC 6455 §5, §7), by one table over both protocols; the rows follow Autobahn's cases. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EchoServer, protocols } from './echo-server.ts';
import { clientClose, clientFrame, opcodes, RawPeer } from './raw-peer.ts';

const { binary, close, continuation, ping, pong, text } = opcodes;
const part = { fin: false };

type Row = {
  readonly title: string;
  readonly sent: readonly Uint8Array[];
  /** Opcode and payload of each frame that comes back. */
  readonly answered: readonly (readonly [number, string])[];
};

const served: readonly Row[] = [
  ...[0, 1, 125, 126, 127, 65_535, 65_536, 128 * 1024].map((length) => ({
    title: `echoes a message of ${length} octets`,
    sent: [clientFrame(text, 'x'.repeat(length))],
    answered: [[text, 'x'.repeat(length)] as const],
  })),
  {
    title: 'puts the fragments of a message together',
    sent: [
      clientFrame(text, 'a', part),
      clientFrame(continuation, 'b', part),
      clientFrame(continuation, 'c'),
    ],
    answered: [[text, 'abc']],
  },
  {
    title: 'puts empty fragments together',
    sent: [clientFrame(text, '', part), clientFrame(continuation, '', part), clientFrame(continuation, '')],
    answered: [[text, '']],
  },
  {
    title: 'answers a ping between two fragments at once',
    sent: [clientFrame(text, 'a', part), clientFrame(ping, 'now'), clientFrame(continuation, 'b')],
    answered: [
      [pong, 'now'],
      [text, 'ab'],
    ],
  },
  {
    title: 'answers a ping of 125 octets with the same octets',
    sent: [clientFrame(ping, 'p'.repeat(125))],
    answered: [[pong, 'p'.repeat(125)]],
  },
  {
    title: 'takes a pong that it did not ask for',
    sent: [clientFrame(pong, 'unasked'), clientFrame(text, 'after')],
    answered: [[text, 'after']],
  },
  {
    title: 'reads a character that is split over two fragments',
    sent: [
      clientFrame(text, Uint8Array.of(0xe2, 0x82), part),
      clientFrame(continuation, Uint8Array.of(0xac)),
    ],
    answered: [[text, '€']],
  },
  {
    title: 'reads characters outside the basic plane',
    sent: [clientFrame(text, '𝄞 κόσμε \u0000 \uffff')],
    answered: [[text, '𝄞 κόσμε \u0000 \uffff']],
  },
  {
    title: 'reads many messages that come at once, in their order',
    sent: [...'abcdefgh'].map((letter) => clientFrame(text, letter)),
    answered: [...'abcdefgh'].map((letter) => [text, letter] as const),
  },
];

type EndRow = {
  readonly title: string;
  readonly sent: readonly Uint8Array[];
  readonly code: number;
  readonly by: 'client' | 'server';
};

const ended: readonly EndRow[] = [
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map(
    (code) => ({
      title: `echoes a Close with ${code}`,
      sent: [clientClose(code, 'bye')],
      code,
      by: 'client' as const,
    }),
  ),
  { title: 'answers an empty Close with one', sent: [clientFrame(close)], code: 1005, by: 'client' },
  {
    title: 'takes a Close with a reason of 123 octets',
    sent: [clientClose(1000, 'r'.repeat(123))],
    code: 1000,
    by: 'client',
  },
  {
    title: 'reads nothing after a Close',
    sent: [clientClose(1000), clientFrame(text, 'late'), clientFrame(ping)],
    code: 1000,
    by: 'client',
  },
  {
    title: 'takes a Close between two fragments',
    sent: [clientFrame(text, 'a', part), clientClose(1000)],
    code: 1000,
    by: 'client',
  },
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) => ({
    title: `ends with 1002 for a Close with ${code}, which may not be sent`,
    sent: [clientClose(code)],
    code: 1002,
    by: 'server' as const,
  })),
  {
    title: 'ends with 1002 for a Close of one octet',
    sent: [clientFrame(close, 'x')],
    code: 1002,
    by: 'server',
  },
  {
    title: 'ends with 1007 for a Close whose reason is not UTF-8',
    sent: [clientClose(1000, Uint8Array.of(0xff))],
    code: 1007,
    by: 'server',
  },
  {
    title: 'ends with 1003 for a binary message',
    sent: [clientFrame(binary, 'x')],
    code: 1003,
    by: 'server',
  },
  {
    title: 'ends with 1003 for an empty binary message in fragments',
    sent: [clientFrame(binary, '', part), clientFrame(continuation)],
    code: 1003,
    by: 'server',
  },
  {
    title: 'ends with 1007 for text that is not UTF-8',
    sent: [clientFrame(text, Uint8Array.of(0x61, 0xff))],
    code: 1007,
    by: 'server',
  },
  {
    title: 'ends with 1007 for a surrogate in UTF-8',
    sent: [clientFrame(text, Uint8Array.of(0xed, 0xa0, 0x80))],
    code: 1007,
    by: 'server',
  },
  {
    title: 'ends with 1007 for an overlong form',
    sent: [clientFrame(text, Uint8Array.of(0xc0, 0xaf))],
    code: 1007,
    by: 'server',
  },
  {
    title: 'ends with 1007 for a message that ends within a character',
    sent: [clientFrame(text, Uint8Array.of(0xe2), part), clientFrame(continuation, Uint8Array.of(0x82))],
    code: 1007,
    by: 'server',
  },
  {
    title: 'ends with 1002 for an unmasked frame',
    sent: [clientFrame(text, 'x', { masked: false })],
    code: 1002,
    by: 'server',
  },
  ...[1, 2, 3, 4, 7].map((rsv) => ({
    title: `ends with 1002 for the reserved bits ${rsv.toString(2).padStart(3, '0')} without an extension`,
    sent: [clientFrame(text, 'x', { rsv })],
    code: 1002,
    by: 'server' as const,
  })),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => ({
    title: `ends with 1002 for the opcode ${opcode}`,
    sent: [clientFrame(opcode)],
    code: 1002,
    by: 'server' as const,
  })),
  {
    title: 'ends with 1002 for a ping of 126 octets',
    sent: [clientFrame(ping, 'p'.repeat(126))],
    code: 1002,
    by: 'server',
  },
  {
    title: 'ends with 1002 for a ping in fragments',
    sent: [clientFrame(ping, 'p', part)],
    code: 1002,
    by: 'server',
  },
  {
    title: 'ends with 1002 for a continuation of nothing',
    sent: [clientFrame(continuation, 'x')],
    code: 1002,
    by: 'server',
  },
  {
    title: 'ends with 1002 for a message within a message',
    sent: [clientFrame(text, 'a', part), clientFrame(text, 'b')],
    code: 1002,
    by: 'server',
  },
  {
    title: 'ends with 1009 for a message of one octet too many, before its content came',
    sent: [clientFrame(text, 'x'.repeat(128 * 1024 + 1)).subarray(0, 14)],
    code: 1009,
    by: 'server',
  },
  {
    title: 'ends with 1009 for a length beyond what can be counted',
    sent: [Uint8Array.of(0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)],
    code: 1009,
    by: 'server',
  },
  {
    title: 'ends with 1009 for fragments that are too long together',
    sent: [clientFrame(text, 'x'.repeat(100_000), part), clientFrame(continuation, 'x'.repeat(50_000), part)],
    code: 1009,
    by: 'server',
  },
  {
    title: 'ends with 1009 for empty fragments without end',
    sent: [
      clientFrame(text, '', part),
      ...Array.from({ length: 1024 }, () => clientFrame(continuation, '', part)),
    ],
    code: 1009,
    by: 'server',
  },
];

for (const protocol of protocols) {
  describe(`a WebSocket over ${protocol}`, () => {
    let server: EchoServer;
    before(async () => {
      server = await EchoServer.start();
    });
    after(() => server.stop());

    for (const { title, sent, answered } of served) {
      it(title, async () => {
        const peer = await RawPeer.open(protocol, server);
        peer.write(...sent);
        for (const [opcode, payload] of answered) {
          const frame = await peer.frame();
          assert.equal(frame?.opcode, opcode);
          assert.equal(frame?.payload.toString(), payload);
          assert.equal(frame?.fin, true);
        }
        peer.release();
      });
    }

    it('reads frames that come an octet at a time', async () => {
      const peer = await RawPeer.open(protocol, server);
      const octets = Buffer.concat([
        clientFrame(text, 'a', part),
        clientFrame(ping, 'p'),
        clientFrame(continuation, 'b'.repeat(126)),
      ]);
      for (const octet of octets) {
        peer.write(Uint8Array.of(octet));
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(await peer.text(), 'p');
      assert.equal(await peer.text(), `a${'b'.repeat(126)}`);
      peer.release();
    });

    for (const { title, sent, code, by } of ended) {
      it(title, async () => {
        const peer = await RawPeer.open(protocol, server);
        peer.write(...sent);
        assert.equal((await peer.closeFrame())?.code, code);
        peer.write(clientFrame(close));
        assert.equal(await peer.frame(), undefined, 'nothing follows the Close frame');
        assert.equal(await peer.ended, 'end', 'the stream ends without a reset');
        peer.end();
        assert.deepEqual(await server.closed(server.opened - 1), { code, by });
        peer.release();
      });
    }
  });
}
