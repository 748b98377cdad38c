/** The server's answer to an opening handshake that was judged before (RFC 6455 §4.2.2, RFC 8441 §5), and what is agreed in it. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { agreeOnCompression } from '../../../src/realtime/websocket/agree-compression.ts';
import { conversation, EchoServer, protocols } from './echo-server.ts';
import { clientFrame, opcodes, RawPeer } from './raw-peer.ts';

const fields = [
  'Date',
  'Sun, 06 Nov 1994 08:49:37 GMT',
  'API-Version',
  '1',
  'Connection',
  'close',
  'Content-Length',
  '0',
  'Transfer-Encoding',
  'chunked',
];

for (const protocol of protocols) {
  describe(`the handshake over ${protocol}`, () => {
    let server: EchoServer;
    before(async () => {
      server = await EchoServer.start({
        fields,
        conversation: () => conversation((peer, text) => peer.send(text), 'comity.v1'),
      });
    });
    after(() => server.stop());

    it('carries the fields of the answer, without those of the connection and of framing', async () => {
      const peer = await RawPeer.open(protocol, server);
      assert.equal(peer.fields.get('api-version'), '1');
      assert.equal(peer.fields.get('date'), 'Sun, 06 Nov 1994 08:49:37 GMT');
      assert.equal(peer.fields.get('sec-websocket-protocol'), 'comity.v1');
      assert.equal(peer.fields.has('content-length'), false);
      assert.equal(peer.fields.has('transfer-encoding'), false);
      assert.equal(peer.fields.has('sec-websocket-extensions'), false);
      peer.release();
    });

    it('answers with the status and the fields of its protocol', async () => {
      const peer = await RawPeer.open(protocol, server);
      const isHttp1 = protocol === 'HTTP/1.1';
      assert.equal(peer.status, isHttp1 ? 101 : 200);
      assert.equal(peer.fields.get('upgrade'), isHttp1 ? 'websocket' : undefined);
      assert.equal(peer.fields.get('connection'), isHttp1 ? 'Upgrade' : undefined);
      const accept = isHttp1 ? 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=' : undefined;
      assert.equal(peer.fields.get('sec-websocket-accept'), accept);
      peer.release();
    });

    it('ends with 1002 for extensions that are no list', async () => {
      const peer = await RawPeer.open(protocol, server, [
        'Sec-WebSocket-Extensions',
        'permessage-deflate; =',
      ]);
      assert.deepEqual(await peer.closeFrame(), {
        code: 1002,
        reason: 'Sec-WebSocket-Extensions is malformed',
      });
      peer.write(clientFrame(opcodes.close));
      assert.equal(await peer.ended, 'end');
      peer.release();
    });
  });
}

it('reads frames that came in one packet with the handshake', async () => {
  const server = await EchoServer.start();
  const peer = await RawPeer.open('HTTP/1.1', server, [], clientFrame(opcodes.text, 'early'));
  assert.equal(await peer.text(), 'early');
  peer.release();
  await server.stop();
});

describe('what is agreed about permessage-deflate', () => {
  const both = 'permessage-deflate; server_no_context_takeover; client_no_context_takeover';
  const rows: readonly (readonly [asked: string, field: string | undefined, bits: number | undefined])[] = [
    ['permessage-deflate', both, 15],
    ['permessage-deflate; client_max_window_bits', both, 15],
    ['permessage-deflate; server_no_context_takeover', both, 15],
    ['x-webkit-deflate-frame, permessage-deflate', both, 15],
    ['permessage-deflate; unknown=1, permessage-deflate', both, 15],
    ['permessage-deflate; server_max_window_bits=8, permessage-deflate', both, 15],
    ['permessage-deflate; server_max_window_bits=8', undefined, undefined],
    ['permessage-deflate; server_max_window_bits=16', undefined, undefined],
    ['permessage-deflate; server_max_window_bits', undefined, undefined],
    ['permessage-deflate; server_no_context_takeover=1', undefined, undefined],
    ['permessage-deflate; unknown', undefined, undefined],
    ['x-other', undefined, undefined],
    ['', undefined, undefined],
  ];
  for (const [asked, field, bits] of rows) {
    it(`answers ${asked === '' ? 'an empty field' : asked} with ${field ?? 'nothing'}`, () => {
      const agreed = agreeOnCompression(['sec-websocket-extensions', asked], { realtimeCompression: 'on' });
      assert.deepEqual(agreed, { field, sentWindowBits: bits, complaint: undefined });
    });
  }

  it('keeps to the window that a client asks for', () => {
    const agreed = agreeOnCompression(
      ['Sec-WebSocket-Extensions', 'permessage-deflate; server_max_window_bits=10; client_max_window_bits=9'],
      { realtimeCompression: 'on' },
    );
    assert.equal(agreed.sentWindowBits, 10);
    assert.match(agreed.field ?? '', /server_max_window_bits=10/);
  });

  it('reads the lines of the field as one list', () => {
    const lines = ['Sec-WebSocket-Extensions', 'x-other', 'Sec-WebSocket-Extensions', 'permessage-deflate'];
    assert.equal(agreeOnCompression(lines, { realtimeCompression: 'on' }).sentWindowBits, 15);
  });

  it('agrees to nothing when it is off', () => {
    const asked = ['Sec-WebSocket-Extensions', 'permessage-deflate'];
    assert.equal(agreeOnCompression(asked, { realtimeCompression: 'off' }).field, undefined);
  });
});
