import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { callTo, type ExchangesUnderTest, exchangesWith, kindOf, settings } from './exchanges-under-test.ts';
import { type Answer, plainAnswer, type RawReceiver, startRawReceiver } from './raw-receiver.ts';

const shared = exchangesWith();
after(() => shared.close());

/** One receiver for the work, gone after it. */
async function withReceiver(
  answer: Answer,
  work: (receiver: RawReceiver) => Promise<void>,
  options?: { onHead: (socket: Socket) => void },
): Promise<void> {
  const receiver = await startRawReceiver(answer, options);
  try {
    await work(receiver);
  } finally {
    await receiver.close();
  }
}

async function outcomeOf(answer: Answer, exchanges: ExchangesUnderTest = shared) {
  let outcome: Awaited<ReturnType<ExchangesUnderTest['exchange']>> | undefined;
  await withReceiver(answer, async ({ url }) => {
    outcome = await exchanges.exchange(callTo(url));
  });
  return outcome ?? assert.fail();
}

const answerWith =
  (...parts: readonly (string | Buffer)[]): Answer =>
  (socket) => {
    for (const part of parts) socket.write(part);
  };

test('sends the request as it stands and gives back the answer', async () => {
  const answer: Answer = (socket) => socket.write(plainAnswer(200, 'thanks', ['X-Answer: a', 'x-answer: b']));
  await withReceiver(answer, async ({ url, requests }) => {
    const outcome = await shared.exchange(callTo(url));
    assert.ok(outcome.kind === 'answered');
    assert.deepEqual(
      { ...outcome, timing: undefined },
      {
        kind: 'answered',
        status: 200,
        fields: [
          ['content-length', '6'],
          ['x-answer', 'a'],
          ['x-answer', 'b'],
        ],
        snippet: 'thanks',
        cut: null,
        protocol: 'http/1.1',
        reused: false,
        address: '127.0.0.1',
        timing: undefined,
      },
    );
    assert.equal(requests[0]?.body, '{"a":1}');
    assert.deepEqual(requests[0]?.head.split('\r\n').slice(0, 4), [
      'POST /hooks?a=b HTTP/1.1',
      `host: ${url.host}`,
      'connection: keep-alive',
      'content-type: application/json',
    ]);
  });
});

test('keeps the connection of an answer that ended, and says that it stood already', async () => {
  await withReceiver(answerWith(plainAnswer(204, '')), async ({ url, connections }) => {
    const first = await shared.exchange(callTo(url));
    for (let count = 0; count < 5; count += 1) {
      const outcome = await shared.exchange(callTo(url, { body: Buffer.from('{}') }));
      assert.ok(outcome.kind === 'answered' && outcome.reused);
      assert.deepEqual(
        [outcome.timing.dnsMs, outcome.timing.connectMs, outcome.timing.tlsMs],
        [null, null, null],
      );
      assert.ok(
        (outcome.timing.firstByteMs ?? -1) >= 0 &&
          outcome.timing.totalMs >= (outcome.timing.firstByteMs ?? 0),
      );
    }
    assert.ok(first.kind === 'answered' && !first.reused && (first.timing.connectMs ?? -1) >= 0);
    assert.equal(connections(), 1);
  });
});

test('takes every status for an answer, follows no redirect and passes interim answers', async () => {
  for (const status of [200, 299, 302, 307, 400, 410, 429, 500, 503]) {
    const outcome = await outcomeOf(answerWith(plainAnswer(status, '', ['location: http://127.0.0.1:8/'])));
    assert.equal(kindOf(outcome), `${status} whole`);
  }
  const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  assert.equal(kindOf(await outcomeOf(answerWith(hints, hints, plainAnswer(200, 'ok')))), '200 whole');
  assert.equal(kindOf(await outcomeOf(answerWith(hints.repeat(17)))), 'protocol');
});

test('tells answers that are none from connections that break', async () => {
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
  assert.equal(kindOf(await outcomeOf(answerWith(upgrade))), 'protocol');
  assert.equal(kindOf(await outcomeOf(answerWith('SSH-2.0-OpenSSH_9.9\r\n'))), 'protocol');
  assert.equal(
    kindOf(await outcomeOf(answerWith(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(5000)}\r\n\r\n`))),
    'protocol',
  );
  assert.equal(kindOf(await outcomeOf((socket) => socket.end())), 'reset');
  assert.equal(kindOf(await outcomeOf((socket) => socket.resetAndDestroy())), 'reset');
  assert.equal(kindOf(await outcomeOf((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-'))), 'reset');
});

test('ends with the time that the call has, and says where it stood', async () => {
  await withReceiver(
    () => undefined,
    async ({ url }) => {
      const silent = await shared.exchange(callTo(url, { timeoutMs: 500 }));
      assert.ok(silent.kind === 'failed');
      assert.deepEqual(
        [silent.failure, silent.message],
        ['timeout', 'The limit of 500 ms was reached before there was an answer'],
      );
      assert.ok(silent.timing.totalMs >= 490 && (silent.timing.connectMs ?? -1) >= 0);
    },
  );
  const never = () => new Promise<readonly string[]>(() => undefined);
  const nameless = exchangesWith({ dialer: { lookup: never } });
  const outcome = await nameless.exchange(callTo('http://hooks.example/', { timeoutMs: 20 }));
  assert.ok(outcome.kind === 'failed');
  assert.equal(outcome.message, 'The limit of 20 ms was reached before the name resolved');
  await nameless.close();
});

test('reads a slow header section no longer than the time of the call', async () => {
  await withReceiver(
    (socket) => {
      const drip = setInterval(() => socket.write('x'), 5);
      socket.write('HTTP/1.1 200 OK\r\nx: ');
      socket.on('close', () => clearInterval(drip));
    },
    async ({ url }) => assert.equal(kindOf(await shared.exchange(callTo(url, { timeoutMs: 60 }))), 'timeout'),
  );
});

test('cuts content that is long, slow or broken, keeps its beginning and gives up the connection', async () => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  let written = 0;
  const endless: Answer = (socket) => {
    socket.write(chunked);
    const more = (): void => {
      while (!socket.destroyed && written < 1e9) {
        written += 4096;
        if (!socket.write(`1000\r\n${'b'.repeat(4096)}\r\n`)) {
          socket.once('drain', more);
          return;
        }
      }
    };
    more();
  };
  const long = await outcomeOf(endless);
  assert.deepEqual([kindOf(long), long.kind === 'answered' && long.snippet], ['200 long', 'b'.repeat(64)]);
  assert.ok(written < 50e6, `${written} octets were written`);

  const trickle: Answer = (socket) => {
    socket.write(`${chunked}2\r\nab\r\n`);
    const drip = setInterval(() => socket.write('1\r\nc\r\n'), 10);
    socket.on('close', () => clearInterval(drip));
  };
  const slow = await outcomeOf(trickle);
  assert.ok(slow.kind === 'answered' && slow.cut === 'slow');
  assert.match(slow.snippet, /^abc+$/);

  const open = await outcomeOf(answerWith('HTTP/1.1 200 OK\r\n\r\nabc'));
  assert.deepEqual([kindOf(open), open.kind === 'answered' && open.snippet], ['200 slow', 'abc']);

  const broken = await outcomeOf((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', () => socket.resetAndDestroy());
  });
  assert.deepEqual([kindOf(broken), broken.kind === 'answered' && broken.snippet], ['200 broken', 'abc']);
  assert.equal(kindOf(await outcomeOf(answerWith(`${chunked}zz\r\n`))), '200 broken');
  const closed = await outcomeOf((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nabc'));
  assert.deepEqual([kindOf(closed), closed.kind === 'answered' && closed.snippet], ['200 whole', 'abc']);
});

test('reads content up to its bound and not one octet further', async () => {
  const { egressAnswerBytesMax: max } = settings;
  assert.equal(kindOf(await outcomeOf(answerWith(plainAnswer(200, 'a'.repeat(max))))), '200 whole');
  assert.equal(kindOf(await outcomeOf(answerWith(plainAnswer(200, 'a'.repeat(max + 1))))), '200 long');
  const nothing = exchangesWith({ settings: { egressAnswerBytesMax: 0 } });
  assert.equal(kindOf(await outcomeOf(answerWith(plainAnswer(200, '')), nothing)), '200 whole');
  const outcome = await outcomeOf(answerWith(plainAnswer(200, 'a')), nothing);
  assert.deepEqual([kindOf(outcome), outcome.kind === 'answered' && outcome.snippet], ['200 long', '']);
  await nothing.close();
});

test('decodes compressed content as far as the snippet needs, and no bomb further', async () => {
  const text = `${'grüße '.repeat(4)}${'0'.repeat(400_000)}`;
  const begin = text.slice(0, 64);
  const coded = [
    ['gzip', gzipSync(text)],
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['gzip, br', brotliCompressSync(gzipSync(text))],
  ] as const;
  for (const [coding, content] of coded) {
    const outcome = await outcomeOf(answerWith(plainAnswer(200, content, [`content-encoding: ${coding}`])));
    assert.ok(outcome.kind === 'answered');
    assert.equal(outcome.snippet, begin, coding);
  }
  for (const coding of ['compress', 'gzip, gzip, gzip']) {
    const unknown = await outcomeOf(answerWith(plainAnswer(200, 'abc', [`content-encoding: ${coding}`])));
    assert.ok(unknown.kind === 'answered' && unknown.snippet === '');
  }
  const lying = await outcomeOf(answerWith(plainAnswer(200, 'abc', ['content-encoding: gzip'])));
  assert.deepEqual([kindOf(lying), lying.kind === 'answered' && lying.snippet], ['200 whole', '']);
});

test('takes an answer that comes before the request was read, and does not use that connection again', async () => {
  await withReceiver(
    () => undefined,
    async ({ url, connections }) => {
      const body = Buffer.alloc(16 * 1024 * 1024, 'a');
      assert.equal(kindOf(await shared.exchange(callTo(url, { body }))), '413 whole');
      assert.equal(kindOf(await shared.exchange(callTo(url, { body }))), '413 whole');
      assert.equal(connections(), 2);
    },
    {
      onHead: (socket) => {
        socket.pause();
        socket.write(plainAnswer(413, 'too long'));
      },
    },
  );
});

test('bounds the fields of an answer in number and length', async () => {
  const many = exchangesWith({ settings: { egressHeadBytesMax: 64 * 1024 } });
  const fields = [...Array.from({ length: 100 }, (_, at) => `x-${at}: ${at}`)];
  const outcome = await outcomeOf(
    answerWith(plainAnswer(200, '', [`long: ${'v'.repeat(2000)}`, ...fields])),
    many,
  );
  assert.ok(outcome.kind === 'answered');
  assert.equal(outcome.fields.length, 64);
  assert.equal(outcome.fields.find(([name]) => name === 'long')?.[1].length, 1024);
  await many.close();
});

test('asks again once when a kept connection was closed under the request, and never on a fresh one', async () => {
  await withReceiver(
    (socket, _request, count) => {
      if (count === 1) socket.write(plainAnswer(200, ''));
      else if (count === 2) socket.resetAndDestroy();
      else if (count === 3) socket.write(plainAnswer(200, ''));
      else socket.resetAndDestroy();
    },
    async ({ url, requests }) => {
      assert.equal(kindOf(await shared.exchange(callTo(url))), '200 whole');
      const repeated = await shared.exchange(callTo(url));
      assert.ok(repeated.kind === 'answered' && !repeated.reused);
      assert.equal(requests.length, 3);
      assert.equal(kindOf(await shared.exchange(callTo(url))), 'reset');
      assert.equal(requests.length, 5);
      assert.equal(kindOf(await shared.exchange(callTo(url))), 'reset');
      assert.equal(requests.length, 6);
    },
  );
});

test('refuses without a word what the guard or the grammar of fields forbids', async () => {
  const refused = [
    callTo('http://10.0.0.1/'),
    callTo('https://[::1]/'),
    callTo('http://127.1:8/', { fields: ['x-a', 'b\r\nx-injected: c'] }),
    callTo('ftp://hooks.example/'),
  ];
  for (const call of refused) {
    const outcome = await shared.exchange(call);
    assert.ok(outcome.kind === 'failed');
    assert.equal(outcome.failure, 'refused');
    assert.doesNotMatch(outcome.message, /10\.0\.0\.1|::1|private|loopback/);
  }
  const gone = await shared.exchange(callTo('http://127.0.0.1:8/'));
  assert.deepEqual(gone.kind === 'failed' && gone.failure, 'connect');
});

test('asks no proxy that the environment names', async () => {
  process.env.HTTP_PROXY = 'http://127.0.0.1:8/';
  process.env.NODE_USE_ENV_PROXY = '1';
  const outcome = await outcomeOf(answerWith(plainAnswer(200, '')));
  delete process.env.HTTP_PROXY;
  delete process.env.NODE_USE_ENV_PROXY;
  assert.equal(kindOf(outcome), '200 whole');
});
