/** `handle` in a node:http server that is not ours, as in any framework of Node. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { Handler } from '../../../src/http/message.ts';
import { createListener } from '../../../src/server/listener.ts';
import { listen } from '../../harness/listening.ts';
import { openRaw } from './raw-client.ts';
import { countContent, echo } from './serve.ts';

async function mount(t: TestContext, handler: Handler, upgrades = false) {
  const listener = createListener({ handler, observe: () => undefined, apiVersion: '1' });
  const server = createServer(listener.handle);
  if (upgrades) server.on('upgrade', listener.upgrade).on('connect', listener.connect);
  const { port } = await listen(server, t);
  const client = await openRaw(port);
  t.after(() => client.destroy());
  return { client, listener };
}

test('answers requests of another server', async (t) => {
  const { client, listener } = await mount(t, echo);
  assert.equal(listener.state(), 'idle');
  const answer = await client.send('GET /x HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(answer.body, 'GET /x');
  assert.equal(answer.fields.get('api-version'), '1');
  assert.equal(answer.fields.get('connection'), 'keep-alive');
});

test('reads content there, and leaves 100 (Continue) to that server', async (t) => {
  const { client } = await mount(t, countContent(10));
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n');
  assert.equal((await client.answer()).status, 100);
  assert.equal((await client.send('ok').answer()).body, '2');
});

test('closes connections with their answers once it drains', async (t) => {
  const { client, listener } = await mount(t, echo);
  assert.equal(await listener.drain(1_000), 0);
  assert.equal(listener.state(), 'stopped');
  const answer = await client.send('GET /x HTTP/1.1\r\nHost: a\r\n\r\n').answer();
  assert.equal(answer.fields.get('connection'), 'close');
});

test('takes the Upgrade to a WebSocket of another server, and ends it when it drains', async (t) => {
  const { client, listener } = await mount(
    t,
    (request) => ({
      status: 101,
      fields: [],
      content: null,
      conversation: {
        subprotocol: undefined,
        open: (peer) => {
          peer.send(request.target);
          return { onMessage: () => undefined, onClosed: () => undefined };
        },
      },
    }),
    true,
  );
  client.send(
    'GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  assert.equal((await client.answer()).status, 101);
  assert.equal(await client.until('/x'), '\x81\x02/x');
  assert.equal(listener.counts().sockets, 1);
  const drained = listener.drain(5_000);
  // 1001 and the reason; the answer is a masked close of the same code.
  await client.until('\x03\xe9server is going away');
  client.send('\x88\x82\0\0\0\0\x03\xe9');
  assert.equal(await client.closed, 'end');
  await drained;
  assert.equal(listener.counts().sockets, 0);
});

for (const [name, request, status] of [
  [
    'an Upgrade to what it does not speak',
    'GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n',
    200,
  ],
  [
    'an Upgrade in another version',
    'GET /x HTTP/2.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n',
    505,
  ],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n', 405],
] as const) {
  test(`answers ${status} there to ${name}, and closes`, async (t) => {
    const { client } = await mount(t, echo, true);
    const answer = await client.send(`${request}\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`).answer();
    assert.equal(answer.status, status);
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
    assert.equal(client.received, '');
  });
}
