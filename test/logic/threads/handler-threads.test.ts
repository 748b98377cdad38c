/**
 * Handlers on real threads (§4.14.5): what they do wrong stays theirs. Transactions are stood in for;
 * test/logic/transaction has the real ones.
 */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ResourceRefused } from '../../../src/config/senders.ts';
import type { HandedOn, Task } from '../../../src/logic/threads/handler-protocol.ts';
import type { RunOptions } from '../../../src/logic/threads/handler-run.ts';
import { HandlerThreads } from '../../../src/logic/threads/handler-threads.ts';
import type { ResourceCall } from '../../../src/logic/transaction/resource-call.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { until } from '../../harness/until.ts';

const running = new AbortController().signal;
const observed: Observation[] = [];
const opened: HandlerThreads[] = [];

after(async () => {
  await Promise.all(opened.map((threads) => threads.close()));
});

function open(
  given: {
    timeoutMs?: number;
    heapBytesMax?: number;
    module?: string;
    store?: RunOptions['openTransaction'];
    impatient?: boolean;
  } = {},
) {
  const threads = new HandlerThreads({
    module: given.module ?? new URL('./fixtures/configuration.ts', import.meta.url).href,
    openTransaction: given.store ?? keepsCalls,
    settings: {
      handlerThreads: 1,
      // A busy machine takes more than five seconds to fill the memory of a thread.
      handlerTimeoutMs: given.timeoutMs ?? 60_000,
      handlerHeapBytesMax: given.heapBytesMax ?? 64 * 1024 * 1024,
    },
    observe: (observation) => observed.push(observation),
    clock: Date.now,
    monotonic: () => performance.now(),
    graces: given.impatient === true ? { lookMs: 20, stalledMs: 60, answerMs: 150, lateMs: 60 } : {},
  });
  opened.push(threads);
  return threads;
}

/** Octets that grow by one from piece to piece. */
const openFile: ReturnType<RunOptions['openTransaction']>['openFile'] = () => pieces();

/** Of each file that is open: how many pieces were read of it. */
const openFiles = new Set<{ pieces: number }>();

async function* pieces(): AsyncGenerator<Uint8Array> {
  const file = { pieces: 0 };
  openFiles.add(file);
  try {
    for (; file.pieces < 1000; file.pieces += 1) yield new Uint8Array(1000).fill(file.pieces % 256);
  } finally {
    openFiles.delete(file);
  }
}

/** Keeps the calls as if they were changes. */
const keepsCalls: RunOptions['openTransaction'] = () => {
  const written: string[] = [];
  return {
    openFile,
    async call(call: ResourceCall) {
      if (call.do === 'get') return undefined;
      if ('collection' in call && call.collection === 'forbidden')
        throw new ResourceRefused('forbidden', 'no', 403);
      if ('collection' in call && call.collection === 'notes' && call.do === 'create')
        written.push(String(call.fields));
      return '{"id":"1","scan":{"id":"file_1"}}';
    },
    unit: () => ({
      changes: written.map((id) => ({ table: 'notes', id, expect: { absent: true } as const, next: null })),
      events: [],
    }),
  };
};

let count = 0;

function message(
  type: string | null,
  sender = 'one',
  body: string | Uint8Array = '',
  coding: string | null = null,
): Task {
  count += 1;
  const id = `rec_${count}`;
  const given = {
    ...{ id, sender, type, dedupeKey: id, receivedAt: '2026-01-01T00:00:00.000Z', attempt: 1 },
    ...{ contentType: null, contentEncoding: coding, jsonInForm: undefined, headers: {} },
    body: Buffer.from(body).toString('base64'),
  };
  return { id, source: sender, given: { kind: 'message', message: given } };
}

function failure(handedOn: HandedOn): { error: string; message: string | null; permanent: boolean } {
  assert.equal(handedOn.outcome, 'failed');
  const { error, message: told, permanent } = handedOn as Extract<HandedOn, { outcome: 'failed' }>;
  return { error, message: told, permanent };
}

function endings(): readonly string[] {
  return observed.flatMap((one) => (one.kind === 'handler-thread-ended' ? [one.reason] : []));
}

describe('the threads of handlers', () => {
  const threads = open();
  // Its threads would end among those that later tests count.
  after(() => threads.close());
  const hand = (type: string | null, sender?: string, body?: string | Uint8Array, coding?: string) =>
    threads.run(message(type, sender, body, coding), running);

  it('are not there before the first message', () => {
    assert.equal(open().size(), 0);
  });

  it('give back what the handler wrote', async () => {
    const handedOn = await hand('write');
    assert.equal(handedOn.outcome, 'processed');
    assert.deepEqual('unit' in handedOn && handedOn.unit.changes.map(({ id }) => id), ['{"text":"written"}']);
  });

  it('give the octets of files piece by piece, and close them at their end, where the handler stops, and with the run', async () => {
    const outcomes = await Promise.all([hand('readWhole'), hand('readSome'), hand('readNone')]);
    assert.deepEqual(
      outcomes.map(({ outcome }) => outcome),
      ['processed', 'processed', 'processed'],
    );
    await until(() => openFiles.size === 0);
    const { message: told } = failure(await hand('readMany'));
    assert.match(String(told), /a function reads at most 16 files at a time/);
    await until(() => openFiles.size === 0);
  });

  it('read no more of a file than the handler takes', async () => {
    const handing = hand('readAndPause');
    await until(() => openFiles.size === 1);
    await delay(60);
    // One that the handler has, and one that its generator asked for.
    for (const { pieces: read } of openFiles) assert.ok(read <= 1, `${read} pieces were read ahead`);
    assert.equal((await handing).outcome, 'processed');
    await until(() => openFiles.size === 0);
  });

  it('close the files of a handler whose time is over, and of a thread that ends', async () => {
    const own = open({ timeoutMs: 300 });
    for (const way of ['readAndHang', 'readAndExit']) {
      assert.equal((await own.run(message(way), running)).outcome, 'failed');
      await until(() => openFiles.size === 0);
    }
  });

  it('wait for calls that the handler did not wait for, and fail by those', async () => {
    const late = await hand('late');
    assert.equal('unit' in late && late.unit.changes.length, 1);
    const { error, message: told } = failure(await hand('forgotten'));
    assert.equal(error, 'thrown');
    assert.match(String(told), /did not await a call, which failed: no \(configuration\.ts:\d+:\d+\)$/);
  });

  it('tell what was thrown, and where in the configuration', async () => {
    const { error, message: told } = failure(await hand('throw'));
    assert.equal(error, 'thrown');
    assert.match(String(told), /^TypeError: no such thing \(configuration\.ts:\d+:\d+\)$/);
  });

  it('fail for good where the handler says so, or the body is not what it takes it for', async () => {
    assert.deepEqual(failure(await hand('unprocessable')), {
      error: 'unprocessable',
      message: 'not for us',
      permanent: true,
    });
    assert.equal(failure(await hand('json', 'one', 'no json')).permanent, true);
    assert.equal(failure(await hand('json', 'one', gzipSync('{}'))).message, 'the body is not UTF-8');
    assert.equal((await hand('json', 'one', gzipSync('{}'), 'gzip')).outcome, 'processed');
  });

  it('fail by a refusal that nobody catches, and by no other', async () => {
    assert.deepEqual(failure(await hand('refused')), {
      error: 'refused',
      message: 'forbidden: no',
      permanent: false,
    });
    assert.equal((await hand('caught')).outcome, 'processed');
  });

  it('answer ten thousand calls of one message', async () => {
    assert.equal((await hand('calls')).outcome, 'processed');
  });

  it('fail one message by a rejection that nobody handles, and no other', async () => {
    const [rejected, other] = await Promise.all([hand('reject'), hand('slow', 'two')]);
    assert.match(String(failure(rejected).message), /^Error: in the background/);
    assert.equal(other.outcome, 'processed');
    assert.equal(threads.size(), 1);
  });

  it('print what a handler prints', async (t) => {
    const printed = Promise.withResolvers<string>();
    t.mock.method(process.stdout, 'write', (text: string | Uint8Array) => {
      if (String(text).includes('said by')) printed.resolve(String(text));
      return true;
    });
    await hand('log');
    assert.equal(await printed.promise, 'said by a handler\n');
  });

  it('are replaced after an error in a timer, when what else runs in them is done', async () => {
    const [thrown, other] = await Promise.all([hand('uncaught'), hand('slow', 'two')]);
    assert.match(String(failure(thrown).message), /^Error: in a timer/);
    assert.equal(other.outcome, 'processed');
    assert.equal((await hand('write')).outcome, 'processed');
  });

  it('abort what is under way when the program stops', async () => {
    const stop = new AbortController();
    const handedOn = threads.run(message('hang'), stop.signal);
    stop.abort();
    assert.deepEqual(await handedOn, { outcome: 'aborted' });
    assert.deepEqual(await threads.run(message('write'), stop.signal), { outcome: 'aborted' });
  });
});

describe('a handler that takes its thread down', () => {
  const threads = open();

  it('uses up its own attempt alone, and is tried alone from then on', async () => {
    const exits = () => endings().filter((reason) => reason === 'exit').length;
    const before = exits();
    const poison = message('exit');
    const [first, other] = await Promise.all([
      threads.run(poison, running),
      threads.run(message('slow', 'two'), running),
    ]);
    assert.equal(failure(first).error, 'thread-ended');
    assert.match(String(failure(first).message), /process\.exit/);
    assert.equal(other.outcome, 'processed');
    const [again, another] = await Promise.all([
      threads.run(poison, running),
      threads.run(message('slow', 'two'), running),
    ]);
    assert.equal(failure(again).error, 'thread-ended');
    assert.equal(another.outcome, 'processed');
    // Threads of the tests before may end meanwhile, for other reasons.
    assert.equal(exits() - before, 2);
    const ended = observed.find((one) => one.kind === 'handler-thread-ended' && one.reason === 'exit');
    assert.deepEqual(ended?.kind === 'handler-thread-ended' && ended.senders, ['one']);
  });

  it('is found by trying each message alone where nobody knows which it was', async () => {
    for (const [poison, heapBytesMax] of [
      ['leave', 64 * 1024 * 1024],
      ['allocate', 24 * 1024 * 1024],
    ] as const) {
      const shared = open({ heapBytesMax });
      const [guilty, ...others] = await Promise.all([
        shared.run(message(poison), running),
        ...['two', 'two', 'one'].map((sender) => shared.run(message('pause', sender), running)),
      ]);
      assert.equal(failure(guilty).error, 'thread-ended', poison);
      assert.deepEqual(
        others.map(({ outcome }) => outcome),
        ['processed', 'processed', 'processed'],
        poison,
      );
    }
  });

  it('drops what the others wrote before they began again', async () => {
    const shared = open();
    const [, other] = await Promise.all([
      shared.run(message('exit'), running),
      shared.run(message('writeAndPause', 'two'), running),
    ]);
    assert.equal('unit' in other && other.unit.changes.length, 1);
  });

  it('cannot send a signal to the program', async () => {
    assert.match(String(failure(await threads.run(message('kill'), running)).message), /cannot send/);
  });

  it('may need only so much memory', async () => {
    const small = open({ heapBytesMax: 24 * 1024 * 1024 });
    assert.match(String(failure(await small.run(message('allocate'), running)).message), /memory/);
    assert.equal(endings().at(-1), 'memory');
    assert.equal((await small.run(message('write'), running)).outcome, 'processed');
  });

  it('fails where the configuration cannot be imported', async () => {
    const broken = open({ module: 'data:text/javascript,throw new Error("broken")' });
    const { error, message: told } = failure(await broken.run(message('write'), running));
    assert.equal(error, 'thread-ended');
    assert.match(String(told), /could not be imported: Error: broken/);
  });
});

describe('a handler that takes too long', () => {
  /** Long enough for the other handlers of these tests on a busy machine. */
  const timeoutMs = 2500;
  const threads = open({ impatient: true, timeoutMs });

  it('fails when its time is over, is told so, and its thread goes on if it stops', async () => {
    assert.deepEqual(failure(await threads.run(message('signal'), running)), {
      error: 'timeout',
      message: `not done within ${timeoutMs} ms`,
      permanent: false,
    });
    assert.equal((await threads.run(message('write'), running)).outcome, 'processed');
    assert.equal(threads.size(), 1);
  });

  it('loses its thread when it goes on all the same', async () => {
    const before = endings().length;
    assert.equal(failure(await threads.run(message('hang'), running)).error, 'timeout');
    while (endings().length === before) await threads.run(message('slow', 'two'), running);
    assert.deepEqual(endings().slice(before), ['late-handler']);
    assert.equal((await threads.run(message('write'), running)).outcome, 'processed');
  });

  it('costs no other message its attempt by never letting go of its thread', async () => {
    const before = endings().length;
    const shared = open({ impatient: true, timeoutMs });
    const others = ['two', 'two', 'one'].map((sender) => shared.run(message('pause', sender), running));
    const stuck = await shared.run(message('spinLater'), running);
    assert.equal(failure(stuck).error, 'timeout');
    for (const other of await Promise.all(others)) assert.equal(other.outcome, 'processed');
    while (endings().length < before + 2) await shared.run(message('slow', 'two'), running);
    assert.deepEqual(endings().slice(before), ['no-answer', 'no-answer']);
  });

  it('holds up no other sender, not even by never letting go of its thread', async () => {
    const before = endings().length;
    const patient = open({ impatient: true, timeoutMs: 60_000 });
    const stop = new AbortController();
    const stuck = patient.run(message('spin'), stop.signal);
    const ofSame = patient.run(message('write', 'one'), running);
    const first = await Promise.race([
      stuck,
      ofSame,
      patient.run(message('write', 'two'), running).then(() => 'two'),
    ]);
    assert.equal(first, 'two');
    assert.equal(patient.size(), 2);
    stop.abort();
    assert.deepEqual(await stuck, { outcome: 'aborted' });
    assert.equal((await ofSame).outcome, 'processed');
    assert.deepEqual(endings().slice(before), ['no-answer']);
  });
});

describe('a store that is away', () => {
  it('ends the attempt without counting it', async () => {
    const away = open({
      store: () => ({
        openFile,
        call: async () => {
          throw new StoreUnavailable('away', { retryAfterSeconds: 1 });
        },
        unit: () => ({ changes: [], events: [] }),
      }),
    });
    await assert.rejects(away.run(message('write'), running), StoreUnavailable);
  });
});
