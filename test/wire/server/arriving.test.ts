/** Content that is taken as it arrives: its bounds, a slow reader and a slow client, clients that leave, and what a reader leaves. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Request as Asked, ContentFailed, type Handler } from '../../../src/http/message.ts';
import { MemoryBudget } from '../../../src/memory/budget.ts';
import { OctetLine } from '../../../src/memory/program-memory.ts';
import type { ServerLimits } from '../../../src/server/limits.ts';
import { createListener } from '../../../src/server/listener.ts';
import { listen } from '../../harness/listening.ts';
import { until } from '../../harness/until.ts';
import { ask, openSession, receive } from '../http2/http2-client.ts';
import { openRaw } from './raw-client.ts';
import { type ServeOptions, serve, text } from './serve.ts';

const MiB = 1024 * 1024;
const head = (more: string) => `POST / HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const chunked = head('Transfer-Encoding: chunked\r\n');
const post = { ':method': 'POST', ':path': '/' };

const statuses: Readonly<Record<string, number>> = {
  request_timeout: 408,
  content_too_large: 413,
  unavailable: 503,
};

type Taking = {
  readonly bytesMax?: number;
  /** Called for each chunk; false: the reader leaves. */
  readonly each?: (bytes: number) => unknown;
};

/** Takes the content as it arrives, and answers with its octets or with the code of its failure. */
function take({ bytesMax = 1_000_000, each = () => true }: Taking = {}): Handler {
  return async (request) => {
    const refuse = (code: string) => ({ ...text(statuses[code] ?? 400, code), close: true, code });
    const opened = await request.openContent?.(bytesMax);
    if (opened === undefined) throw new Error('the request has no content to open');
    if (!opened.ok) return refuse(opened.code);
    let bytes = 0;
    try {
      for await (const chunk of opened.content) {
        bytes += chunk.length;
        if ((await each(bytes)) === false) break;
      }
    } catch (error) {
      if (!(error instanceof ContentFailed)) throw error;
      return refuse(error.problem.code);
    }
    return text(200, String(bytes));
  };
}

const serveTaking = (
  t: TestContext,
  taking?: Taking,
  limits?: Partial<ServerLimits>,
  options?: ServeOptions,
) => serve(t, take(taking), limits, options);

test('takes content of a known length, in chunks, and none; and the connection goes on', async (t) => {
  const { open } = await serveTaking(t);
  const client = (await open()).send(`${head('Content-Length: 5\r\n')}hello`);
  assert.equal((await client.answer()).body, '5');
  client.send(`${chunked}3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n`);
  const answer = await client.answer();
  assert.deepEqual([answer.body, answer.fields.get('connection')], ['7', 'keep-alive']);
  assert.equal((await client.send(head('')).answer()).body, '0');
});

test('takes exactly the limit and refuses one octet more, announced or not', async (t) => {
  const { open } = await serveTaking(t, { bytesMax: 10 });
  const sent = async (octets: string) => (await (await open()).send(octets).answer()).status;
  assert.equal(await sent(`${head('Content-Length: 10\r\n')}0123456789`), 200);
  assert.equal(await sent(head('Content-Length: 11\r\n')), 413);
  assert.equal(await sent(`${chunked}a\r\n0123456789\r\n0\r\n\r\n`), 200);
  assert.equal(await sent(`${chunked}b\r\n0123456789a\r\n`), 413);
});

test('sends 100 (Continue) when the content is opened, and not when its length is refused', async (t) => {
  const { open } = await serveTaking(t, { bytesMax: 2 });
  const client = (await open()).send(head('Content-Length: 2\r\nExpect: 100-continue\r\n'));
  assert.equal((await client.answer()).status, 100);
  assert.equal((await client.send('ok').answer()).body, '2');
  client.send(head('Content-Length: 3\r\nExpect: 100-continue\r\n'));
  assert.equal((await client.answer()).status, 413);
});

test('refuses to open the content of a request twice, or after it was read', async (t) => {
  for (const first of ['openContent', 'readContent'] as const) {
    const handler = async (request: Asked) => {
      await request[first]?.(100);
      await request.openContent?.(100);
      return text(200, 'x');
    };
    const { open, observed } = await serve(t, handler);
    assert.equal((await (await open()).send(`${head('Content-Length: 2\r\n')}ok`).answer()).status, 500);
    assert.ok(observed.some(({ kind }) => kind === 'failed'));
  }
});

test('stops a client while its reader is slow, and blames it for none of the time', async (t) => {
  const gate = Promise.withResolvers<void>();
  // Long enough that a client of this process, on a busy machine, is not slow itself.
  const limits = { contentTimeoutMs: 500, contentGraceMs: 200, contentBytesPerSecondMin: MiB };
  const { open, listener } = await serveTaking(t, { bytesMax: 100 * MiB, each: () => gate.promise }, limits);
  const bytes = 60 * MiB;
  const client = (await open()).send(head(`Content-Length: ${bytes}\r\n`));
  const sent = Promise.withResolvers<void>();
  client.socket.write(Buffer.alloc(bytes), () => sent.resolve());
  await pause(3 * limits.contentTimeoutMs);
  assert.ok(client.socket.writableLength > 0, 'the system holds it');
  assert.equal(listener.counts().requests, 1);
  gate.resolve();
  await sent.promise;
  assert.equal((await client.answer()).body, String(bytes));
});

for (const [what, limits, drip] of [
  ['that does not come', { contentTimeoutMs: 60, contentGraceMs: 600_000 }, ''],
  ['that does not come, without a minimal rate', { contentTimeoutMs: 60, contentBytesPerSecondMin: 0 }, ''],
  ['that drips', { contentTimeoutMs: 600_000, contentGraceMs: 40, contentBytesPerSecondMin: 10_000 }, 'x'],
] as const)
  test(`answers 408 to content ${what}`, async (t) => {
    const { open } = await serveTaking(t, {}, limits);
    const client = (await open()).send(`${head('Content-Length: 100000\r\n')}he`);
    const timer = setInterval(() => client.send(drip), 5);
    t.after(() => clearInterval(timer));
    const answer = await client.answer();
    assert.deepEqual([answer.status, answer.fields.get('connection')], [408, 'close']);
  });

test('answers 408 to content that drips after a burst', async (t) => {
  const limits = { contentTimeoutMs: 150, contentGraceMs: 50, contentBytesPerSecondMin: 10_000 };
  const { open } = await serveTaking(t, {}, limits);
  const client = (await open()).send(`${head('Content-Length: 900000\r\n')}${'x'.repeat(100_000)}`);
  const timer = setInterval(() => client.send('x'), 5);
  t.after(() => clearInterval(timer));
  assert.equal((await client.answer()).status, 408);
});

test('takes content for longer than any time of a request, as long as it keeps the minimal rate', async (t) => {
  const limits = {
    ...{ contentTimeoutMs: 1_000, contentGraceMs: 500, contentBytesPerSecondMin: 100 },
    ...{ headersTimeoutMs: 100, requestTimeoutMs: 200 },
  };
  const { open, observed } = await serveTaking(t, {}, limits);
  const client = (await open()).send(head('Content-Length: 6000\r\n'));
  for (let part = 0; part < 60; part += 1) {
    client.send('x'.repeat(100));
    await pause(20);
  }
  const answer = await client.answer();
  assert.deepEqual([answer.body, answer.fields.get('connection')], ['6000', 'keep-alive']);
  assert.deepEqual(
    observed.filter(({ kind }) => kind === 'client-error'),
    [],
  );
  // The next request on the connection has the time of any other.
  client.send('POST / HTTP/1.1\r\n');
  assert.equal((await client.answer()).status, 408);
});

test('tells the reader what had arrived when the client left, and then that it left', async (t) => {
  const seen: number[] = [];
  const failed = Promise.withResolvers<string>();
  const { open, listener } = await serve(t, async (request) => {
    const opened = await request.openContent?.(1_000_000);
    assert.ok(opened?.ok);
    // The reader comes when the client has left.
    await until(() => request.isGone === true);
    try {
      for await (const chunk of opened.content) seen.push(chunk.length);
    } catch (error) {
      failed.resolve(error instanceof ContentFailed ? error.problem.code : String(error));
    }
    return text(200, 'x');
  });
  const client = (await open()).send(`${head('Content-Length: 50000\r\n')}${'x'.repeat(40_000)}`);
  await pause(50);
  client.socket.resetAndDestroy();
  assert.equal(await failed.promise, 'content_malformed');
  assert.equal(
    seen.reduce((sum, length) => sum + length, 0),
    40_000,
  );
  await until(() => listener.counts().requests === 0 && listener.counts().connections === 0);
});

test('answers 400 when the client ends its sending side in the middle of content', async (t) => {
  const { open } = await serveTaking(t);
  const client = await open();
  client.socket.end(`${head('Content-Length: 5\r\n')}he`);
  assert.equal((await client.answer()).body, 'content_malformed');
});

for (const [what, each] of [
  ['leaves', (bytes: number) => bytes < 100_000],
  ['never begins', undefined],
] as const)
  test(`what a reader that ${what} does not take is unread content: the client finds the answer`, async (t) => {
    const never: Handler = async (request) => {
      await request.openContent?.(100 * MiB);
      await pause(50);
      return text(200, 'never');
    };
    const handler = each === undefined ? never : take({ bytesMax: 100 * MiB, each });
    const { open, listener } = await serve(t, handler);
    const client = await open();
    client.socket.pause();
    client.send(head(`Content-Length: ${20 * MiB}\r\n`));
    await new Promise((resolve) => client.socket.write(Buffer.alloc(20 * MiB), resolve));
    client.socket.resume();
    const answer = await client.answer();
    assert.deepEqual([answer.status, answer.fields.get('connection')], [200, 'close']);
    assert.equal(await client.closed, 'end');
    client.destroy();
    await until(() => listener.counts().connections === 0);
  });

test('octets that come one by one take no more memory than together', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { open } = await serveTaking(t, { each: () => gate.promise });
  const client = (await open()).send(chunked);
  for (let part = 0; part < 20; part += 1) client.send('1\r\nx\r\n'.repeat(5_000));
  client.send('0\r\n\r\n');
  await pause(100);
  gate.resolve();
  assert.equal((await client.answer()).body, '100000');
});

test('holds the memory of what may wait, whatever the length, until the answer', async (t) => {
  const memory = {
    budget: new MemoryBudget({ bytesMax: 2 * MiB, sharePercent: 50 }),
    work: new OctetLine(MiB),
    made: new OctetLine(MiB),
  };
  const { open } = await serveTaking(t, { bytesMax: 1024 * MiB }, {}, { memory });
  const clients = [await open(), await open(), await open(), await open()];
  for (const client of clients) client.send(head('Content-Length: 900000000\r\n'));
  await until(() => memory.budget.bytes() === MiB);
  const fifth = (await open()).send(head('Content-Length: 900000000\r\n'));
  assert.equal((await fifth.answer()).status, 503);
  for (const client of clients) client.destroy();
  await until(() => memory.budget.bytes() === 0);
});

// HTTP/2

test('takes content on a stream of HTTP/2, with 100 (Continue) if the client waits for it', async (t) => {
  const { port } = await serveTaking(t, { bytesMax: 5_000_000 });
  const session = openSession(t, port);
  assert.equal((await ask(session, post, 'x'.repeat(3_000_000))).body, '3000000');
  const stream = session.request({ ...post, expect: '100-continue' });
  stream.on('continue', () => stream.end('hello'));
  assert.equal((await receive(stream)).body, '5');
  assert.equal((await ask(session, post, 'x'.repeat(5_000_001))).status, 413);
});

test('a slow reader stops its stream of HTTP/2 and no other', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { port } = await serve(t, (request) =>
    request.target === '/slow'
      ? take({ bytesMax: 100 * MiB, each: () => gate.promise })(request)
      : take()(request),
  );
  const session = openSession(t, port);
  const slow = ask(session, { ...post, ':path': '/slow' }, 'x'.repeat(8 * MiB));
  await pause(50);
  for (let turn = 0; turn < 5; turn += 1)
    assert.equal((await ask(session, post, 'x'.repeat(300_000))).body, '300000');
  gate.resolve();
  assert.equal((await slow).body, String(8 * MiB));
});

test('a stream of HTTP/2 that its client resets ends its reader', async (t) => {
  const { port, listener } = await serveTaking(t);
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const stream = session.request(post);
  stream.on('error', () => undefined);
  stream.write('x');
  await until(() => listener.counts().requests === 1);
  stream.close(8);
  await until(() => listener.counts().requests === 0);
});

// Requests of this process

test('takes the content of a request of this process, and cancels what it does not take', async (t) => {
  const { listener } = await serveTaking(t, { each: (bytes) => bytes < 10 });
  const fetched = async (body: string | ReadableStream) =>
    (
      await listener.fetch(new Request('http://a/', { method: 'POST', body, duplex: 'half' } as RequestInit))
    ).text();
  assert.equal(await fetched('hello'), '5');
  const cancelled = Promise.withResolvers<void>();
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(6)),
    cancel: () => cancelled.resolve(),
  });
  assert.equal(await fetched(endless), '12');
  await cancelled.promise;
});

/** Answers with the octets of all chunks as they came, and with those that the chunks still have at the end. */
const keep =
  (onOpened = (): void => undefined): Handler =>
  async (request) => {
    const opened = await request.openContent?.(MiB);
    if (opened?.ok !== true) throw new Error('the content could not be opened');
    onOpened();
    const kept: Uint8Array[] = [];
    let came = 0;
    for await (const chunk of opened.content) {
      came += chunk.length;
      kept.push(chunk);
    }
    return text(200, `${came} ${kept.reduce((sum, { length }) => sum + length, 0)}`);
  };
const long = `${head('Content-Length: 200000\r\n')}${'x'.repeat(200_000)}`;

test('gives the memory of a chunk back when the next one is asked for', async (t) => {
  const { open } = await serve(t, keep());
  assert.equal((await (await open()).send(long).answer()).body, '200000 0');
});

test('leaves the memory of chunks alone that somebody else listens to', async (t) => {
  const others: Uint8Array[] = [];
  const server = createServer((incoming, outgoing) => {
    const handler = keep(() => void incoming.on('data', (chunk: Uint8Array) => others.push(chunk)));
    createListener({ handler, observe: () => undefined, apiVersion: '1' }).handle(incoming, outgoing);
  });
  const client = await openRaw((await listen(server, t)).port);
  t.after(() => client.destroy());
  assert.equal((await client.send(long).answer()).body, '200000 200000');
  assert.equal(Buffer.concat(others).length, 200_000);
});

test('leaves the memory of chunks alone that a connection of HTTP/2 or a caller of this process has', async (t) => {
  const { listener, port } = await serve(t, keep());
  assert.equal((await ask(openSession(t, port), post, 'x'.repeat(100_000))).body, '100000 100000');
  const octets = new Uint8Array(6);
  const body = ReadableStream.from([octets, octets]);
  const request = new Request('http://a/', { method: 'POST', body, duplex: 'half' } as RequestInit);
  assert.equal(await (await listener.fetch(request)).text(), '12 12');
});
