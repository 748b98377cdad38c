/** Revisions after units were lost: a copy of the data takes their place, and nothing that they were given is given again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import { createLogPlaces } from '../../src/resources/events/log-places.ts';
import type { LogPosition, Store } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { categories, commitAll, event, put, rowAt, things } from './fixture.ts';

/** What clients may hold of some units: entity tags, versions of a table, and positions in the log. */
type Held = {
  readonly revs: readonly number[];
  readonly versions: readonly string[];
  readonly positions: readonly LogPosition[];
};

const placesOf = (store: Store) => createLogPlaces(store, (text) => String(text.length));

async function commitSome(store: Store, name: string, count: number): Promise<Held> {
  const held = { revs: [] as number[], versions: [] as string[], positions: [] as LogPosition[] };
  for (let index = 0; index < count; index += 1) {
    const id = `${name} ${index}`;
    const rev = await commitAll(store, put(things, id, {}), event(`evt_${id}`));
    held.revs.push(rev);
    held.versions.push(await store.version('things'));
    held.positions.push({ rev, id: `evt_${id}` });
  }
  return held;
}

export function lostUnitTests({ fresh }: Bench): void {
  test('gives no revision, version or position of lost units again, and shows every later event to a tail that held one', async (context) => {
    const opened = await fresh();
    const { restore } = opened;
    if (restore === undefined) return context.skip('the engine has no backups');
    const kept = await commitSome(opened.store, 'kept', 3);
    const keptPlace = placesOf(opened.store).now();
    const path = opened.freePath();
    await opened.store.backup(path, () => undefined);
    const lost = await commitSome(opened.store, 'lost', 20);
    const lostPlace = placesOf(opened.store).now();
    const store = await restore(path);
    // The places that lists give, from which clients follow the log.
    assert.equal((await placesOf(store).find(keptPlace))?.rev, kept.revs.at(-1));
    assert.equal(await placesOf(store).find(lostPlace), undefined);
    assert.equal(await placesOf(store).find(lost.positions[0]?.id ?? ''), undefined);
    assert.notEqual(await placesOf(store).find(placesOf(store).now()), undefined);
    for (const { rev } of kept.positions) assert.equal(await store.isLost(rev), false);
    for (const { rev } of lost.positions) assert.equal(await store.isLost(rev), true);
    assert.equal(await store.version('things'), kept.versions.at(-1));
    assert.equal((await rowAt(store, things, 'kept 1'))?.rev, kept.revs[1]);
    const later = await commitSome(store, 'later', 20);
    for (const { rev } of lost.positions) assert.equal(await store.isLost(rev), true);
    for (const { rev } of [...kept.positions, ...later.positions])
      assert.equal(await store.isLost(rev), false);
    assert.equal(await store.isLost(Number.MAX_SAFE_INTEGER), true);
    assert.deepEqual(
      later.revs.filter((rev) => lost.revs.includes(rev)),
      [],
    );
    assert.deepEqual(
      later.versions.filter((version) => lost.versions.includes(version)),
      [],
    );
    for (const position of [...kept.positions, ...lost.positions]) {
      const shown = await store.tail(position, always, 100);
      const ids = new Set(shown.map(({ id }) => id));
      assert.deepEqual(
        later.positions.filter(({ id }) => !ids.has(id)),
        [],
      );
    }
  });

  test('keeps what clients hold over a restart: rows their revisions, tables their versions, positions their place', async () => {
    const opened = await fresh();
    const held = await commitSome(opened.store, 'held', 3);
    const place = placesOf(opened.store).now();
    await commitAll(opened.store, put(categories, 'c', {}));
    const head = await opened.store.head();
    const store = await opened.reopen();
    assert.notEqual(await placesOf(store).find(place), undefined);
    assert.notEqual(await placesOf(store).find(placesOf(store).now()), undefined);
    assert.deepEqual(await store.head(), head);
    assert.equal(await store.version('things'), held.versions.at(-1));
    assert.equal((await rowAt(store, things, 'held 0'))?.rev, held.revs[0]);
    for (const { rev } of held.positions) assert.equal(await store.isLost(rev), false);
    assert.deepEqual(await store.tail(head, always, 10), []);
  });

  test('raises revisions above those of the time, and keeps them exact', async () => {
    const opened = await fresh();
    const before = Math.floor(Date.now() / 1000) * 2 ** 20;
    const store = await opened.reopen();
    const rev = await commitAll(store, put(things, 'timed', {}));
    assert.ok(rev > before && rev < Number.MAX_SAFE_INTEGER / 2);
    assert.equal((await rowAt(store, things, 'timed'))?.rev, rev);
    assert.equal(await commitAll(store, put(things, 'timed', { name: 'n' }, rev)), rev + 1);
  });
}
