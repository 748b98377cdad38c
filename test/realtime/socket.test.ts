/**
 * One WebSocket of `comity.v1` against a real store: what it is subscribed to, what it is sent, in which order, and how it ends. The
 * client is in memory.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { authenticated } from '../../src/model/principal.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { engines, openEmbedded } from '../harness/stores.ts';
import { knownAs } from '../resources/known.ts';
import { MemoryPeer } from './memory-peer.ts';
import { administrator, emit, emitTypes, entryOf, openRoom } from './realtime-room.ts';

const last = (peer: MemoryPeer) => peer.frames.at(-1);
const endOf = (peer: MemoryPeer) => peer.closed;
const saw = (peer: MemoryPeer, id: string | undefined) =>
  peer.when(() => id !== undefined && peer.events.includes(id));

async function connected(context: TestContext, store: Store, options = {}): Promise<MemoryPeer> {
  const peer = await openRoom(store, options).connect(administrator);
  context.after(() => peer.close(1000, ''));
  return peer;
}

for (const [engine, open] of engines) {
  test(`${engine}: sends what comes from the subscription on, to patterns that match, once`, async (context) => {
    const [store, other] = await open(context);
    await emit(store);
    const peer = await connected(context, store);
    peer.say({ subscribe: ['staff.*', 'staff.created', 'posts.deleted'] });
    assert.deepEqual(last(peer), { subscribed: ['staff.*', 'staff.created', 'posts.deleted'] });
    // One made elsewhere, and several of one unit.
    const ids = [...(await emitTypes(other, 'staff.created', 'posts.updated', 'posts.deleted'))];
    ids.push(...(await emit(other, {}, { type: 'staff.updated' }, { type: 'paper' })));
    const [end] = await emit(other);
    await saw(peer, end);
    const expected = [ids[0], ids[2], ...ids.slice(3).filter((id) => peer.events.includes(id)), end];
    assert.deepEqual(peer.events, expected);
    assert.equal(peer.events.length, 5);
  });

  test(`${engine}: resumes after an event with nothing lost, nothing doubled, in log order, while writers go on`, async (context) => {
    const [store, other] = await open(context);
    const before = await emit(store);
    const missed: string[] = [];
    for (let unit = 0; unit < 60; unit += 1) {
      missed.push(
        ...(await emit(
          unit % 2 === 0 ? store : other,
          {},
          {},
          { type: 'posts.created', collection: 'posts' },
        )),
      );
    }
    const room = openRoom(store, { catchUpBatchEventsMax: 7, hubBatchEventsMax: 5 });
    const peers = [await room.connect(administrator), await room.connect(administrator)];
    context.after(() => {
      for (const peer of peers) peer.close(1000, '');
    });
    let isWriting = true;
    const live: string[] = [];
    const writing = (async () => {
      for (let unit = 0; unit < 40; unit += 1)
        live.push(...(await emit(unit % 2 === 0 ? other : store, {}, {})));
      isWriting = false;
    })();
    peers[0]?.say({ subscribe: ['*'], after: before[0] });
    await turn();
    peers[1]?.say({ subscribe: ['*'], after: before[0] });
    await writing;
    assert.equal(isWriting, false);
    for (const peer of peers) {
      await saw(peer, live.at(-1));
      const wanted = [...missed, ...live];
      assert.equal(peer.events.length, wanted.length);
      assert.deepEqual([...peer.events].sort(), [...wanted].sort());
      assert.deepEqual(peer.events, wanted, 'in the order of the log');
    }
  });

  test(`${engine}: sends a reset when it does not know the event that was named, and goes on from now; its position resumes`, async (context) => {
    const [store] = await open(context);
    const early = await emit(store);
    const peer = await connected(context, store);
    peer.say({ subscribe: ['*'], after: 'evt_purged' });
    await peer.when(() => peer.frames.some((frame) => 'reset' in frame));
    const ids = [...(await emit(store)), ...(await emit(store))];
    await saw(peer, ids[1]);
    assert.deepEqual(peer.events, ids);
    const { reset } = peer.frames.find((frame) => 'reset' in frame) as { reset: Record<string, string> };
    assert.equal(reset.code, 'position_expired');
    const later = await connected(context, store);
    later.say({ subscribe: ['*'], after: reset.position });
    await saw(later, ids[1]);
    assert.deepEqual(later.events, ids);
    const whole = await connected(context, store);
    whole.say({ subscribe: ['*'], after: '' });
    await saw(whole, ids[1]);
    assert.deepEqual(whole.events, [...early, ...ids], 'from the oldest event');
  });
}

test('adds patterns with a place of their own: brings what they missed and nothing that another brought already', async (context) => {
  const store = await openEmbedded(context);
  const [first = ''] = await emitTypes(store, 'staff.created');
  const early = await emitTypes(store, 'posts.created', 'staff.created');
  const peer = await connected(context, store);
  peer.say({ subscribe: ['staff.*'] });
  const live = await emitTypes(store, 'staff.updated', 'posts.updated', 'staff.deleted');
  assert.deepEqual(peer.events, [live[0], live[2]]);
  peer.say({ subscribe: ['posts.*', 'staff.updated', 'staff.*'], after: first });
  const said = peer.frames.findLast((frame) => 'subscribed' in frame);
  assert.deepEqual(said, { subscribed: ['staff.*', 'posts.*', 'staff.updated'] });
  const [end] = await emitTypes(store, 'posts.deleted');
  await saw(peer, end);
  assert.deepEqual(peer.events, [live[0], live[2], early[0], live[1], end]);
});

test('brings in its place in the log what happens to older patterns while a new one is caught up with', async (context) => {
  const store = await openEmbedded(context);
  const [first = '', ...posts] = await emitTypes(store, ...Array.from({ length: 5 }, () => 'posts.created'));
  const { promise: gate, resolve: letThrough } = Promise.withResolvers<void>();
  // The hub reads everything; a catch-up, which asks for types, is held up.
  const held: Store = {
    ...store,
    tail: (after, filter, limit) =>
      filter.op === 'always'
        ? store.tail(after, filter, limit)
        : gate.then(() => store.tail(after, filter, limit)),
  };
  const peer = await connected(context, held, { catchUpBatchEventsMax: 2 });
  peer.say({ subscribe: ['staff.*'] });
  peer.say({ subscribe: ['posts.*'], after: first });
  const during = await emitTypes(store, 'staff.created', 'posts.updated', 'staff.updated');
  assert.deepEqual(peer.events, [], 'it is not done yet');
  letThrough();
  await saw(peer, during.at(-1));
  assert.deepEqual(peer.events, [...posts, ...during]);
});

test('takes each resumption in its turn, and a plain subscription from where it was asked for', async (context) => {
  const store = await openEmbedded(context);
  const ids = await emitTypes(store, 'a.x', 'b.x', 'a.x', 'b.x', 'c.x');
  const peer = await connected(context, store, { catchUpBatchEventsMax: 1 });
  peer.say({ subscribe: ['a.*'], after: ids[0] });
  peer.say({ subscribe: ['b.*'], after: ids[0] });
  peer.say({ subscribe: ['c.*'] });
  peer.say({ subscribe: ['d.*'], after: 'evt_unknown' });
  const [c] = await emitTypes(store, 'c.x');
  // Events follow a reset from then on.
  await peer.when(() => peer.frames.some((frame) => 'reset' in (frame as object)));
  const [d] = await emitTypes(store, 'd.x');
  await peer.when(() => peer.events.length >= 5);
  const [end] = await emitTypes(store, 'a.x');
  await saw(peer, end);
  assert.deepEqual(
    peer.events.filter((id) => id !== c && id !== d && id !== end),
    [ids[2], ids[1], ids[3]],
  );
  assert.deepEqual([...peer.events].sort(), [ids[2], ids[1], ids[3], c, d, end].sort());
});

test('stops sending what was unsubscribed from, also in the middle of a resumption', async (context) => {
  const store = await openEmbedded(context);
  const [first] = await emit(store);
  await emitTypes(store, ...Array.from({ length: 200 }, () => 'staff.created'));
  const peer = await connected(context, store, { catchUpBatchEventsMax: 5 });
  peer.say({ subscribe: ['staff.*', 'posts.*'], after: first });
  await peer.when(() => peer.events.length >= 5);
  peer.say({ unsubscribe: ['staff.*', 'never.was'] });
  const taken = peer.events.length;
  assert.deepEqual(last(peer), { subscribed: ['posts.*'] });
  const [end] = await emitTypes(store, 'posts.created');
  await saw(peer, end);
  assert.equal(peer.events.length, taken + 1);
  peer.say({ unsubscribe: ['posts.*'] });
  await emitTypes(store, 'posts.created');
  assert.equal(peer.events.length, taken + 1);
});

test('sends each principal what it may read, and without what is hidden from it', async (context) => {
  const store = await openEmbedded(context);
  const room = openRoom(store);
  const ada = authenticated({ id: 'ada', scopes: ['read', 'write'] });
  const bob = authenticated({ id: 'bob', scopes: ['read', 'write'] });
  const peers = {
    ada: await room.connect(ada),
    bob: await room.connect(bob),
    root: await room.connect(administrator),
    nobody: await room.connect(),
  };
  context.after(() => {
    for (const peer of Object.values(peers)) peer.close(1000, '');
  });
  const [before] = await emit(store);
  const object = { name: 'Ada', salary: 918_273, note: 'whispered' };
  const [staff = ''] = await emit(store, { owner: 'ada', object });
  const [desk = ''] = await emit(store, { type: 'desks.created', collection: 'desks', owner: 'ada' });
  for (const peer of Object.values(peers)) peer.say({ subscribe: ['*'], after: before });
  const [liveStaff = ''] = await emit(store, { owner: 'ada', object });
  const [liveDesk = ''] = await emit(store, { type: 'desks.created', collection: 'desks', owner: 'ada' });
  const [end] = await emit(store);
  await Promise.all(Object.values(peers).map((peer) => saw(peer, end)));
  assert.deepEqual(peers.ada.events, [staff, desk, liveStaff, liveDesk, end]);
  assert.deepEqual(peers.root.events, peers.ada.events);
  assert.deepEqual(peers.bob.events, [staff, liveStaff, end]);
  assert.deepEqual(peers.nobody.events, peers.bob.events);
  const membersOf = (peer: MemoryPeer) =>
    peer.frames.flatMap(({ event }) => {
      const { id, data } = (event ?? {}) as { id?: string; data?: { object: object } };
      return id === staff || id === liveStaff ? [Object.keys(data?.object ?? {}).join()] : [];
    });
  assert.deepEqual(membersOf(peers.root), ['name,salary,note', 'name,salary,note']);
  assert.deepEqual(membersOf(peers.ada), ['name,salary', 'name,salary']);
  assert.deepEqual(membersOf(peers.bob), ['name', 'name']);
  assert.deepEqual(membersOf(peers.nobody), ['name', 'name']);
});

test('closes a live client that falls behind with 1013 and the event to resume after, and loses nothing by it', async (context) => {
  const store = await openEmbedded(context);
  const room = openRoom(store, { realtimeBufferBytesMax: 4096 });
  const peer = await room.connect(administrator, undefined, new MemoryPeer(1024));
  peer.say({ subscribe: ['*'] });
  peer.stall();
  const ids: string[] = [];
  while (peer.closed === undefined && ids.length < 100)
    ids.push(...(await emit(store, { object: { text: 'x'.repeat(300) } })));
  const resumable = peer.events.at(-1) ?? '';
  assert.deepEqual(peer.closed, { code: 1013, reason: `fell behind; resume after ${resumable}` });
  assert.ok(peer.events.length > 5 && peer.events.length < 15, `${peer.events.length} events of 400 octets`);
  ids.push(...(await emit(store)));
  assert.equal(peer.late, 0);
  const again = await room.connect(administrator);
  again.say({ subscribe: ['*'], after: resumable });
  await saw(again, ids.at(-1));
  again.close(1000, '');
  assert.deepEqual([...peer.events, ...again.events], ids);
});

test('waits for a slow client that resumes, however slow, holding nothing back for it', async (context) => {
  const store = await openEmbedded(context);
  const [first] = await emit(store);
  const ids: string[] = [];
  for (let at = 0; at < 40; at += 1) ids.push(...(await emit(store, { object: { text: 'x'.repeat(1000) } })));
  const room = openRoom(store, { realtimeBufferBytesMax: 4096, catchUpBatchEventsMax: 8 });
  const peer = await room.connect(administrator, undefined, new MemoryPeer(1024));
  context.after(() => peer.close(1000, ''));
  peer.stall();
  peer.say({ subscribe: ['*'], after: first });
  for (let taken = 0; peer.events.length < ids.length && taken < 1000; taken += 1) {
    assert.ok(peer.waitingBytes() <= 4096 + 1200, 'no more waits than was agreed');
    peer.take();
    await turn();
  }
  peer.hurry();
  ids.push(...(await emit(store)));
  await saw(peer, ids.at(-1));
  assert.deepEqual(peer.events, ids);
  assert.equal(peer.closed, undefined);
});

test('sends a single event that is larger than the buffer', async (context) => {
  const store = await openEmbedded(context);
  const peer = await connected(context, store, { realtimeBufferBytesMax: 4096 });
  peer.stall();
  peer.say({ subscribe: ['*'] });
  const [large] = await emit(store, { object: { text: 'x'.repeat(300_000) } });
  await saw(peer, large);
  assert.equal(peer.closed, undefined);
  await emit(store);
  assert.equal(endOf(peer)?.code, 1013);
});

test('ends with 1008 when the credential ends, also while it catches up', async (context) => {
  const store = await openEmbedded(context);
  const [first] = await emit(store);
  await emitTypes(store, ...Array.from({ length: 50 }, () => 'staff.created'));
  const room = openRoom(store, { catchUpBatchEventsMax: 2 });
  let revoke: () => void = () => undefined;
  let stopped = 0;
  const onEnd = (listener: () => void) => {
    revoke = listener;
    return () => {
      stopped += 1;
    };
  };
  const peer = await room.connect(administrator, { ...knownAs(administrator), onEnd });
  peer.say({ subscribe: ['*'], after: first });
  await peer.when(() => peer.events.length >= 2);
  revoke();
  const sent = peer.frames.length;
  assert.deepEqual(peer.closed, { code: 1008, reason: 'credential ended' });
  await emit(store);
  await turn();
  assert.equal(peer.frames.length, sent, 'nothing after the end');
  assert.equal(stopped, 1, 'nobody listens any more');
});

test('says what is wrong with each frame and stays, however many there are in its life', async (context) => {
  const store = await openEmbedded(context);
  let now = 0;
  const peer = await connected(context, store, { realtimeMessagesPerMinuteMax: 20, clock: () => now });
  peer.say({ subscribe: ['staff.*'] });
  for (let at = 0; at < 100; at += 1) {
    peer.say('{');
    assert.match(String(last(peer)?.error), /must be JSON/);
    now += 4_000;
  }
  const [id] = await emit(store);
  await saw(peer, id);
});

test('bounds the patterns of a socket', async (context) => {
  const store = await openEmbedded(context);
  const peer = await connected(context, store, { realtimePatternsMax: 2 });
  peer.say({ subscribe: ['a', 'b'] });
  peer.say({ subscribe: ['b', 'c'] });
  assert.deepEqual(last(peer), {
    error: 'a WebSocket may subscribe to at most 2 patterns',
  });
  peer.say({ subscribe: ['b'] });
  assert.deepEqual(last(peer), { subscribed: ['a', 'b'] });
});

for (const [what, message] of [
  ['well-formed', { unsubscribe: [] }],
  ['malformed', '['],
] as const) {
  test(`takes as many ${what} messages in any 60 seconds as the setting says, and ends with 4429 at one more`, async (context) => {
    const store = await openEmbedded(context);
    let now = 59_999;
    const peer = await connected(context, store, { realtimeMessagesPerMinuteMax: 10, clock: () => now });
    const say = (times: number) => {
      for (let at = 0; at < times; at += 1) peer.say(message);
      return peer.closed;
    };
    assert.equal(say(10), undefined);
    now = 120_000;
    assert.equal(say(10), undefined, 'a minute later');
    now = 180_000 + 30_000;
    assert.equal(say(6), undefined, 'half of those a minute ago count no longer');
    const reason = 'more than 10 messages in a minute (COMITY_REALTIME_MESSAGES_PER_MINUTE_MAX)';
    assert.deepEqual(say(1), { code: 4429, reason });
  });
}

test('closes a client that asks and never listens', async (context) => {
  const store = await openEmbedded(context);
  const room = openRoom(store, { realtimeBufferBytesMax: 4096 });
  const peer = await room.connect(administrator, undefined, new MemoryPeer(1024));
  peer.stall();
  peer.say({ subscribe: [`a.${'x'.repeat(190)}`] });
  for (let at = 0; at < 100; at += 1) peer.say({ subscribe: [] });
  assert.deepEqual(peer.closed, { code: 1013, reason: 'fell behind' });
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
  test(`a log that ${how} closes with 1011 and leaves no listener behind`, async (context) => {
    const store = await openEmbedded(context);
    const [first] = await emit(store);
    await emitTypes(store, 'staff.created');
    let listeners = 0;
    let fails = false;
    const failing: Store = {
      ...store,
      tail: (...asked) => (fails ? tail() : store.tail(...asked)),
      onAppend: (listener) => {
        const stop = store.onAppend(listener);
        listeners += 1;
        return () => {
          listeners -= 1;
          stop();
        };
      },
    };
    const room = openRoom(failing);
    const live = await room.connect(administrator);
    const behind = await room.connect(administrator);
    live.say({ subscribe: ['*'] });
    assert.equal(listeners, 1, 'one for all');
    fails = true;
    behind.say({ subscribe: ['*'], after: first });
    await behind.when(() => behind.closed !== undefined);
    assert.equal(behind.closed?.code, 1011);
    assert.equal(live.closed, undefined);
    await emit(store);
    await live.when(() => live.closed !== undefined);
    assert.equal(endOf(live)?.code, 1011);
    assert.equal(listeners, 0);
    fails = false;
    const [missed = ''] = await emit(store);
    const again = await room.connect(administrator);
    again.say({ subscribe: ['*'], after: first });
    await saw(again, missed);
    again.close(1000, '');
    assert.equal(listeners, 0);
  });
}

test('reads the log once for all sockets, and tells each once', async (context) => {
  const store = await openEmbedded(context);
  let tails = 0;
  const counted: Store = {
    ...store,
    tail: (...asked) => {
      tails += 1;
      return store.tail(...asked);
    },
  };
  const room = openRoom(counted);
  const peers = await Promise.all(Array.from({ length: 200 }, () => room.connect()));
  for (const peer of peers) peer.say({ subscribe: ['staff.*', '*'] });
  tails = 0;
  const ids = [...(await emit(store)), ...(await emit(store))];
  for (const peer of peers) assert.deepEqual(peer.events, ids);
  assert.ok(tails <= 4, `${tails} reads of two events`);
  for (const peer of peers) peer.close(1000, '');
  await emit(store);
  assert.ok(tails <= 4, 'nobody listens, nobody reads');
});

test('tells many in several turns of the event loop, each event to everyone before the next', async (context) => {
  const store = await openEmbedded(context);
  const room = openRoom(store);
  const order: string[] = [];
  const peers: MemoryPeer[] = [];
  for (let at = 0; at < 6000; at += 1) {
    const peer = new MemoryPeer();
    peer.send = (text) => {
      const id = /evt_\d+/.exec(Buffer.from(text).toString('latin1'))?.[0];
      if (id !== undefined) order.push(id);
      return true;
    };
    peers.push(await room.connect(administrator, undefined, peer));
    peer.say({ subscribe: ['*'] });
  }
  const events = Array.from({ length: 5 }, () => entryOf());
  await store.commit({ changes: [], events });
  let turns = 0;
  for (; order.length < 30_000 && turns < 1000; turns += 1) await turn();
  assert.ok(turns > 1, 'others had their turn');
  const ids = events.map(({ id }) => id).sort();
  assert.deepEqual(
    order,
    ids.flatMap((id) => Array.from({ length: 6000 }, () => id)),
  );
  for (const peer of peers) peer.close(1000, '');
});
