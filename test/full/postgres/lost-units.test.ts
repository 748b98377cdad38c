/**
 * A server that lost commits under stores that stay open, as after a failover to a standby that lagged: its data is replaced by a copy from
 * before.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always, type Filter, never } from '../../../src/model/filter.ts';
import { anonymous } from '../../../src/model/principal.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { createOpenConnections } from '../../../src/observe/open-connections.ts';
import { createLogPlaces } from '../../../src/resources/events/log-places.ts';
import { createLogViews } from '../../../src/resources/events/seen-event.ts';
import { createSharedBatches } from '../../../src/resources/events/shared-batches.ts';
import { openEventStream, WriteTurns } from '../../../src/resources/events/stream.ts';
import { PositionLost, readLog } from '../../../src/store/follow-log.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { commitAll, event, fields, put, tables, things } from '../../contract/fixture.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { eventually, until } from '../../harness/until.ts';
import { ampleMemory } from '../../memory/ample.ts';
import type { MemoryPeer } from '../../realtime/memory-peer.ts';
import { administrator, openRoom } from '../../realtime/realtime-room.ts';

async function commitSome(store: Store, name: string): Promise<readonly number[]> {
  const revs: number[] = [];
  for (let index = 0; index < 20; index += 1) {
    const id = `${name} ${index}`;
    revs.push(await untilAvailable(() => commitAll(store, put(things, id, {}), event(`evt_${id}`))));
  }
  return revs;
}

/** Repeats what fails while the connections are made again. */
function untilAvailable<T>(work: () => Promise<T>): Promise<T> {
  return eventually(async () => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return undefined;
    }
  });
}

test('gives no revision again and skips no event when another server takes over without the last commits', async (t) => {
  const cluster = await ownCluster();
  const observed: Observation[] = [];
  const open = () =>
    openPostgresStore({
      url: cluster.url,
      tables,
      databasePollMs: 100,
      observe: (fact) => void observed.push(fact),
    });
  const stores = [await open(), await open()] as const;
  const [writer, reader] = stores;
  t.after(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await cluster.dispose();
  });
  const kept = await commitSome(writer, 'kept');
  await cluster.stop();
  await cluster.save();
  await cluster.start();
  const lost = await commitSome(writer, 'lost');
  const position = await untilAvailable(() => Promise.resolve(reader.head()));
  assert.equal(position.rev, lost.at(-1));
  await until(async () => (await reader.logPosition()).rev === position.rev);
  const told = new Set<Store>();
  for (const store of stores) store.onLost(() => void told.add(store));
  await cluster.stop('immediate');
  await cluster.load();
  await cluster.start();
  const later = await commitSome(writer, 'later');
  await until(() => told.size === stores.length, 'both stores learn of the loss');
  assert.ok(observed.some((fact) => fact.kind === 'store-failed' && fact.what === 'acknowledged writes'));
  assert.ok(Math.min(...later) > Math.max(...lost));
  const shown = new Set((await reader.tail(position, always, 100)).map(({ rev }) => rev));
  assert.deepEqual(
    later.filter((rev) => !shown.has(rev)),
    [],
  );
  for (const store of stores) {
    for (const rev of [...kept, ...later]) assert.equal(await store.isLost(rev), false);
    for (const rev of lost) assert.equal(await store.isLost(rev), true);
  }
  // One process raised the counter for the new server; the other goes on from there.
  const [next] = await commitSome(reader, 'next');
  assert.equal(next, (later.at(-1) ?? 0) + 1);
});

/** The text of a stream of all events from now on, and whether it has ended. */
async function streamOf(
  store: Store,
): Promise<{ readonly text: () => string; readonly ended: () => boolean }> {
  let text = '';
  let ended = false;
  const limits = { batchBytesMax: 1024 * 1024, heartbeatMs: 60_000 };
  const reach = { visible: always, formerly: never, both: always };
  const { enter } = createOpenConnections(Date.now);
  const log = {
    ...{ store, limits, turns: new WriteTurns() },
    batches: createSharedBatches(store, { batchEventsMax: 100, batchBytesMax: limits.batchBytesMax }),
    places: createLogPlaces(store, (mac) => mac.length.toString(36)),
  };
  const follower = {
    reader: { key: '', filter: always, view: createLogViews([])(anonymous), reach, party: '' },
    onEnd: undefined,
    enter: (octets: () => number) =>
      enter({ kind: 'stream', principal: null, peer: '', about: () => '', octets }),
  };
  const stream = await openEventStream(log, follower, 'now');
  const end = (): void => {
    ended = true;
  };
  stream.open({
    memory: ampleMemory,
    write(content) {
      text += Buffer.from(content).toString();
      return true;
    },
    onReady: () => undefined,
    fail: end,
    end,
  });
  return { text: () => text, ended: () => ended };
}

test('no follower goes on from a lost place, though it was not told of the loss', async (t) => {
  const cluster = await ownCluster();
  const opened = await openPostgresStore({ url: cluster.url, tables, databasePollMs: 600_000 });
  t.after(async () => {
    await opened.close();
    await cluster.dispose();
  });
  // Whoever is told in time ends by that alone: connections come back in any order, and a look may come last.
  const store: Store = { ...opened, onLost: () => () => undefined };
  const kept = await commitSome(store, 'kept');
  await cluster.stop();
  await cluster.save();
  await cluster.start();
  const [lost = 0] = (await commitSome(store, 'lost')).slice(-1);
  await until(() => opened.logPosition().rev === lost);
  const readAgain = () => untilAvailable(async () => opened.version('things'));
  await readAgain();
  const stream = await streamOf(store);
  const peer: MemoryPeer = await openRoom(store).connect(administrator);
  peer.say({ subscribe: ['*'] });
  await cluster.stop('immediate');
  await cluster.load();
  await cluster.start();
  // A read that fails would end them too.
  await readAgain();
  await commitSome(store, 'later');
  await until(() => stream.ended(), 'the stream ends', 10_000);
  await until(() => peer.closed !== undefined, 'the socket is closed', 10_000);
  assert.doesNotMatch(stream.text(), /later/);
  assert.deepEqual(peer.events, []);
  const ofType: Filter = { op: 'eq', field: fields.type, value: 'things.created' };
  for (const filter of [always, ofType, never]) {
    const reading = { filter, limit: 100, bytesMax: 1024 * 1024 };
    await assert.rejects(async () => readLog(store, { rev: lost, id: '' }, reading), PositionLost);
    await readLog(store, { rev: kept.at(-1) ?? 0, id: '' }, reading);
  }
  await assert.rejects(async () => store.stretch({ rev: lost, id: '' }, 10), PositionLost);
  assert.equal((await store.tail({ rev: lost, id: '' }, always, 100)).length, 20);
});
