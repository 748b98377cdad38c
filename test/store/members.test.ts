/** Several stores over one folder (home.ts): their batches, what each learns of the others, and the end of the writer. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { event, put, rowAt, suiteTables, things, unit } from '../contract/fixture.ts';
import { until } from '../harness/until.ts';
import { type Members, openMembers } from './open-members.ts';

function open(t: TestContext, count = 3): Members {
  const members = openMembers({ tables: suiteTables, count });
  t.after(() => members.close());
  return members;
}

const priceIn = (doc: string | undefined): number => Number(JSON.parse(doc ?? '{}').price);

/** Adds one to the price as workers do: in its turn among the changes of its own store, and again if another store came first. */
function addOne(store: Store, id: string): Promise<number> {
  const turn = store.lines.turn(undefined, true);
  const attempt = async (): Promise<number> => {
    await turn.take({ table: things.name, id });
    const { row } = await store.readNewest(things.name, id);
    const change = put(things, id, { price: priceIn(row?.doc) + 1 }, row?.rev);
    const commit = await store.commit(unit(change));
    return commit.outcome === 'committed' ? commit.rev : attempt();
  };
  return attempt().finally(() => turn.release());
}

test('changes of one row by chains of several stores are all made, each with a revision of its own', async (t) => {
  const { stores } = open(t);
  const [first] = stores;
  assert.ok(first);
  await first.commit(unit(put(things, 'row', { price: 0 })));
  const added = stores.flatMap((store) => Array.from({ length: 200 }, () => addOne(store, 'row')));
  const revs = await Promise.all(added);
  assert.equal(new Set(revs).size, 600);
  for (const store of stores) assert.equal(priceIn((await rowAt(store, things, 'row'))?.doc), 600);
});

test('a refused unit of one store neither refuses nor renumbers those of another in the same transaction', async (t) => {
  const { stores } = open(t);
  const commits = stores.flatMap((store, at) =>
    Array.from({ length: 60 }, (_, index) => {
      // Each id is wanted by every store: one of them makes it, in a unit that also writes another row.
      const own = put(things, `own ${at}.${index}`, { price: index });
      return store.commit(unit(own, put(things, `shared ${index}`, { price: at })));
    }),
  );
  const outcomes = await Promise.all(commits);
  const revs = outcomes.flatMap((commit) => (commit.outcome === 'committed' ? [commit.rev] : []));
  assert.deepEqual([revs.length, new Set(revs).size], [60, 60]);
  for (const [position, commit] of outcomes.entries()) {
    const at = Math.floor(position / 60);
    const index = position % 60;
    const own = await rowAt(stores[0] as Store, things, `own ${at}.${index}`);
    assert.equal(own?.rev, commit.outcome === 'committed' ? commit.rev : undefined);
  }
});

test('a store reads what another one committed in the middle of its own turn of the event loop', async (t) => {
  const { stores } = open(t, 2);
  const [writing, reading] = stores;
  assert.ok(writing && reading);
  for (let round = 0; round < 200; round += 1) {
    const made = writing.commit(unit(put(things, `seen ${round}`, {})));
    // Begins a snapshot in the turn in which the commit is acknowledged or before.
    assert.equal(await reading.read(things.name, 'none'), undefined);
    await made;
    assert.ok(await reading.read(things.name, `seen ${round}`));
  }
});

test('a store hears of changes and events of the others, and not of its own twice', async (t) => {
  const { stores } = open(t, 2);
  const [writing, reading] = stores;
  assert.ok(writing && reading);
  const heard = { things: 0, events: 0, own: 0 };
  reading.onChange(things.name, () => {
    heard.things += 1;
  });
  reading.onAppend(() => {
    heard.events += 1;
  });
  writing.onChange(things.name, () => {
    heard.own += 1;
  });
  await writing.commit(unit(put(things, 'heard', {}), event('evt_heard')));
  await until(() => heard.events > 0);
  assert.deepEqual(heard, { things: 1, events: 1, own: 1 });
  assert.equal(await writing.purge(things.name, Date.now() + 1e12, 10), 1);
  await until(() => heard.things === 2);
});

test('a store that closes leaves the others open, and each waits for its own units', async (t) => {
  const { stores } = open(t, 2);
  const [closing, staying] = stores;
  assert.ok(closing && staying);
  const pending = Array.from({ length: 50 }, (_, index) =>
    closing.commit(unit(put(things, `c ${index}`, {}))),
  );
  await closing.close();
  for (const { outcome } of await Promise.all(pending)) assert.equal(outcome, 'committed');
  await assert.rejects(closing.commit(unit(put(things, 'late', {}))), /the store is closed/);
  assert.equal((await staying.commit(unit(put(things, 'later', {})))).outcome, 'committed');
  assert.ok(await staying.read(things.name, 'c 49'));
  assert.equal(await staying.hasEnded(closing.processId), false);
});
