/** Content that is read while it is sent: its framing, clients that leave or stall, readings that fail, memory, drain. */
import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2, constants } from 'node:http2';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { Response as Answer, Request as Asked, ContentFile } from '../../../src/http/message.ts';
import { MemoryBudget } from '../../../src/memory/budget.ts';
import { OctetLine } from '../../../src/memory/program-memory.ts';
import { createListener } from '../../../src/server/listener.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { ask, field, openSession } from '../http2/http2-client.ts';
import { openRaw, type RawClient } from './raw-client.ts';
import { portKinds, serve } from './serve.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const get = (target = '/') => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
const request = { ':path': '/', ':authority': 'a' };

/** Octets that say where they are. */
function octets(bytes: number): Buffer {
  return Buffer.from(
    Array.from({ length: bytes / 16 }, (_, at) => `${at}`.padStart(15, '.').concat('\n')).join(''),
  );
}

/** Counts what is read of it and how its readings end. */
function watched(content: Uint8Array, pieceBytes = 64 * KiB) {
  const seen = { opened: 0, read: 0, ended: 0 };
  const file: ContentFile = {
    bytes: content.length,
    async read(first, end) {
      seen.opened += 1;
      let at = first;
      const stream = new Readable({
        highWaterMark: 1,
        read() {
          const piece = content.subarray(at, Math.min(at + pieceBytes, end));
          at += piece.length;
          seen.read += piece.length;
          this.push(piece.length === 0 ? null : piece);
        },
      });
      stream.on('close', () => {
        seen.ended += 1;
      });
      return stream;
    },
  };
  return { file, seen };
}

function answerWith(content: ContentFile): (request: Asked) => Answer {
  return ({ method }) => ({
    status: 200,
    fields: ['Content-Type', 'application/octet-stream'],
    content,
    headOnly: method === 'HEAD',
  });
}

/** Gives these pieces, then ends or fails. */
function giving(bytes: number, pieces: readonly Uint8Array[], failure?: Error): ContentFile {
  return {
    bytes,
    async read() {
      return (async function* () {
        yield* pieces;
        if (failure !== undefined) throw failure;
      })();
    },
  };
}

for (const kind of portKinds) {
  test(`sends octets with their length and no reading for HEAD, over ${kind}`, async (t) => {
    const content = octets(MiB);
    const { file, seen } = watched(content);
    const { open } = await serve(t, answerWith(file), {}, { kind });
    const client = (await open()).send(`HEAD / HTTP/1.1\r\nHost: a\r\n\r\n`);
    const head = await client.answer({ headOnly: true });
    assert.deepEqual([head.status, head.fields.get('content-length')], [200, String(MiB)]);
    assert.equal(seen.opened, 0);
    for (let time = 1; time <= 2; time += 1) {
      const answer = await client.send(get()).answer();
      assert.equal(answer.fields.get('transfer-encoding'), undefined);
      assert.ok(answer.body === content.toString('latin1'));
      await until(() => seen.ended === time);
    }
  });
}

test('sends octets over HTTP/2, with their length and no reading for HEAD', async (t) => {
  const content = octets(MiB);
  const { file, seen } = watched(content);
  const { port } = await serve(t, answerWith(file));
  const session = openSession(t, port);
  const head = await ask(session, { ...request, ':method': 'HEAD' });
  assert.deepEqual([head.status, field(head, 'content-length'), seen.opened], [200, String(MiB), 0]);
  const whole = await ask(session, request);
  assert.ok(whole.body === content.toString('latin1'));
  assert.deepEqual([field(whole, 'content-length'), whole.rstCode], [String(MiB), 0]);
});

test('sends octets in this process, with their length and no reading for HEAD', async (t) => {
  const content = octets(MiB);
  const { file, seen } = watched(content);
  const { listener } = await serve(t, answerWith(file));
  const head = await listener.fetch(new Request('http://a/', { method: 'HEAD' }));
  assert.deepEqual([head.headers.get('content-length'), seen.opened], [String(MiB), 0]);
  const whole = await listener.fetch(new Request('http://a/'));
  assert.equal(whole.headers.get('content-length'), String(MiB));
  assert.ok(Buffer.from(await whole.arrayBuffer()).equals(content));
});

/** Spoils each piece as soon as it is given back: a client that had yet to receive it would see that. */
function spoiling(content: Uint8Array, pieceBytes = 64 * KiB) {
  const seen = { given: 0, back: 0 };
  const file: ContentFile = {
    bytes: content.length,
    async read(first, end) {
      const pieces = async function* (): AsyncGenerator<Uint8Array> {
        for (let at = first; at < end; at += pieceBytes) {
          seen.given += 1;
          yield Uint8Array.from(content.subarray(at, Math.min(at + pieceBytes, end)));
        }
      };
      const giveBack = (piece: Uint8Array): void => {
        seen.back += 1;
        piece.fill(0);
      };
      return Object.assign(pieces(), { giveBack });
    },
  };
  return { file, seen };
}

for (const kind of portKinds) {
  test(`gives a piece back when its octets have left, over ${kind}, to a client that stops and goes on`, async (t) => {
    const content = octets(16 * MiB);
    const { file, seen } = spoiling(content);
    const { open } = await serve(t, answerWith(file), {}, { kind });
    const client = await open();
    const stopping = setInterval(() => {
      if (client.socket.isPaused()) client.socket.resume();
      else client.socket.pause();
    }, 2);
    t.after(() => clearInterval(stopping));
    const { body } = await client.send(get()).answer();
    assert.ok(body === content.toString('latin1'));
    await until(() => seen.back === 256);
  });
}

test('gives a piece back when its octets have left, over HTTP/2', async (t) => {
  const content = octets(16 * MiB);
  const { file, seen } = spoiling(content);
  const { port } = await serve(t, answerWith(file));
  const session = openSession(t, port);
  const answers = await Promise.all([1, 2, 3].map(() => ask(session, request)));
  for (const { body } of answers) assert.ok(body === content.toString('latin1'));
  await until(() => seen.back === 3 * 256);
});

test('gives no piece back in this process, whose caller has it', async (t) => {
  const content = octets(MiB);
  const { file, seen } = spoiling(content);
  const { listener } = await serve(t, answerWith(file));
  const whole = await listener.fetch(new Request('http://a/'));
  assert.ok(Buffer.from(await whole.arrayBuffer()).equals(content));
  assert.deepEqual(seen, { given: 16, back: 0 });
});

test('sends no octets of an empty file, and does not read it', async (t) => {
  const { file, seen } = watched(new Uint8Array(0));
  const { open, port, listener } = await serve(t, answerWith(file));
  const client = (await open()).send(get() + get());
  for (let time = 0; time < 2; time += 1) {
    const { body, fields } = await client.answer();
    assert.deepEqual([body, fields.get('content-length')], ['', '0']);
  }
  const multiplexed = await ask(openSession(t, port), request);
  assert.deepEqual([multiplexed.body, field(multiplexed, 'content-length')], ['', '0']);
  assert.equal(await (await listener.fetch(new Request('http://a/'))).text(), '');
  assert.equal(seen.opened, 0);
});

test('sends pipelined files in the order of their requests, over a real file', async (t) => {
  const path = join(temporaryFolder(), 'file');
  const content = octets(512 * KiB);
  await writeFile(path, content);
  const { open } = await serve(t, ({ target }) => {
    const from = Number(target.slice(1));
    return answerWith({
      bytes: content.length - from,
      read: async (first, end) => createReadStream(path, { start: from + first, end: from + end - 1 }),
    })({ method: 'GET' } as Asked);
  });
  const client = (await open()).send(get('/0') + get('/16') + get('/524272'));
  for (const from of [0, 16, 524_272]) {
    assert.ok((await client.answer()).body === content.subarray(from).toString('latin1'));
  }
});

/** Octets that a client which reads none may have taken: the buffers of two sockets. */
const socketBytesMax = 12 * MiB;
const heldBytesMax = 512 * KiB;

test('reads no further than the client does, and ends the reading when it leaves', async (t) => {
  const { file, seen } = watched(new Uint8Array(64 * MiB));
  const { open, port, listener } = await serve(t, answerWith(file));
  const client = await open();
  client.socket.pause();
  client.send(get());
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  const stream = session.request(request);
  stream.on('error', () => undefined);
  stream.pause();
  const leaving = new AbortController();
  const response = await listener.fetch(new Request('http://a/', { signal: leaving.signal }));
  await until(() => seen.opened === 3);
  let before = -1;
  // Nothing announces that a socket is full.
  while (before !== seen.read) {
    before = seen.read;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(seen.read < socketBytesMax + 3 * heldBytesMax, `${seen.read} octets were read`);
  assert.equal(seen.ended, 0);
  client.destroy();
  await until(() => seen.ended === 1);
  stream.close(constants.NGHTTP2_CANCEL);
  await until(() => seen.ended === 2);
  await response.body?.cancel();
  await until(() => seen.ended === 3);
  session.destroy();
  assert.equal(listener.counts().streams, 0);
});

test('ends a reading that has not given anything yet when the client leaves', async (t) => {
  let ended = 0;
  const silent = (): Readable =>
    new Readable({ read: () => undefined }).on('close', () => {
      ended += 1;
    });
  const { open, observed } = await serve(t, answerWith({ bytes: 10, read: async () => silent() }));
  const client = (await open()).send(get());
  await until(() => observed.some(({ kind }) => kind === 'answered'));
  // A FIN alone may come from a client that still reads.
  client.socket.resetAndDestroy();
  await until(() => ended === 1);
  // It left while the file was opened.
  const opening = Promise.withResolvers<Readable>();
  const asked = Promise.withResolvers<void>();
  const file: ContentFile = {
    bytes: 10,
    read() {
      asked.resolve();
      return opening.promise;
    },
  };
  const slow = await serve(t, answerWith(file));
  const other = (await slow.open()).send(get());
  await asked.promise;
  other.socket.resetAndDestroy();
  await until(() => slow.listener.counts().connections === 0);
  opening.resolve(silent());
  await until(() => ended === 2);
});

for (const [title, file] of [
  ['fails', giving(3, [Buffer.from('a')], new Error('the disk failed'))],
  ['ends early', giving(3, [Buffer.from('ab')])],
  ['gives more than was said', giving(3, [Buffer.from('ab'), Buffer.from('cd')])],
] as const) {
  test(`cuts a response whose reading ${title}, so that it does not look complete`, async (t) => {
    const { open, port, listener, observed } = await serve(t, answerWith(file));
    const client = (await open()).send(get());
    await assert.rejects(client.answer(), /the connection ended/);
    const got = await ask(openSession(t, port), request);
    assert.equal(got.rstCode, constants.NGHTTP2_CANCEL);
    const response = await listener.fetch(new Request('http://a/'));
    await assert.rejects(response.text());
    assert.equal(observed.filter(({ kind }) => kind === 'failed').length, 3);
  });
}

test('answers a file that cannot be opened with the refusal of its failure', async (t) => {
  const failures = [new StoreUnavailable('the bucket is away', { retryAfterSeconds: 7 }), new Error('lost')];
  for (const [failure, status, retryAfter] of [
    [failures[0], 503, '7'],
    [failures[1], 500, undefined],
  ] as const) {
    const { open, port, listener } = await serve(
      t,
      answerWith({ bytes: 5, read: () => Promise.reject(failure) }),
    );
    const client = (await open()).send(get());
    const answer = await client.answer();
    assert.deepEqual([answer.status, answer.fields.get('retry-after')], [status, retryAfter]);
    const multiplexed = await ask(openSession(t, port), request);
    assert.equal(multiplexed.status, status);
    assert.equal((await listener.fetch(new Request('http://a/'))).status, status);
  }
});

test('cuts a client that receives nothing for the time of a stalled response', async (t) => {
  const { file, seen } = watched(new Uint8Array(64 * MiB));
  const { open, port, listener } = await serve(t, answerWith(file), { answerStallTimeoutMs: 200 });
  const client = await open();
  client.socket.pause();
  client.send(get());
  const session = openSession(t, port);
  const stream = session.request(request);
  stream.on('error', () => undefined);
  stream.pause();
  const response = await listener.fetch(new Request('http://a/'));
  await until(() => seen.opened === 3);
  await until(() => seen.ended === 3);
  await assert.rejects(response.arrayBuffer());
});

test('does not take the delay of a slow reading for one of the client', async (t) => {
  const go = Promise.withResolvers<void>();
  const file: ContentFile = {
    bytes: 2,
    async read() {
      return (async function* () {
        yield Buffer.from('a');
        await go.promise;
        yield Buffer.from('b');
      })();
    },
  };
  const { open, port, listener } = await serve(t, answerWith(file), { answerStallTimeoutMs: 50 });
  const client = (await open()).send(get());
  const multiplexed = ask(openSession(t, port), request);
  const response = await listener.fetch(new Request('http://a/'));
  await new Promise((resolve) => setTimeout(resolve, 400));
  go.resolve();
  assert.equal((await client.answer()).body, 'ab');
  assert.equal((await multiplexed).body, 'ab');
  assert.equal(await response.text(), 'ab');
});

test('counts no stream for a file, and 503 for those that memory has no room for', async (t) => {
  const { file } = watched(new Uint8Array(64 * MiB));
  const { open, listener } = await serveWithin(t, file, 2 * MiB);
  const clients = [];
  let refused = 0;
  for (let count = 0; count < 8; count += 1) {
    const client = await open();
    client.send(get());
    const head = await client.until('\r\n\r\n');
    client.socket.pause();
    if (head.startsWith('HTTP/1.1 503')) refused += 1;
    else clients.push(client);
  }
  // An eighth is for administrators; one download counts as 392 KiB.
  assert.deepEqual([clients.length, refused, listener.counts().streams], [4, 4, 0]);
  for (const client of clients) client.destroy();
  await until(() => listener.counts().connections === 4);
  const again = (await open()).send(get());
  assert.match(await again.until('\r\n\r\n'), /^HTTP\/1.1 200/);
});

test('waits for files when it drains, up to the bound', async (t) => {
  const content = octets(8 * MiB);
  for (const boundMs of [20_000, 100]) {
    const { file, seen } = watched(content);
    const { open, port, listener } = await serve(t, answerWith(file), { drainIdleMs: 0 });
    const client = await open();
    client.send(get());
    client.socket.pause();
    const session = openSession(t, port);
    const stream = session.request(request);
    stream.on('error', () => undefined);
    stream.pause();
    const response = await listener.fetch(new Request('http://a/'));
    await until(() => seen.opened === 3);
    const drained = listener.drain(boundMs);
    if (boundMs === 100) {
      assert.equal(await drained, 2);
      continue;
    }
    client.socket.resume();
    assert.ok((await client.answer()).body === content.toString('latin1'));
    let received = 0;
    for await (const chunk of stream) received += chunk.length;
    assert.equal(received, content.length);
    assert.equal((await response.arrayBuffer()).byteLength, content.length);
    assert.equal(await drained, 0);
  }
});

async function serveWithin(t: TestContext, file: ContentFile, bytesMax: number) {
  const listener = createListener({
    handler: answerWith(file),
    observe: () => undefined,
    apiVersion: '1',
    memory: {
      budget: new MemoryBudget({ bytesMax, sharePercent: 100 }),
      work: new OctetLine(bytesMax),
      made: new OctetLine(bytesMax),
    },
  });
  const { port } = await listener.listen('127.0.0.1', 0);
  const opened: RawClient[] = [];
  t.after(async () => {
    for (const client of opened) client.destroy();
    await listener.drain(0);
  });
  const open = async (): Promise<RawClient> => {
    const client = await openRaw(port);
    opened.push(client);
    return client;
  };
  return { listener, open };
}
