import assert from 'node:assert/strict';
import { constants, createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { createServer } from 'node:https';
import { after, before, test } from 'node:test';
import { cert, key } from '../accounts/mail/certificate.ts';
import { type Listening, listen } from '../harness/listening.ts';
import { callTo, type ExchangesUnderTest, exchangesWith, kindOf } from './exchanges-under-test.ts';
import { startRawReceiver } from './raw-receiver.ts';

let server: Listening;
let exchanges: ExchangesUnderTest;
let opened = 0;

/** What the server does with a request, by its path. */
const conducts: Record<string, (stream: ServerHttp2Stream) => void> = {
  '/plain': (stream) => {
    stream.respond({ ':status': 201, 'x-answer': 'a' });
    stream.end('thanks');
  },
  '/hints': (stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</a>' });
    stream.respond({ ':status': 200 });
    stream.end();
  },
  '/silent': () => undefined,
  '/long': (stream) => {
    stream.respond({ ':status': 200 });
    stream.on('error', () => undefined);
    stream.write(Buffer.alloc(1_000_000, 'a'));
  },
  '/slow': (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('ab');
  },
  '/reset': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
  '/half': (stream) => {
    stream.respond({ ':status': 200, 'content-length': 10 });
    stream.write('ab', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  },
  '/head': (stream) => {
    stream.respond({ ':status': 200, 'x-long': 'v'.repeat(5000) });
    stream.end();
  },
  '/goaway': (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('last');
    stream.session?.goaway(constants.NGHTTP2_NO_ERROR);
  },
  '/destroy': (stream) => stream.session?.destroy(),
};

before(async () => {
  const secure = createSecureServer({ cert, key, allowHTTP1: false });
  secure.on('session', (session) => {
    opened += 1;
    session.on('error', () => undefined);
  });
  secure.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    const conduct = conducts[headers[':path'] ?? ''] ?? assert.fail();
    stream.on('end', () => conduct(stream));
    stream.resume();
  });
  server = await listen(secure);
  exchanges = exchangesWith({ ca: cert });
});

after(async () => {
  await exchanges.close();
  await server.close();
});

const ask = (path: string, timeoutMs = 5000) =>
  exchanges.exchange(callTo(`https://127.0.0.1:${server.port}${path}`, { timeoutMs }));

test('speaks HTTP/2 to a receiver that chooses it, over one connection for many requests', async () => {
  const first = await ask('/plain');
  assert.ok(first.kind === 'answered');
  assert.deepEqual(
    [first.status, first.snippet, first.protocol, first.reused, first.cut],
    [201, 'thanks', 'h2', false, null],
  );
  assert.deepEqual(
    first.fields.find(([name]) => name === 'x-answer'),
    ['x-answer', 'a'],
  );
  assert.ok((first.timing.tlsMs ?? -1) >= 0 && (first.timing.firstByteMs ?? -1) >= 0);
  const many = await Promise.all(Array.from({ length: 50 }, () => ask('/plain')));
  for (const outcome of many)
    assert.ok(outcome.kind === 'answered' && outcome.reused && outcome.timing.tlsMs === null);
  assert.equal(opened, 1);
});

test('keeps to the connection whatever a Host field says', async () => {
  const fields = ['host', 'other.example'];
  const outcome = await exchanges.exchange(callTo(`https://127.0.0.1:${server.port}/plain`, { fields }));
  assert.equal(kindOf(outcome), '201 whole');
  assert.equal(kindOf(await ask('/plain')), '201 whole');
  assert.equal(opened, 1);
});

test('bounds a stream as it does a connection, and leaves the others on it alone', async () => {
  const beside = ask('/silent', 300);
  assert.equal(kindOf(await ask('/hints')), '200 whole');
  assert.equal(kindOf(await ask('/silent', 30)), 'timeout');
  const long = await ask('/long');
  assert.deepEqual([kindOf(long), long.kind === 'answered' && long.snippet], ['200 long', 'a'.repeat(64)]);
  assert.equal(kindOf(await ask('/slow')), '200 slow');
  assert.equal(kindOf(await ask('/half')), '200 broken');
  assert.equal(kindOf(await ask('/head')), 'protocol');
  assert.equal(kindOf(await ask('/plain')), '201 whole');
  assert.equal(kindOf(await beside), 'timeout');
  assert.equal(opened, 1);
});

test('tells a stream or a session that the receiver ended', async () => {
  assert.equal(kindOf(await ask('/reset')), 'reset');
  assert.equal(kindOf(await ask('/goaway')), '200 whole');
  assert.equal(kindOf(await ask('/plain')), '201 whole');
  assert.equal(kindOf(await ask('/destroy')), 'reset');
  assert.equal(kindOf(await ask('/plain')), '201 whole');
});

test('speaks HTTP/1.1 over TLS to a receiver that has nothing else, over as many connections as it needs', async (t) => {
  const older = createServer({ cert, key }, (request, response) => {
    request.resume().on('end', () => setImmediate(() => response.end('ok')));
  });
  const { port } = await listen(older, t);
  const url = `https://127.0.0.1:${port}/`;
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => exchanges.exchange(callTo(url))));
  for (const outcome of outcomes) {
    assert.ok(outcome.kind === 'answered' && outcome.protocol === 'http/1.1' && outcome.snippet === 'ok');
    assert.equal(outcome.reused, outcome.timing.tlsMs === null);
  }
  assert.ok(outcomes.some((outcome) => outcome.kind === 'answered' && !outcome.reused));
  const again = await exchanges.exchange(callTo(url));
  assert.ok(again.kind === 'answered' && again.reused);
});

test('tells a receiver that breaks TLS', async (t) => {
  const babbling = await startRawReceiver(() => undefined, { onHead: (socket) => socket.end('no TLS here') });
  t.after(() => babbling.close());
  assert.equal(kindOf(await exchanges.exchange(callTo(`https://127.0.0.1:${babbling.port}/`))), 'tls');
});

test('sends nothing to a server whose certificate is not trusted', async () => {
  const strict = exchangesWith();
  const outcome = await strict.exchange(callTo(`https://127.0.0.1:${server.port}/plain`));
  assert.ok(outcome.kind === 'failed');
  assert.deepEqual(
    [outcome.failure, outcome.message],
    ['tls', 'The certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)'],
  );
  assert.ok((outcome.timing.connectMs ?? -1) >= 0);
  assert.equal(outcome.timing.tlsMs, null);
  await strict.close();
});
