/**
 * One address that takes all it can get: connections, busy and silent ones, and event streams. Health is answered throughout, and an administrator
 * gets what it asks for. The bounds are lower than by default, so that the attack stays short; the proportions are those of the defaults.
 */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { adminKey } from '../../harness/exchange.ts';
import { type Attacked, startAttacked } from '../attack/attacked-program.ts';

const env = {
  COMITY_CONNECTIONS_MAX: '100',
  COMITY_CONNECTIONS_PER_ADDRESS_MAX: '40',
  COMITY_CONNECTIONS_RESERVED_MAX: '10',
  COMITY_STREAMS_MAX: '30',
  COMITY_STREAMS_PER_ADDRESS_MAX: '10',
};

const events = 'GET /api/v1/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n';
const begun = 'POST /api/v1/webhooks/billing HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{';

/** Opens connections from an address, each of which sends the octets. Those that the server closes are opened again. */
function flood(
  t: TestContext,
  port: number,
  options: { localAddress: string; count: number; octets: string },
) {
  const { localAddress, count, octets } = options;
  const open = new Set<Socket>();
  let over = false;
  const start = (): void => {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('connect', () => socket.write(octets));
    socket.resume();
    socket.on('close', () => {
      open.delete(socket);
      if (!over) setTimeout(start, 1_000);
    });
  };
  for (let at = 0; at < count; at += 1) start();
  const stop = (): void => {
    over = true;
    for (const socket of open) socket.destroy();
  };
  t.after(stop);
}

type Asked = { readonly path: string; readonly key?: string; readonly accept?: string };

/** Status of one request on a connection of its own; 0 where there was no answer. */
function ask(port: number, { path, key, accept }: Asked): Promise<number> {
  const headers = {
    ...(key === undefined ? {} : { 'X-API-Key': key }),
    ...(accept === undefined ? {} : { Accept: accept }),
  };
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    asked.on('error', () => resolve(0));
    asked.end();
  });
}

/** This attack is for places and not for time, so that every probe was answered is what counts. */
async function assertAnswered(attacked: Attacked): Promise<void> {
  const { answers, failures } = await attacked.health();
  assert.ok(answers > 0);
  assert.equal(failures, 0, `${failures} of ${answers} probes of /health/live failed`);
}

for (const [what, octets] of [
  ['silent', ''],
  ['busy with content that does not come', begun],
] as const) {
  test(`answers health and an administrator while ${what} connections of a few addresses take all`, async (t) => {
    const attacked = await startAttacked(t, { env });
    const { port } = attacked.program;
    await attacked.health();
    for (const localAddress of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
      flood(t, port, { localAddress, count: 60, octets });
    }
    for (let round = 0; round < 20; round += 1) {
      assert.equal(await ask(port, { path: '/health/live' }), 200);
      assert.equal(await ask(port, { path: '/health/ready' }), 200);
      assert.equal(await ask(port, { path: '/api/v1/users', key: adminKey }), 200);
    }
    await assertAnswered(attacked);
  });
}

test('leaves event streams for others when one address opens as many as it can', async (t) => {
  const attacked = await startAttacked(t, { env });
  const { port } = attacked.program;
  flood(t, port, { localAddress: '127.0.0.2', count: 50, octets: events });
  const stream = { path: '/api/v1/events', accept: 'text/event-stream' };
  for (let round = 0; round < 20; round += 1) {
    assert.equal(await ask(port, { ...stream, key: adminKey }), 200);
    assert.equal(await ask(port, stream), 200);
  }
  await assertAnswered(attacked);
});
