/** A port of several sockets: connections that come at once are accepted several a turn, and a port that another program has is refused. */
import assert from 'node:assert/strict';
import { connect, createServer, type Server } from 'node:net';
import { platform } from 'node:process';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Handler } from '../../../../src/http/message.ts';
import { createListener } from '../../../../src/server/listener.ts';
import { serve } from '../serve.ts';

const empty: Handler = () => ({ status: 204, fields: [], content: null });
const spreads = platform === 'linux';

async function listening(context: TestContext, port: number, reusePort: boolean): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host: '127.0.0.1', port, reusePort }, resolve);
  });
  context.after(() => server.close());
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

test('connections that come at once are accepted several a turn', { skip: !spreads }, async (context) => {
  const { listener, port } = await serve(context, empty);
  const clients = Array.from({ length: 200 }, () => connect(port, '127.0.0.1'));
  context.after(() => {
    for (const client of clients) client.destroy();
  });
  let before = 0;
  let most = 0;
  while (before < clients.length) {
    await nextTurn();
    const { connections } = listener.counts();
    most = Math.max(most, connections - before);
    before = connections;
  }
  assert.ok(most >= 3, `${most} in one turn`);
});

for (const reusePort of spreads ? [false, true] : [false]) {
  test(`a port that another program has is refused${reusePort ? ', also if that one would share it' : ''}`, async (context) => {
    const port = portOf(await listening(context, 0, reusePort));
    const listener = createListener({ handler: empty, observe: () => undefined, apiVersion: '1' });
    await assert.rejects(listener.listen('127.0.0.1', port), { code: 'EADDRINUSE' });
    assert.equal(listener.state(), 'idle');
  });
}

test('no other program gets the port of a listener until it has drained', async (context) => {
  const { listener, port } = await serve(context, empty);
  await assert.rejects(listening(context, port, false), { code: 'EADDRINUSE' });
  await listener.drain(0);
  await listening(context, port, false);
});
