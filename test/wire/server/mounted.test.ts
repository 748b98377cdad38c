/** `handle` in a node:http server that is not ours, as in any framework of Node. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Handler } from '../../../src/http/message.ts';
import { createListener } from '../../../src/server/listener.ts';
import { openRaw } from './raw-client.ts';
import { countContent, echo } from './serve.ts';

async function mount(t: TestContext, handler: Handler) {
  const listener = createListener({ handler, observe: () => undefined, apiVersion: '1' });
  const server = createServer(listener.handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = await openRaw((server.address() as AddressInfo).port);
  t.after(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });
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
