/**
 * The producer of the event stream (§6) against a client that is slow, goes away or cannot be served: a real store, and a
 * sink in this file that says when it is ready.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { eventDocument } from '../../../src/model/event.ts';
import { always, never } from '../../../src/model/filter.ts';
import { anonymous, type Known } from '../../../src/model/principal.ts';
import { createOpenConnections } from '../../../src/observe/open-connections.ts';
import { createLogPlaces } from '../../../src/resources/events/log-places.ts';
import { createLogViews } from '../../../src/resources/events/seen-event.ts';
import { createSharedBatches, type SharedBatches } from '../../../src/resources/events/shared-batches.ts';
import { openEventStream, WriteTurns } from '../../../src/resources/events/stream.ts';
import { type Store, StoreUnavailable, type TailEntry } from '../../../src/store/store.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { ampleMemory } from '../../memory/ample.ts';

const batchBytesMax = 1024 * 1024;
const limits = { batchBytesMax, heartbeatMs: 60_000 };
const store = await openEmbedded();
let made = 0;

async function emit(text: string): Promise<string> {
  made += 1;
  const id = `evt_${String(made).padStart(4, '0')}`;
  const doc = eventDocument(id, 'things.created', Date.now(), JSON.stringify({ text }));
  const entry = { id, type: 'things.created', collection: 'things', owner: null, doc, createdAt: Date.now() };
  const commit = await store.commit({ changes: [], events: [entry] });
  assert.equal(commit.outcome, 'committed');
  return id;
}

/** Takes `room` writes, then says that it is full until `empty` is called. */
class SlowSink {
  text = '';
  longest = 0;
  ended = false;
  room: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #listener: () => void = () => undefined;

  constructor(room: number) {
    this.room = room;
  }

  readonly memory = ampleMemory;

  write(content: string | Uint8Array): boolean {
    this.text += typeof content === 'string' ? content : this.#decoder.decode(content, { stream: true });
    this.longest = Math.max(this.longest, content.length);
    this.room -= 1;
    return this.room > 0;
  }

  fail(): void {
    this.ended = true;
  }

  onReady(listener: () => void): void {
    this.#listener = listener;
  }

  empty(room: number): void {
    this.room = room;
    this.#listener();
  }

  end(): void {
    this.ended = true;
  }
}

type Followed = Parameters<typeof createSharedBatches>[0];

function batchesOf(of: Followed): SharedBatches {
  return createSharedBatches(of, { batchEventsMax: 3, batchBytesMax });
}

const wholeEvents = createLogViews([])(anonymous);
const reach = { visible: always, formerly: never, both: always };
const reader = { key: '', filter: always, view: wholeEvents, reach, party: '' };

type Opening = Parameters<typeof openEventStream>;

function streamFrom(
  lastEventId: string | undefined,
  onEnd?: Known['onEnd'],
  given: Partial<Opening[0]> = {},
): Opening {
  const { enter } = createOpenConnections(Date.now);
  const stream = { kind: 'stream', principal: null, peer: '', about: () => '' } as const;
  const log = {
    ...{ store, batches: batchesOf(store), turns: new WriteTurns(), limits },
    places: createLogPlaces(store, (text) => text.length.toString(36)),
    ...given,
  };
  const follower = { reader, onEnd, enter: (octets: () => number) => enter({ ...stream, octets }) };
  return [log, follower, lastEventId ?? 'now'];
}

const idsIn = (text: string) => [...text.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id);

async function drained(sink: SlowSink, room: number, until: () => boolean): Promise<void> {
  for (let turns = 0; !until() && turns < 10_000; turns += 1) {
    if (sink.room <= 0) sink.empty(room);
    await turn();
  }
  assert.ok(until());
}

test('a slow client gets every event once, in pieces that together are whole characters', async () => {
  const first = await emit('first');
  const wanted: string[] = [];
  for (let index = 0; index < 10; index += 1) wanted.push(await emit('😀'.repeat(20_000 + index)));
  const sink = new SlowSink(1);
  const stream = await openEventStream(...streamFrom(first));
  const close = stream.open(sink);
  await drained(sink, 1, () => sink.text.endsWith('"}}}\n\n') && idsIn(sink.text).length === 10);
  close();
  assert.deepEqual(idsIn(sink.text), wanted);
  assert.ok(sink.longest <= 16 * 1024, 'no piece is larger than may wait');
  assert.ok(sink.text.isWellFormed());
});

test('a client that says twice that it is ready gets nothing twice', async () => {
  const first = await emit('before');
  const wanted = [await emit('x'.repeat(50_000)), await emit('last')];
  const sink = new SlowSink(1);
  const stream = await openEventStream(...streamFrom(first));
  const close = stream.open(sink);
  await drained(sink, 1, () => sink.text.includes('evt_'));
  sink.empty(100);
  // What an emptied socket says again after a heartbeat that filled it.
  sink.empty(100);
  await drained(sink, 100, () => sink.text.includes('last'));
  sink.empty(100);
  await turn();
  close();
  assert.deepEqual(idsIn(sink.text), wanted);
  assert.equal(sink.text.split('"text":"x').length, 2);
  assert.equal(
    sink.text.split('\n\n').length,
    1 + 1 + wanted.length,
    'a comment and the events, each ended once',
  );
});

for (const [how, tail] of [
  ['rejects', () => Promise.reject(new StoreUnavailable('gone', { retryAfterSeconds: 1 }))],
  [
    'throws',
    () => {
      throw new StoreUnavailable('gone', { retryAfterSeconds: 1 });
    },
  ],
] as const) {
  test(`a log that ${how} ends the stream and leaves no listener behind`, async () => {
    let listeners = 0;
    const failing: Store = {
      ...store,
      head: () => store.head(),
      tail,
      onAppend: () => {
        listeners += 1;
        return () => {
          listeners -= 1;
        };
      },
    };
    const sink = new SlowSink(100);
    const batches = batchesOf(failing);
    const listening = listeners;
    const stream = await openEventStream(...streamFrom(undefined, undefined, { store: failing, batches }));
    stream.open(sink);
    await turn();
    assert.equal(sink.ended, true);
    assert.equal(listeners, listening);
  });
}

test('a stream ends with the credential that opened it, also when that ended meanwhile', async () => {
  let end: () => void = () => assert.fail('nobody listens');
  let stopped = 0;
  const onEnd: Known['onEnd'] = (listener) => {
    end = listener;
    return () => {
      stopped += 1;
    };
  };
  const sink = new SlowSink(100);
  const stream = await openEventStream(...streamFrom(undefined, onEnd));
  stream.open(sink);
  await emit('heard');
  await drained(sink, 100, () => idsIn(sink.text).length === 1);
  assert.equal(sink.ended, false);
  end();
  assert.equal(sink.ended, true);
  assert.equal(stopped, 1, 'an ended stream no longer waits for the credential');
  const before = sink.text;
  await emit('unheard');
  await turn();
  assert.equal(sink.text, before);

  const late = new SlowSink(100);
  const opened = await openEventStream(
    ...streamFrom(undefined, (listener) => {
      listener();
      return () => undefined;
    }),
  );
  opened.open(late);
  assert.equal(late.ended, true);
});

test('a closed stream stops waiting for the end of its credential', async () => {
  let stopped = 0;
  const stream = await openEventStream(
    ...streamFrom(undefined, () => () => {
      stopped += 1;
    }),
  );
  stream.open(new SlowSink(100))();
  assert.equal(stopped, 1);
});

test('a closed stream stays silent', async () => {
  const sink = new SlowSink(100);
  const stream = await openEventStream(...streamFrom(undefined));
  const close = stream.open(sink);
  await emit('heard');
  await drained(sink, 100, () => idsIn(sink.text).length === 1);
  close();
  const before = sink.text;
  await emit('unheard');
  await turn();
  assert.equal(sink.text, before);
});

test('streams that stand at one place read it once, and what changed since is read anew', async () => {
  let reads = 0;
  const counting: Followed = {
    ...store,
    onAppend: (listener) => store.onAppend(listener),
    tail: (...args) => {
      reads += 1;
      return store.tail(...args);
    },
  };
  const batches = batchesOf(counting);
  const first = await emit('place');
  const wanted = [await emit('one'), await emit('two')];
  const open = async (key: string): Promise<readonly [SlowSink, () => void]> => {
    const sink = new SlowSink(Number.POSITIVE_INFINITY);
    const [log, follower, after] = streamFrom(first, undefined, { batches });
    const stream = await openEventStream(log, { ...follower, reader: { ...reader, key } }, after);
    return [sink, stream.open(sink)];
  };
  const sample = await open('a');
  const streams = [sample, await open('a'), await open('a'), await open('b')];
  await drained(sample[0], 1, () => streams.every(([sink]) => idsIn(sink.text).length === 2));
  await turn();
  assert.equal(reads, 2, 'once for each key, though three stand at one place');
  wanted.push(await emit('three'));
  await drained(sample[0], 1, () => streams.every(([sink]) => idsIn(sink.text).length === 3));
  for (const [sink, close] of streams) {
    assert.deepEqual(idsIn(sink.text), wanted);
    close();
  }
  assert.equal(reads, 4, 'once more for each');
});

test('streams that wait for one answer of the store share it, and none shares one of before a change', async () => {
  const answers: PromiseWithResolvers<readonly TailEntry[]>[] = [];
  let append: () => void = () => undefined;
  const batches = batchesOf({
    ...store,
    logPosition: () => ({ rev: 0, id: '' }),
    onAppend: (listener) => {
      append = listener;
      return () => undefined;
    },
    tail: () => {
      const answer = Promise.withResolvers<readonly TailEntry[]>();
      answers.push(answer);
      return answer.promise;
    },
  });
  const after = { rev: 1, id: 'evt' };
  const entry = {
    rev: 2,
    id: 'evt_2',
    type: 'a.b',
    collection: 'a',
    owner: null,
    doc: '{}',
    document: null,
    former: null,
  };
  const before = [batches.read(reader, after), batches.read(reader, after)];
  assert.equal(answers.length, 1);
  append();
  const later = batches.read(reader, after);
  assert.equal(answers.length, 2);
  answers[0]?.resolve([]);
  answers[1]?.resolve([entry]);
  assert.deepEqual(
    (await Promise.all(before)).map(({ to }) => to),
    [after, after],
  );
  assert.deepEqual((await later).to, { rev: 2, id: 'evt_2' });
  assert.equal(await batches.known(reader, after), await later, 'it is kept');
  append();
  assert.equal(batches.known(reader, after), undefined);
});
