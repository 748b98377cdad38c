/**
 * A server that lost commits under stores that stay open, as after a failover to a standby that lagged: its data is replaced by a copy from
 * before.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always } from '../../../src/model/filter.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { commitAll, event, put, tables, things } from '../../contract/fixture.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { eventually, until } from '../../harness/until.ts';

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
