/**
 * Rules over references on sockets (§5.9): live and in a catch-up, from the events that the hub keeps and from the log, each event is judged
 * by the rows that it names as they are then, on both stores.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { authenticated } from '../../src/model/principal.ts';
import { createLogViews, createWithholds } from '../../src/resources/events/seen-event.ts';
import type { Store } from '../../src/store/store.ts';
import { keptRow } from '../../src/store/store.ts';
import { engines } from '../harness/stores.ts';
import type { MemoryPeer } from './memory-peer.ts';
import { emit, endWith, openRoom } from './realtime-room.ts';

// `things` is a table of every test store.
const collections = [
  ...resolveCollections({
    things: { schema: Type.Object({ holder: Type.String() }), access: { read: 'administrator' } },
    remarks: {
      schema: Type.Object({ thingId: Type.String() }),
      references: { thingId: { collection: 'things' } },
      access: { read: { anyOf: [{ where: { 'thingId.holder': 'ada' } }, 'owner'] } },
    },
  }).values(),
];

async function hold(store: Store, holder: string): Promise<void> {
  const row = await store.read('things', 't');
  const at = Date.now();
  const change = {
    table: 'things',
    id: 't',
    expect: row === undefined ? ({ absent: true } as const) : { rev: row.rev },
    next: keptRow(JSON.stringify({ id: 't', holder }), null, at, at),
  };
  const { outcome } = await store.commit({ changes: [change], events: [] });
  assert.equal(outcome, 'committed');
}

const remark = { type: 'remarks.created', collection: 'remarks', object: { id: 'r', thingId: 't' } };
const other = { type: 'remarks.created', collection: 'remarks', object: { id: 's', thingId: 'none' } };
const own = { ...remark, owner: 'reader' };

for (const [engine, open] of engines) {
  test(`${engine}: a socket gets the events whose references lead to what its reader may see, live and missed`, async (context) => {
    const [store] = await open(context);
    const room = openRoom(store, {
      collections,
      views: createLogViews(collections),
      // The rows of remarks are not in this store.
      withholds: createWithholds(store, []),
    });
    const reader = authenticated({ id: 'reader', scopes: ['read'] });
    const connect = async (after?: string): Promise<MemoryPeer> => {
      const peer = await room.connect(reader);
      endWith(context, peer);
      peer.say({ subscribe: ['remarks.*'], ...(after === undefined ? {} : { after }) });
      return peer;
    };
    await hold(store, 'ada');
    const live = await connect();
    const [first] = await emit(store, remark);
    await saw(live, first);
    await hold(store, 'bob');
    const [hidden] = await emit(store, remark);
    const [none] = await emit(store, other);
    const [mine] = await emit(store, own);
    await saw(live, mine);
    assert.deepEqual(live.events, [first, mine], `neither ${hidden} nor ${none}`);

    // What the hub announced before is judged anew.
    const late = await connect(first);
    await saw(late, mine);
    assert.deepEqual(late.events, [mine]);
    await hold(store, 'ada');
    const again = await connect(first);
    await saw(again, mine);
    assert.deepEqual(again.events, [hidden, mine]);

    // Without the events that the hub keeps, the store decides.
    for (const peer of [live, late, again]) peer.close(1000, '');
    const cold = await connect(first);
    await saw(cold, mine);
    assert.deepEqual(cold.events, [hidden, mine]);
    cold.close(1000, '');
    await hold(store, 'bob');
    const last = await connect(first);
    await saw(last, mine);
    assert.deepEqual(last.events, [mine]);
  });

  test(`${engine}: hundreds of events of many references reach a socket in order, each judged by its own`, async (context) => {
    const [store] = await open(context);
    const at = Date.now();
    await store.commit({
      changes: Array.from({ length: 200 }, (_, thing) => ({
        table: 'things',
        id: `t${thing}`,
        expect: { absent: true } as const,
        next: keptRow(
          JSON.stringify({ id: `t${thing}`, holder: thing % 3 === 0 ? 'ada' : 'bob' }),
          null,
          at,
          at,
        ),
      })),
      events: [],
    });
    const room = openRoom(store, { collections, views: createLogViews(collections) });
    const peer = await room.connect(authenticated({ id: 'reader', scopes: ['read'] }));
    endWith(context, peer);
    peer.say({ subscribe: ['remarks.*'] });
    const expected: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const parts = Array.from({ length: 100 }, (_, index) => ({
        ...remark,
        object: { id: `r${index}`, thingId: `t${(index + 100 * round) % 200}` },
      }));
      for (let start = 0; start < parts.length; start += 10) {
        const some = parts.slice(start, start + 10);
        const ids = await emit(store, ...some);
        // Ids of one unit go down with its parts, and the log sorts them.
        const seen = some.toReversed().map(({ object }) => Number(object.thingId.slice(1)) % 3 === 0);
        expected.push(...ids.filter((_, index) => seen[index]));
      }
    }
    const [end] = await emit(store, own);
    await saw(peer, end);
    assert.deepEqual(peer.events, [...expected, end]);
  });
}

function saw(peer: MemoryPeer, id: string | undefined): Promise<void> {
  return peer.when(() => id !== undefined && peer.events.includes(id));
}
