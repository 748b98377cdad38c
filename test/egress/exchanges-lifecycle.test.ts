import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '../harness/until.ts';
import { callTo, type ExchangesUnderTest, exchangesWith, kindOf } from './exchanges-under-test.ts';
import { type Answer, plainAnswer, type RawReceiver, startRawReceiver } from './raw-receiver.ts';

/** Both are closed also where an assertion fails. */
async function receiverFor(t: TestContext, answer: Answer): Promise<RawReceiver> {
  const receiver = await startRawReceiver(answer);
  t.after(() => receiver.close());
  return receiver;
}

function exchangesFor(t: TestContext, options?: Parameters<typeof exchangesWith>[0]): ExchangesUnderTest {
  const exchanges = exchangesWith(options);
  t.after(() => exchanges.close());
  return exchanges;
}

const never = () => new Promise<readonly string[]>(() => undefined);

test('ends what is under way as aborted when the signal says so, and starts nothing after', async (t) => {
  const receiver = await receiverFor(t, () => undefined);
  const exchanges = exchangesFor(t, { dialer: { lookup: never } });
  const controller = new AbortController();
  const { signal } = controller;
  const asking = Array.from({ length: 20 }, () => exchanges.exchange(callTo(receiver.url, { signal })));
  const resolving = exchanges.exchange(callTo('http://hooks.example/', { signal }));
  await until(() => receiver.requests.length === 8);
  controller.abort();
  assert.deepEqual(new Set((await Promise.all([...asking, resolving])).map(kindOf)), new Set(['aborted']));
  assert.equal(kindOf(await exchanges.exchange(callTo(receiver.url, { signal }))), 'aborted');
  assert.equal(receiver.requests.length, 8);
});

test('closes: what is under way is aborted, the connections end, and nothing can be begun', async (t) => {
  const receiver = await receiverFor(t, (socket, _request, count) => {
    if (count === 1) socket.write(plainAnswer(200, ''));
  });
  const exchanges = exchangesFor(t, { dialer: { lookup: never } });
  assert.equal(kindOf(await exchanges.exchange(callTo(receiver.url))), '200 whole');
  const asking = exchanges.exchange(callTo(receiver.url));
  const resolving = exchanges.exchange(callTo('http://hooks.example/'));
  await until(() => receiver.requests.length === 2);
  await exchanges.close();
  assert.equal(kindOf(await asking), 'aborted');
  assert.equal(kindOf(await resolving), 'aborted');
  assert.equal(exchanges.size(), 0);
  assert.equal(kindOf(await exchanges.exchange(callTo(receiver.url))), 'aborted');
});

test('opens no more connections to an origin than it may; a call whose time ends in the queue is never sent', async (t) => {
  const held: Socket[] = [];
  const receiver = await receiverFor(t, (socket) => held.push(socket));
  const exchanges = exchangesFor(t, { settings: { egressConnectionsPerOriginMax: 2 } });
  const first = [exchanges.exchange(callTo(receiver.url)), exchanges.exchange(callTo(receiver.url))];
  await until(() => held.length === 2);
  const waiting = await exchanges.exchange(callTo(receiver.url, { timeoutMs: 30, body: 'late' }));
  assert.ok(waiting.kind === 'failed');
  assert.deepEqual(
    [waiting.failure, waiting.message],
    ['timeout', 'The limit of 30 ms was reached before a connection was free'],
  );
  const next = exchanges.exchange(callTo(receiver.url, { body: 'next' }));
  for (const socket of held.splice(0)) socket.write(plainAnswer(200, ''));
  assert.deepEqual((await Promise.all(first)).map(kindOf), ['200 whole', '200 whole']);
  await until(() => held.length === 1);
  for (const socket of held) socket.write(plainAnswer(200, ''));
  assert.equal(kindOf(await next), '200 whole');
  assert.deepEqual(receiver.requests.map(({ body }) => body).slice(2), ['next']);
  assert.equal(receiver.connections(), 2);
});

test('sends for one share at once while another holds all connections to the origin', async (t) => {
  const held: Socket[] = [];
  const receiver = await receiverFor(t, (socket, { body }) => {
    if (body === 'hang') held.push(socket);
    else socket.write(plainAnswer(200, ''));
  });
  const exchanges = exchangesFor(t);
  const stop = new AbortController();
  const { signal } = stop;
  const call = (share: string, body: string) =>
    exchanges.exchange(callTo(receiver.url, { share, body, signal }));
  const hanging = Array.from({ length: 12 }, () => call('one', 'hang'));
  await until(() => held.length === 8);
  assert.equal(kindOf(await call('two', 'answered')), '200 whole');
  // What is its own is bounded as well.
  hanging.push(call('three', 'hang'), call('three', 'hang'), call('three', 'hang'));
  await until(() => held.length === 10);
  assert.equal(kindOf(await call('two', 'answered')), '200 whole');
  assert.equal(held.length, 10);
  held.pop()?.write(plainAnswer(200, ''));
  await until(() => held.length === 10);
  stop.abort();
  const kinds = (await Promise.all(hanging)).map(kindOf);
  assert.equal(kinds.filter((kind) => kind === '200 whole').length, 1);
});

test('keeps connections to so many origins, and gives up the one used least lately', async (t) => {
  const receivers = await Promise.all(
    Array.from({ length: 3 }, () => receiverFor(t, (socket) => socket.write(plainAnswer(200, '')))),
  );
  const [a, b, c] = receivers.map(({ url }) => url);
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  const exchanges = exchangesFor(t, { settings: { egressOriginsMax: 2 } });
  const isReused = async (url: URL) => {
    const outcome = await exchanges.exchange(callTo(url));
    return outcome.kind === 'answered' && outcome.reused;
  };
  for (const url of [a, b, a, c]) await isReused(url);
  assert.equal(exchanges.size(), 2);
  assert.deepEqual([await isReused(a), await isReused(c), await isReused(b)], [true, true, false]);
});

test('ends what is under way at an origin that is given up', async (t) => {
  const answer: Answer = (socket) => socket.write(plainAnswer(200, ''));
  const receivers = await Promise.all(Array.from({ length: 4 }, () => receiverFor(t, answer)));
  const exchanges = exchangesFor(t, { settings: { egressOriginsMax: 1 } });
  const outcomes = await Promise.all(receivers.map(({ url }) => exchanges.exchange(callTo(url))));
  assert.deepEqual(
    outcomes.map(kindOf),
    receivers.map(() => '200 whole'),
  );
  assert.equal(exchanges.size(), 1);
});

test('forgets an origin when its last connection is gone, and finds it again', async (t) => {
  const receiver = await receiverFor(t, (socket) => socket.write(plainAnswer(200, '')));
  const exchanges = exchangesFor(t, { settings: { egressIdleMs: 20 } });
  assert.equal(kindOf(await exchanges.exchange(callTo(receiver.url))), '200 whole');
  assert.equal(exchanges.size(), 1);
  while (exchanges.size() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(kindOf(await exchanges.exchange(callTo(receiver.url))), '200 whole');
  assert.equal(receiver.connections(), 2);
});

test('uses a connection that is about to be free before it opens another', async (t) => {
  const receiver = await receiverFor(t, (socket) => socket.write(plainAnswer(200, 'ok')));
  const exchanges = exchangesFor(t);
  const oneAfterAnother = async () => {
    for (let count = 0; count < 20; count += 1) await exchanges.exchange(callTo(receiver.url));
  };
  await Promise.all([oneAfterAnother(), oneAfterAnother()]);
  assert.equal(receiver.connections(), 2);
});

test('takes the last request over an HTTP/1.1 connection when it is old, so that the name is looked up again', async (t) => {
  const receiver = await receiverFor(t, (socket) => socket.write(plainAnswer(200, '')));
  let nowMs = 0;
  const exchanges = exchangesFor(t, { monotonic: () => nowMs });
  const reused: unknown[] = [];
  for (const atMs of [0, 299_000, 301_000, 302_000]) {
    nowMs = atMs;
    const outcome = await exchanges.exchange(callTo(receiver.url));
    reused.push(outcome.kind === 'answered' && outcome.reused);
  }
  assert.deepEqual(reused, [false, true, true, false]);
  assert.match(receiver.requests[2]?.head ?? '', /connection: close/);
});

test('lets a silent server hold no connection beyond its time, and no listener behind', async (t) => {
  const silent: Socket[] = [];
  const exchanges = exchangesFor(t, {
    dialer: {
      egressConnectMs: 40,
      openSocket: () => {
        const socket = new Socket();
        silent.push(socket);
        return socket;
      },
    },
  });
  const outcomes = await Promise.all(
    Array.from({ length: 12 }, () => exchanges.exchange(callTo('http://127.0.0.1:8/'))),
  );
  assert.deepEqual(new Set(outcomes.map(kindOf)), new Set(['timeout']));
  assert.ok(silent.every((socket) => socket.destroyed));
});
