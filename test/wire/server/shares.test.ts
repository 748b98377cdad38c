/** Who may have how many connections, event streams and WebSockets (§8), each bound at its edge. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { frameTypes } from '../../../conduct/frames.ts';
import type { Request, Response } from '../../../src/http/message.ts';
import type { ServerLimits } from '../../../src/server/limits.ts';
import { get as getHttp2, openRawSession, request } from '../http2/raw-session.ts';
import { openRaw, type RawClient } from './raw-client.ts';
import { echo, type ServeOptions, serve, text } from './serve.ts';

const get = (target = '/') => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Holds the answer to `/held` back; its status shows whether a request came by a connection of the reserve. */
function answer(request: Request): Response | Promise<Response> {
  if (request.target === '/held') return new Promise(() => undefined);
  return request.reserved === true ? text(503, 'reserve') : echo(request);
}

async function start(t: TestContext, limits: Partial<ServerLimits>, options: ServeOptions = {}) {
  const served = await serve(t, answer, limits, options);
  /** Opens connections on each of which an answer is owed. */
  const occupy = async (count: number): Promise<readonly RawClient[]> => {
    const before = served.listener.counts().requests;
    const held: RawClient[] = [];
    for (let at = 0; at < count; at += 1) held.push((await served.open()).send(get('/held')));
    while (served.listener.counts().requests < before + count) await turn();
    return held;
  };
  return { ...served, occupy };
}

test('closes a connection that owes nothing for one that comes over the bound of all', async (t) => {
  const { open, listener } = await start(t, { connectionsMax: 2, connectionsReservedMax: 0 });
  const [first, second] = [await open(), await open()];
  for (const client of [first, second]) await client.send(get()).answer();
  const third = (await open()).send(get());
  assert.equal((await third.answer()).status, 200);
  await first.closed;
  assert.equal((await second.send(get()).answer()).status, 200);
  assert.equal(listener.counts().connections, 2);
});

test('refuses connections over the limit while all are busy, and takes new ones when some have gone', async (t) => {
  const { open, observed, occupy, listener } = await start(t, {
    connectionsMax: 2,
    connectionsReservedMax: 0,
  });
  const [first] = await occupy(2);
  await (await open()).closed;
  assert.deepEqual(observed.at(-1), { kind: 'connection-refused', peer: '127.0.0.1' });
  // A FIN alone would leave the answer owed.
  first?.socket.resetAndDestroy();
  while (listener.counts().connections > 1) await turn();
  assert.equal((await (await open()).send(get()).answer()).status, 200);
});

test('bounds the connections of one address, and leaves room for another', async (t) => {
  const limits = { connectionsMax: 10, connectionsPerAddressMax: 2, connectionsReservedMax: 0 };
  const { open, occupy, port } = await start(t, limits);
  await occupy(2);
  await (await open()).closed;
  const other = await openRaw(port, '127.0.0.2');
  t.after(() => other.destroy());
  assert.equal((await other.send(get()).answer()).status, 200);
});

test('sets no bound on the connections of one address at 0, nor behind a proxy', async (t) => {
  for (const [connectionsPerAddressMax, behindProxy] of [
    [0, false],
    [2, true],
  ] as const) {
    const limits = { connectionsPerAddressMax, connectionsReservedMax: 0 };
    const { open, occupy } = await start(t, limits, { behindProxy });
    await occupy(5);
    assert.equal((await (await open()).send(get()).answer()).status, 200);
  }
});

test('answers once on a connection of the reserve, closes it, and lets the resource know', async (t) => {
  const { open, occupy } = await start(t, { connectionsMax: 1, connectionsReservedMax: 1 });
  await occupy(1);
  const client = (await open()).send(get() + get());
  const reserved = await client.answer();
  assert.deepEqual([reserved.status, reserved.fields.get('connection')], [503, 'close']);
  assert.equal(await client.closed, 'end');
  assert.equal(client.received, '');
});

test('closes an HTTP/2 connection of the reserve after its streams', async (t) => {
  const { occupy, port } = await start(t, { connectionsMax: 1, connectionsReservedMax: 1 });
  await occupy(1);
  const session = (await openRawSession(port)).start().send(request(1, getHttp2('/')));
  t.after(() => session.socket.destroy());
  await session.frame(frameTypes.headers, 1);
  assert.equal(await session.goawayCode(), 0);
});

test('gives a full reserve to the newest connection, as long as it is held by connections that ask nothing', async (t) => {
  const { open, occupy, listener } = await start(t, { connectionsMax: 1, connectionsReservedMax: 2 });
  await occupy(1);
  const silent = [await open(), await open(), await open()];
  const asking = (await open()).send(get());
  assert.equal((await asking.answer()).status, 503);
  await Promise.all(silent.slice(0, 2).map(({ closed }) => closed));
  assert.ok(listener.counts().connections <= 3);
});

test('closes a connection that sends empty lines and no request', async (t) => {
  const { open } = await start(t, { keepAliveTimeoutMs: 500, headersTimeoutMs: 500 });
  const client = (await open()).send(get());
  await client.answer();
  const lines = setInterval(() => client.send('\r\n'), 10);
  t.after(() => clearInterval(lines));
  await client.closed;
});

test('waits no longer than its time for content after an answer that came before it', async (t) => {
  const { open } = await start(t, { unreadContentTimeoutMs: 40 });
  const client = (await open()).send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234');
  assert.equal((await client.answer()).status, 200);
  assert.equal(await client.closed, 'end');
});

test('goes on with a connection whose content came in time after the answer', async (t) => {
  const { open } = await start(t, { unreadContentTimeoutMs: 10_000 });
  const client = (await open()).send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234');
  await client.answer();
  client.send(`56789${get('/next')}`);
  assert.equal((await client.answer()).body, 'GET /next');
});

const stream = { open: () => () => undefined };
const streamOf = (holder: NonNullable<Response['holder']>): Response => ({
  ...{ status: 200, fields: ['Content-Type', 'text/event-stream'], content: stream, holder },
});
const holders: Readonly<Record<string, NonNullable<Response['holder']>>> = {
  '/ada': { id: 'ada', isAdministrator: false },
  '/bob': { id: 'bob', isAdministrator: false },
  '/root': { id: 'root', isAdministrator: true },
  '/': { id: undefined, isAdministrator: false },
};

test('bounds the event streams of a principal and of an address apart, and of all but for administrators', async (t) => {
  const limits = { streamsMax: 4, streamsPerPrincipalMax: 2, streamsPerAddressMax: 1, streamsReservedMax: 1 };
  const { open } = await serve(t, ({ target }) => streamOf(holders[target] ?? fail(target)), limits);
  const clients: RawClient[] = [];
  const statusOf = async (target: string) => {
    const client = (await open()).send(get(target));
    clients.push(client);
    return Number((await client.until('\r\n\r\n')).slice(9, 12));
  };
  const statuses: number[] = [];
  for (const target of ['/', '/', '/ada', '/ada', '/ada', '/bob', '/bob', '/root', '/root']) {
    statuses.push(await statusOf(target));
  }
  assert.deepEqual(statuses, [200, 429, 200, 200, 429, 200, 503, 200, 503]);
  clients[0]?.destroy();
  clients[2]?.destroy();
  for (let status = 0; status !== 200; ) status = await statusOf('/ada');
});

function fail(target: string): never {
  throw new Error(`no program listens at ${target}`);
}
