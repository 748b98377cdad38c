/** Places in the event log (src/resources/events/log-places.ts) on both stores: which are expired, and what they reveal. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { createLogPlaces } from '../../src/resources/events/log-places.ts';
import { eventsTable, type Store } from '../../src/store/store.ts';
import { engines } from '../harness/stores.ts';

const keyed = (key: string) => (text: string) =>
  createHmac('sha256', key).update(text).digest('base64url').slice(0, 22);

async function emit(store: Store, id: string, createdAt: number): Promise<number> {
  const event = { id, type: 'a.created', collection: 'a', owner: null, doc: `{"id":"${id}"}`, createdAt };
  const commit = await store.commit({ changes: [], events: [event] });
  assert.ok(commit.outcome === 'committed');
  return commit.rev;
}

for (const [engine, open] of engines) {
  test(`${engine}: a place is expired once an event after it was purged, and as long as none was it stays`, async (context) => {
    const [store] = await open(context);
    const places = createLogPlaces(store, keyed('a'));
    await emit(store, 'evt_1', 1000);
    const quiet = places.now();
    // Its time is later than that of the next event, which is committed after it.
    const rev = await emit(store, 'evt_2', 3000);
    await emit(store, 'evt_3', 2000);
    const latest = places.now();
    await store.purge(eventsTable, 1500, 10);
    assert.notEqual(await places.find(quiet), undefined, 'nothing after it was purged');
    assert.deepEqual(await places.find('evt_2'), { rev, id: 'evt_2' });
    await store.purge(eventsTable, 2500, 10);
    assert.equal(await places.find(quiet), undefined);
    assert.equal(await places.find('evt_2'), undefined, 'an event of before a purged one');
    assert.equal(await places.find('evt_3'), undefined);
    await store.purge(eventsTable, 9000, 10);
    assert.notEqual(await places.find(latest), undefined, 'the end of a log that is empty by now');
    assert.notEqual(await places.find(places.now()), undefined);
    assert.equal(await createLogPlaces(store, keyed('b')).find(latest), undefined, 'a place of another key');
  });
}
