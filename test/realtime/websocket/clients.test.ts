/** Clients that others wrote: `ws`, and the WebSocket of undici over HTTP/1.1 and, as an extended CONNECT, over HTTP/2. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { after, before, describe, it } from 'node:test';
import { Agent, WebSocket as UndiciSocket } from 'undici';
import { WebSocket } from 'ws';
import { converseHttp2 } from '../../../src/realtime/websocket/converse.ts';
import { createFleet } from '../../../src/realtime/websocket/frames.ts';
import { cert, key } from '../../accounts/mail/certificate.ts';
import { listen } from '../../harness/listening.ts';
import { ampleLease } from '../../memory/ample.ts';
import { conversation, EchoServer, limits } from './echo-server.ts';

const long = 'long message '.repeat(9000);

describe('a WebSocket with a client of another make', () => {
  let server: EchoServer;
  before(async () => {
    server = await EchoServer.start({
      conversation: () => conversation((peer, text) => peer.send(text), 'comity.v1'),
    });
  });
  after(() => server.stop());

  for (const perMessageDeflate of [true, false]) {
    it(`echoes and closes with ws, ${perMessageDeflate ? 'with' : 'without'} compression`, async () => {
      const client = new WebSocket(`ws://127.0.0.1:${server.port('HTTP/1.1')}`, ['comity.v1'], {
        perMessageDeflate,
      });
      await once(client, 'open');
      assert.equal(client.protocol, 'comity.v1');
      assert.equal(client.extensions, perMessageDeflate ? 'permessage-deflate' : '');
      for (const message of ['short', '', long, '€'.repeat(2000)]) {
        client.send(message);
        const [data, isBinary] = await once(client, 'message');
        assert.equal(String(data), message);
        assert.equal(isBinary, false);
      }
      client.ping('p');
      assert.equal(String((await once(client, 'pong'))[0]), 'p');
      client.close(4000, 'enough');
      assert.equal((await once(client, 'close'))[0], 4000);
      assert.deepEqual(await server.closed(server.opened - 1), { code: 4000, by: 'client' });
    });
  }

  it('answers the pings of the server with ws, and is closed by it', async () => {
    const client = new WebSocket(`ws://127.0.0.1:${server.port('HTTP/1.1')}`, ['comity.v1']);
    await once(client, 'open');
    for (const socket of server.sockets) socket.close(1001, 'the server stops');
    const [code, reason] = await once(client, 'close');
    assert.equal(code, 1001);
    assert.equal(String(reason), 'the server stops');
    assert.deepEqual(await server.closed(server.opened - 1), { code: 1001, by: 'server' });
  });

  it('echoes and closes with undici over HTTP/1.1', async () => {
    const dispatcher = new Agent({ allowH2: false });
    await speak(
      new UndiciSocket(`ws://127.0.0.1:${server.port('HTTP/1.1')}`, { protocols: ['comity.v1'], dispatcher }),
    );
    assert.deepEqual(await server.closed(server.opened - 1), { code: 3000, by: 'client' });
    await dispatcher.close();
  });

  it('echoes and closes with undici over HTTP/2', async () => {
    const facts: unknown[] = [];
    const closed = Promise.withResolvers<void>();
    const secure = createSecureServer({ cert, key, settings: { enableConnectProtocol: true } });
    secure.on('stream', (stream, _fields, _flags, rawFields) => {
      converseHttp2(
        { stream: stream as ServerHttp2Stream, rawFields },
        {
          conversation: conversation((peer, text) => peer.send(text), 'comity.v1'),
          fields: [],
          peer: 'undici',
          limits,
          fleet: createFleet(limits),
          memory: ampleLease(),
          observe: (fact) => facts.push(fact),
          onClosed: closed.resolve,
        },
      );
    });
    const { port, close } = await listen(secure);
    const dispatcher = new Agent({ allowH2: true, connect: { rejectUnauthorized: false } });
    await speak(new UndiciSocket(`wss://127.0.0.1:${port}`, { protocols: ['comity.v1'], dispatcher }));
    await closed.promise;
    assert.equal(facts.length, 1);
    await dispatcher.destroy();
    await close();
  });
});

async function speak(client: UndiciSocket): Promise<void> {
  await happening(client, 'open');
  assert.equal(client.protocol, 'comity.v1');
  for (const message of ['short', long]) {
    client.send(message);
    assert.equal((await happening<{ data: unknown }>(client, 'message')).data, message);
  }
  client.close(3000, 'enough');
  const { code, wasClean } = await happening<{ code: number; wasClean: boolean }>(client, 'close');
  assert.deepEqual({ code, wasClean }, { code: 3000, wasClean: true });
}

function happening<T>(client: UndiciSocket, name: 'open' | 'message' | 'close'): Promise<T> {
  return new Promise((resolve, reject) => {
    client.addEventListener(name, (event) => resolve(event as T), { once: true });
    if (name !== 'close')
      client.addEventListener('error', () => reject(new Error(`no ${name}`)), { once: true });
  });
}
