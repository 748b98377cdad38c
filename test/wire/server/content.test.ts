/** Reading content: limits, time, clients that leave, 100 (Continue), and content that no operation reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReceivedContent, Request } from '../../../src/http/message.ts';
import { uncountedBytesMax } from '../../../src/server/limits.ts';
import type { RawClient } from './raw-client.ts';
import { countContent, portKinds, serve, text } from './serve.ts';

const head = (more: string, method = 'POST') => `${method} / HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const chunked = head('Transfer-Encoding: chunked\r\n');

test('reads content of a known length, in one piece and in many', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}hello`);
  assert.equal((await client.answer()).body, '5');
  client.send(head('Content-Length: 3\r\n'));
  for (const octet of 'abc') {
    client.send(octet);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await client.answer()).body, '3');
});

test('reads the content of each of the requests that came in one piece', async (t) => {
  const { open } = await serve(t, countContent(10));
  const whole = (body: string) => `${head(`Content-Length: ${body.length}\r\n`)}${body}`;
  const client = (await open()).send(`${whole('hello')}${whole('abc')}${whole('0123456789a')}`);
  assert.equal((await client.answer()).body, '5');
  assert.equal((await client.answer()).body, '3');
  assert.equal((await client.answer()).status, 413);
});

test('reads chunked content', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = (await open()).send(`${chunked}3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n`);
  assert.equal((await client.answer()).body, '7');
  assert.equal((await client.send(`${head('Content-Length: 0\r\n')}`).answer()).body, '0');
});

test('reads no content where none is announced', async (t) => {
  const { open } = await serve(t, countContent(100));
  assert.equal((await (await open()).send(head('')).answer()).body, '0');
});

test('takes content of exactly the limit and refuses one octet more', async (t) => {
  const { open } = await serve(t, countContent(10));
  assert.equal(
    (await (await open()).send(`${head('Content-Length: 10\r\n')}0123456789`).answer()).body,
    '10',
  );
  const over = await (await open()).send(`${chunked}b\r\n0123456789a\r\n`).answer();
  assert.equal(over.status, 413);
  assert.equal(over.fields.get('connection'), 'close');
});

test('refuses an announced length over the limit before any content comes', async (t) => {
  const { open } = await serve(t, countContent(10));
  const client = (await open()).send(head('Content-Length: 11\r\n'));
  assert.equal((await client.answer()).status, 413);
  assert.equal(await client.closed, 'end');
});

for (const kind of portKinds)
  test(`takes far too much content over ${kind} until its end, so that a client that reads late finds the refusal`, async (t) => {
    const { open } = await serve(t, countContent(10), {}, { kind });
    for (const bytes of [1_100_000, 8_000_000, 30_000_000]) {
      const client = await open();
      client.socket.pause();
      client.send(head(`Content-Length: ${bytes}\r\n`));
      assert.equal(await written(client, bytes), undefined, `${bytes} octets`);
      client.socket.resume();
      assert.equal((await client.answer()).status, 413);
      assert.equal(await client.closed, 'end');
    }
  });

for (const [what, limits] of [
  ['below the least rate', { contentGraceMs: 40, contentBytesPerSecondMin: 1_000_000 }],
  ['beyond the time for content', { contentTimeoutMs: 40 }],
] as const)
  test(`cuts a client that sends what nobody wants ${what}, though it is never silent`, async (t) => {
    const { open } = await serve(t, countContent(10), { unreadContentTimeoutMs: 600_000, ...limits });
    const client = (await open()).send(head('Content-Length: 900000000\r\n'));
    assert.equal((await client.answer()).status, 413);
    await untilCut(client, 'xx');
  });

test('discards exactly as much as it may', async (t) => {
  const { open } = await serve(t, countContent(10), { unreadContentBytesMax: 100_000 });
  for (const [more, how] of [
    [0, 'open'],
    [1, 'cut'],
  ] as const) {
    const client = (await open()).send(head('Content-Length: 900000000\r\n'));
    assert.equal((await client.answer()).status, 413);
    assert.equal(await written(client, 100_000 + more), undefined);
    if (how === 'cut') await untilCut(client, '');
    else assert.equal(await written(client, 0), undefined);
  }
});

test('stops reading what nobody wants at its bound', async (t) => {
  const { open, listener } = await serve(t, countContent(10), {
    unreadContentBytesMax: 1_000,
    unreadContentTimeoutMs: 600_000,
  });
  const client = (await open()).send(head('Content-Length: 900000000\r\n'));
  assert.equal((await client.answer()).status, 413);
  assert.equal(await client.closed, 'end');
  assert.equal(listener.counts().connections, 1, 'it still reads');
  await untilCut(client, 'x'.repeat(100_000));
});

test('stops waiting for what nobody wants at its time', async (t) => {
  const { open, listener } = await serve(t, countContent(10), { unreadContentTimeoutMs: 500 });
  const client = (await open()).send(head('Content-Length: 900000000\r\n'));
  assert.equal((await client.answer()).status, 413);
  assert.equal(await client.closed, 'end');
  assert.equal(listener.counts().connections, 1, 'it still waits');
  await untilCut(client, '');
});

test('keeps the connection after an early answer to short content', async (t) => {
  const { open } = await serve(t, (request) => text(401, request.target));
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}hello${head('', 'GET')}`);
  assert.equal((await client.answer()).fields.get('connection'), 'keep-alive');
  assert.equal((await client.answer()).status, 401);
});

test('closes after an early answer to long or chunked content, and does not take it for a request', async (t) => {
  const seen: string[] = [];
  const { open } = await serve(t, (request) => {
    seen.push(request.method);
    return text(401, 'no');
  });
  for (const start of [head('Content-Length: 70000\r\n'), chunked]) {
    const client = (await open()).send(start);
    assert.equal((await client.answer()).fields.get('connection'), 'close');
    client.send(head('', 'GET'));
    assert.equal(await client.closed, 'end');
    assert.equal(client.received, '');
  }
  assert.deepEqual(seen, ['POST', 'POST']);
});

test('answers a HEAD whose content nobody reads', async (t) => {
  const { open } = await serve(t, () => ({ ...text(200, 'abc'), headOnly: true }));
  const client = (await open()).send(head('Content-Length: 70000\r\n', 'HEAD'));
  assert.equal((await client.answer({ headOnly: true })).fields.get('content-length'), '3');
  assert.equal(await client.closed, 'end');
});

test('sends 100 (Continue) only when content is read', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = (await open()).send(head('Content-Length: 2\r\nExpect: 100-continue\r\n'));
  assert.equal((await client.answer()).status, 100);
  const answer = await client.send('ok').answer();
  assert.equal(answer.body, '2');
  assert.equal(answer.fields.get('connection'), 'keep-alive');
});

test('answers at once, without 100 (Continue), when the content is not wanted', async (t) => {
  const { open } = await serve(t, countContent(1));
  const client = (await open()).send(head('Content-Length: 2\r\nExpect: 100-Continue\r\n'));
  const answer = await client.answer();
  assert.equal(answer.status, 413);
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
});

test('reads content that was sent without waiting for 100 (Continue)', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = (await open()).send(`${head('Content-Length: 2\r\nExpect: 100-continue\r\n')}ok`);
  assert.equal((await client.answer()).status, 100);
  assert.equal((await client.answer()).body, '2');
});

test('sends no 100 (Continue) to HTTP/1.0', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = (await open()).send(
    'POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok',
  );
  assert.equal((await client.answer()).body, '2');
});

test('answers 408 to content that does not come', async (t) => {
  const { open } = await serve(t, countContent(100), { contentTimeoutMs: 40, contentGraceMs: 10_000 });
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}he`);
  const answer = await client.answer();
  assert.equal(answer.status, 408);
  assert.equal(answer.fields.get('connection'), 'close');
  assert.equal(await client.closed, 'end');
});

test('answers 408 to content that drips, long before its whole time is over', async (t) => {
  const { open } = await serve(t, countContent(1_000_000), {
    contentTimeoutMs: 600_000,
    contentGraceMs: 40,
    contentBytesPerSecondMin: 10_000,
  });
  const client = (await open()).send(head('Content-Length: 100000\r\n'));
  const drip = setInterval(() => client.send('x'), 5);
  t.after(() => clearInterval(drip));
  assert.equal((await client.answer()).status, 408);
});

test('answers 408 from node:http’s own timer to the reader of the content', async (t) => {
  const { open, observed } = await serve(t, countContent(100), {
    headersTimeoutMs: 500,
    requestTimeoutMs: 500,
    contentTimeoutMs: 600_000,
    contentGraceMs: 600_000,
  });
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}he`);
  assert.equal((await client.answer()).status, 408);
  assert.equal(
    observed.some((fact) => fact.kind === 'client-error'),
    false,
  );
});

test('tells the reader that the client went away', async (t) => {
  const received = Promise.withResolvers<ReceivedContent>();
  const reading = Promise.withResolvers<void>();
  const { open, listener } = await serve(t, async (request) => {
    const content = request.readContent(100);
    reading.resolve();
    received.resolve(await content);
    return text(200, 'x');
  });
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}he`);
  await reading.promise;
  client.socket.resetAndDestroy();
  assert.deepEqual(await received.promise, { ok: false, code: 'content_malformed' });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(listener.counts().requests, 0);
});

test('tells a reader that comes after the client went away', async (t) => {
  const left = Promise.withResolvers<void>();
  const received = Promise.withResolvers<ReceivedContent>();
  const { open } = await serve(t, async (request) => {
    await left.promise;
    received.resolve(await request.readContent(100));
    return text(200, 'x');
  });
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}he`);
  await (await open()).send('@\r\n\r\n').answer();
  client.socket.resetAndDestroy();
  // A whole exchange on another connection: by then the reset has been noticed.
  await (await open()).send('@\r\n\r\n').answer();
  await (await open()).send('@\r\n\r\n').answer();
  left.resolve();
  assert.deepEqual(await received.promise, { ok: false, code: 'content_malformed' });
});

test('answers 400 when the client ends its sending side in the middle of content', async (t) => {
  const { open } = await serve(t, countContent(100));
  const client = await open();
  client.socket.end(`${head('Content-Length: 5\r\n')}he`);
  assert.equal((await client.answer()).body, 'content_malformed');
});

test('refuses to read the content of a request twice', async (t) => {
  const { open, observed } = await serve(t, async (request) => {
    await request.readContent(100);
    await request.readContent(100);
    return text(200, 'x');
  });
  assert.equal((await (await open()).send(`${head('Content-Length: 2\r\n')}ok`).answer()).status, 500);
  assert.equal(
    observed.some((fact) => fact.kind === 'failed'),
    true,
  );
});

const long = head('Content-Length: 70000\r\n');

for (const [what, start, rest] of [
  ['of an announced length', `${long}x`, 'x'.repeat(69_999)],
  ['in chunks', `${chunked}1\r\nx\r\n`, '0\r\n\r\n'],
] as const)
  test(`behind a proxy the answer follows content ${what} that no operation reads, and the connection stays open`, async (t) => {
    const { open } = await serve(t, () => text(401, 'no'), {}, { behindProxy: true });
    const client = (await open()).send(start);
    await (await open()).send(head('', 'GET')).answer();
    assert.equal(client.received, '');
    const answer = await client.send(rest).answer();
    assert.equal(answer.status, 401);
    assert.equal(answer.fields.get('connection'), 'keep-alive');
    assert.equal((await client.send(head('', 'GET')).answer()).status, 401);
  });

test('behind a proxy a refusal of content that was read in part follows its end', async (t) => {
  const { open } = await serve(t, countContent(10), {}, { behindProxy: true });
  const client = (await open()).send(`${chunked}b\r\n0123456789a\r\n`);
  await (await open()).send(`${head('Content-Length: 2\r\n')}ok`).answer();
  assert.equal(client.received, '');
  assert.equal((await client.send('0\r\n\r\n').answer()).status, 413);
  assert.equal(await client.closed, 'end');
});

for (const [limit, limits, more] of [
  ['silence', { unreadContentTimeoutMs: 40 }, ''],
  ['octets', { unreadContentBytesMax: 1_000, unreadContentTimeoutMs: 600_000 }, 'x'.repeat(2_000)],
  ['rate', { contentGraceMs: 40, contentBytesPerSecondMin: 1_000_000, unreadContentTimeoutMs: 600_000 }, 'x'],
  ['time', { contentTimeoutMs: 40, unreadContentTimeoutMs: 600_000 }, 'x'],
] as const)
  test(`behind a proxy the answer precedes the end of content that is beyond the limit of ${limit}`, async (t) => {
    const { open } = await serve(t, () => text(401, 'no'), limits, { behindProxy: true });
    const client = (await open()).send(`${chunked}fffff\r\n${more}`);
    const answer = await client.answer();
    assert.equal(answer.status, 401);
    assert.equal(answer.fields.get('connection'), 'close');
    assert.equal(await client.closed, 'end');
    await untilCut(client, 'xx');
  });

for (const [what, start, status] of [
  ['that the client has not sent yet', head('Content-Length: 70000\r\nExpect: 100-continue\r\n'), 401],
  ['that is longer than what may be discarded', head('Content-Length: 1000001\r\n'), 401],
  ['whose end cannot be known', head('Transfer-Encoding: gzip\r\n'), 401],
] as const)
  test(`behind a proxy the answer does not wait for content ${what}`, async (t) => {
    const limits = { unreadContentBytesMax: 1_000_000, unreadContentTimeoutMs: 600_000 };
    const { open } = await serve(t, () => text(401, 'no'), limits, { behindProxy: true });
    assert.equal((await (await open()).send(start).answer()).status, status);
  });

const patient = { unreadContentTimeoutMs: 600_000, contentGraceMs: 600_000, contentTimeoutMs: 600_000 };

test('behind a proxy a request that waits for the end of its content leaves the room for what requests make', async (t) => {
  const handler = async (request: Request) => {
    await request.memory?.makeRoom(Number.MAX_SAFE_INTEGER);
    return text(401, 'no');
  };
  const { open } = await serve(t, handler, patient, { behindProxy: true });
  const waiting = (await open()).send(`${long}x`);
  assert.equal((await (await open()).send(head('', 'GET')).answer()).status, 401);
  assert.equal(waiting.received, '');
});

test('behind a proxy an answer that the memory budget counts does not wait for the end of content', async (t) => {
  for (const [bytes, isWaiting] of [
    [uncountedBytesMax, true],
    [uncountedBytesMax + 1, false],
  ] as const) {
    const answer = text(200, 'x'.repeat(bytes));
    const { open } = await serve(t, () => answer, patient, { behindProxy: true });
    const client = (await open()).send(`${long}x`);
    await (await open()).send(head('', 'GET')).answer();
    assert.equal(client.received === '', isWaiting);
    client.destroy();
  }
});

test('behind a proxy a client that leaves before the end of unread content ends its request', async (t) => {
  const { open, listener, observed } = await serve(t, () => text(401, 'no'), {}, { behindProxy: true });
  const client = (await open()).send(long);
  await (await open()).send(head('', 'GET')).answer();
  assert.equal(listener.counts().requests, 1);
  client.socket.resetAndDestroy();
  await (await open()).send(head('', 'GET')).answer();
  await (await open()).send(head('', 'GET')).answer();
  assert.equal(listener.counts().requests, 0);
  assert.equal(
    observed.some((fact) => fact.kind === 'failed'),
    false,
  );
});

test('behind a proxy broken chunks of unread content do not keep the answer back', async (t) => {
  const limits = { unreadContentTimeoutMs: 40 };
  const { open } = await serve(t, () => text(401, 'no'), limits, { behindProxy: true });
  const client = (await open()).send(`${chunked}zz\r\n`);
  assert.equal((await client.answer()).status, 401);
  assert.equal(await client.closed, 'end');
});

/** Sends so many octets. @returns what went wrong until the kernel had taken them */
function written(client: RawClient, bytes: number): Promise<Error | undefined> {
  return new Promise((resolve) =>
    client.socket.write(Buffer.alloc(bytes, 'x'), (error) => resolve(error ?? undefined)),
  );
}

/** Sends until the server has cut the connection: a closed peer shows itself only to who writes. */
async function untilCut(client: RawClient, text: string): Promise<void> {
  const sending = setInterval(() => client.send(text === '' ? 'x' : text), 5);
  await new Promise((resolve) => client.socket.once('close', resolve));
  clearInterval(sending);
}
