/** Units: expectations, atomicity, revisions, uniqueness, versions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import { type Change, type Commit, StoreUnavailable } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import {
  categories,
  commitAll,
  event,
  idsOf,
  notes,
  put,
  remove,
  revOf,
  rowAt,
  things,
  unit,
} from './fixture.ts';

export function commitTests(bench: Bench): void {
  rowTests(bench);
  expectationTests(bench);
  raceTests(bench);
  revisionTests(bench);
  atomicityTests(bench);
  uniquenessTests(bench);
  versionTests(bench);
  leaningTests(bench);
}

/** What a put leaves, and who sees it from when. */
function rowTests({ store }: Bench): void {
  test('fails the one unit that cannot be encoded, and commits every other of its turn', async () => {
    const ids = ['coded 1', 'coded 2', 'coded 3', 'coded 4'];
    const results = await Promise.allSettled(
      ids.map((id) => {
        const change = put(things, id, { name: id });
        const { next } = change;
        const doc = { length: 1 } as unknown as string;
        return store().commit(
          unit(id === 'coded 3' && next !== null ? { ...change, next: { ...next, doc } } : change),
        );
      }),
    );
    const outcomes = results.map((result) =>
      result.status === 'fulfilled' ? result.value.outcome : result.reason instanceof StoreUnavailable,
    );
    assert.deepEqual(outcomes, ['committed', 'committed', false, 'committed']);
  });

  test('reads back a row exactly as it was put', async () => {
    const change = put(things, 'back', { name: 'Ünïcode 😀', price: 1.5 }, undefined, {
      owner: 'usr_1',
      createdAt: 1_600_000_000_001,
      updatedAt: 1_600_000_000_002,
    });
    const rev = await commitAll(store(), change);
    assert.deepEqual(await rowAt(store(), things, 'back'), {
      id: 'back',
      rev,
      doc: change.next?.doc,
      owner: 'usr_1',
      createdAt: 1_600_000_000_001,
      updatedAt: 1_600_000_000_002,
      deletedAt: null,
    });
    assert.equal(await rowAt(store(), things, 'never put'), undefined);
  });

  test('shows a unit to every read that starts after its commit resolved, in the same turn too', async () => {
    assert.equal(await rowAt(store(), things, 'turn'), undefined);
    const seen: unknown[] = [];
    await store()
      .commit(unit(put(things, 'turn', {})))
      .then(() => seen.push(store().read('things', 'turn')));
    assert.equal((await Promise.all(seen)).filter((row) => row !== undefined).length, 1);
  });
}

/** What a change expects of the row that stands. */
function expectationTests({ store }: Bench): void {
  test('refuses a change that expects no row where one stands, and shows what stands', async () => {
    const rev = await commitAll(store(), put(things, 'there', { name: 'first' }));
    const commit = await store().commit(unit(put(things, 'there', { name: 'second' })));
    const current = await rowAt(store(), things, 'there');
    assert.equal(current?.rev, rev);
    assert.deepEqual(commit, { outcome: 'superseded', change: 0, current });
  });

  test('refuses a change whose revision is not the one that stands, or whose row is gone', async () => {
    const rev = await commitAll(store(), put(things, 'stale', {}));
    const next = await commitAll(store(), put(things, 'stale', { name: 'b' }, rev));
    const stale = await store().commit(unit(put(things, 'stale', { name: 'c' }, rev)));
    assert.ok(stale.outcome === 'superseded' && stale.current?.rev === next);
    const gone = await store().commit(unit(remove(things, 'no such row', rev)));
    assert.deepEqual(gone, { outcome: 'superseded', change: 0, current: undefined });
  });

  test('takes a unit that expects a row to be absent and leaves it so', async () => {
    const change = { table: 'things', id: 'still absent', expect: { absent: true as const }, next: null };
    revOf(await store().commit({ changes: [change], events: [] }));
    await commitAll(store(), put(things, 'still absent', {}));
    assert.equal((await store().commit({ changes: [change], events: [] })).outcome, 'superseded');
  });

  test('takes many units at once that expect the same row absent, until one of them makes it', async () => {
    const expected = {
      table: 'things',
      id: 'expected by all',
      expect: { absent: true as const },
      next: null,
    };
    const fine = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store().commit({ changes: [put(things, `all ${index}`, {}), expected], events: [] }),
      ),
    );
    for (const commit of fine) revOf(commit);
    const made = 7;
    const mixed = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store().commit({
          changes: [
            put(things, `mixed ${index}`, {}),
            index === made ? put(things, expected.id, {}) : expected,
          ],
          events: [],
        }),
      ),
    );
    const current = await rowAt(store(), things, expected.id);
    for (const [index, commit] of mixed.entries()) {
      if (index <= made) assert.equal(commit.outcome, 'committed', `unit ${index}`);
      else assert.deepEqual(commit, { outcome: 'superseded', change: 1, current });
      assert.equal((await rowAt(store(), things, `mixed ${index}`)) !== undefined, index <= made);
    }
  });

  test('treats a softly deleted row as standing: it is read, expected and shown', async () => {
    const rev = await commitAll(store(), put(things, 'soft', {}));
    const deleted = await commitAll(store(), put(things, 'soft', {}, rev, { deletedAt: 1_700_000_000_000 }));
    assert.equal((await rowAt(store(), things, 'soft'))?.deletedAt, 1_700_000_000_000);
    const again = await store().commit(unit(put(things, 'soft', {})));
    assert.ok(again.outcome === 'superseded' && again.current?.rev === deleted);
    assert.ok(!(await idsOf(store(), always)).includes('soft'));
    await commitAll(store(), put(things, 'soft', {}, deleted));
    assert.ok((await idsOf(store(), always)).includes('soft'));
  });
}

/** Changes of one row at the same time. */
function raceTests({ store }: Bench): void {
  test('lets one of 200 concurrent changes of the same revision win', async () => {
    const rev = await commitAll(store(), put(things, 'race', { name: 'start' }));
    const commits = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        store().commit(unit(put(things, 'race', { stock: index }, rev))),
      ),
    );
    const winners = commits.filter((commit) => commit.outcome === 'committed');
    assert.equal(winners.length, 1);
    const standing = await rowAt(store(), things, 'race');
    for (const commit of commits) {
      if (commit.outcome === 'committed') assert.equal(commit.rev, standing?.rev);
      else assert.deepEqual(commit, { outcome: 'superseded', change: 0, current: standing });
    }
  });

  test('lets one of 100 concurrent creations at one id win', async () => {
    const commits = await Promise.all(
      Array.from({ length: 100 }, (_, index) => store().commit(unit(put(things, 'first', { stock: index })))),
    );
    assert.equal(commits.filter((commit) => commit.outcome === 'committed').length, 1);
  });
}

/** Revisions grow, over reopening too. */
function revisionTests({ store, fresh }: Bench): void {
  test('gives every unit a greater revision than any before, which its rows carry', async () => {
    const revs = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        commitAll(store(), put(things, `rev ${index}`, {}), event(`rev-${index}`)),
      ),
    );
    for (const [index, rev] of revs.entries()) {
      assert.ok(index === 0 || rev > (revs[index - 1] ?? 0));
      assert.equal((await rowAt(store(), things, `rev ${index}`))?.rev, rev);
    }
  });

  test('never gives a revision out again, also after the newest row is gone and the store is reopened', async () => {
    const opened = await fresh();
    const rev = await commitAll(opened.store, put(things, 'newest', {}));
    const removal = await commitAll(opened.store, remove(things, 'newest', rev));
    const store = await opened.reopen();
    assert.equal(await rowAt(store, things, 'newest'), undefined);
    const next = await commitAll(store, put(things, 'newest', {}));
    assert.ok(next > removal && removal > rev);
  });
}

/** Rows that a unit depends on and leaves as they are. */
function leaningTests({ store }: Bench): void {
  test('makes a unit only while a row that it leaves alone is as expected', async () => {
    const rev = await commitAll(store(), put(things, 'leant on', { name: 'first' }));
    const leans = (rev: number): Change => ({
      ...{ table: 'things', id: 'leant on', expect: { rev }, next: null, stays: true },
    });
    const unitRev = await commitAll(store(), leans(rev), put(notes, 'leaning', {}));
    assert.equal((await rowAt(store(), things, 'leant on'))?.rev, rev, 'no new revision');
    assert.equal((await rowAt(store(), notes, 'leaning'))?.rev, unitRev);
    const newRev = await commitAll(store(), put(things, 'leant on', { name: 'second' }, rev));
    const late = await store().commit(unit(put(notes, 'late', {}), leans(rev)));
    assert.ok(late.outcome === 'superseded');
    assert.deepEqual([late.change, late.current?.rev], [1, newRev]);
    assert.equal(await rowAt(store(), notes, 'late'), undefined);
    await commitAll(store(), remove(things, 'leant on', newRev));
    const gone = await store().commit(unit(leans(newRev), put(notes, 'late', {})));
    assert.ok(gone.outcome === 'superseded');
    assert.equal(gone.current, undefined);
  });

  test('lets one of two units through that each leave alone what the other writes', async () => {
    const revs = await Promise.all(['left', 'right'].map((id) => commitAll(store(), put(things, id, {}))));
    const writes = (own: number, other: number): Promise<Commit> => {
      const [id, leant] = [['left', 'right'][own] ?? '', ['left', 'right'][other] ?? ''];
      const lean: Change = {
        ...{ table: 'things', id: leant, expect: { rev: revs[other] ?? 0 }, next: null, stays: true },
      };
      return store().commit(unit(lean, put(things, id, { name: 'written' }, revs[own])));
    };
    const outcomes = await Promise.all([writes(0, 1), writes(1, 0)]);
    assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ['committed', 'superseded']);
  });
}

/** A unit is made whole and in order, or not at all. */
function atomicityTests({ store }: Bench): void {
  test('makes a unit of a thousand new rows beside other changes, in their order', async () => {
    const rev = await commitAll(store(), put(things, 'order', {}));
    const many = Array.from({ length: 1000 }, (_, index) => put(notes, `many ${index}`, { name: 'n' }));
    const parts = [remove(things, 'order', rev), ...many, put(things, 'order', { name: 'again' })];
    const unitRev = await commitAll(store(), ...parts, event('evt_many'));
    assert.equal(await store().count('notes', always), 1000);
    assert.equal((await rowAt(store(), notes, 'many 999'))?.rev, unitRev);
    assert.equal((await rowAt(store(), things, 'order'))?.rev, unitRev);
  });

  test('refuses a new row that its unit made, removed or expected before as it stands', async () => {
    const standing = await commitAll(store(), put(notes, 'standing', {}));
    const absent = { table: 'notes', id: 'asked', expect: { absent: true as const }, next: null };
    const refused: readonly (readonly [number, ...Change[]])[] = [
      [1, put(notes, 'twice', {}), put(notes, 'twice', {})],
      [1, put(notes, 'asked', {}), absent],
      [0, put(notes, 'standing', {}), remove(notes, 'standing', standing)],
    ];
    for (const [change, ...parts] of refused) {
      const commit = await store().commit(unit(...parts));
      assert.ok(commit.outcome === 'superseded', JSON.stringify(parts));
      assert.equal(commit.change, change);
    }
    await commitAll(store(), absent, put(notes, 'asked', {}));
    await commitAll(store(), remove(notes, 'standing', standing), put(notes, 'standing', { name: 'new' }));
    assert.match((await rowAt(store(), notes, 'standing'))?.doc ?? '', /new/);
  });

  test('makes nothing of a unit of which one change is refused, whichever it is', async () => {
    const rev = await commitAll(store(), put(things, 'atom', { name: 'before' }));
    const good = [put(things, 'atom 1', {}), put(things, 'atom', { name: 'after' }, rev), event('evt_atom')];
    const bad = put(things, 'atom 2', {}, rev + 1_000_000);
    for (const at of [0, 1, 2]) {
      const parts = [...good.slice(0, at), bad, ...good.slice(at)];
      const commit = await store().commit(unit(...parts));
      assert.deepEqual(commit, { outcome: 'superseded', change: at, current: undefined });
      assert.equal(await rowAt(store(), things, 'atom 1'), undefined);
      assert.equal((await rowAt(store(), things, 'atom'))?.rev, rev);
      const tail = await store().tail({ rev: 0, id: '' }, always, 10_000);
      assert.ok(!tail.some((entry) => entry.id === 'evt_atom'));
    }
  });

  test('refuses the second unit that appends the same event, and shows the first as what stands', async () => {
    await commitAll(store(), event('evt_once'));
    const commit = await store().commit(
      unit(put(things, 'with event', {}), event('evt_new'), event('evt_once')),
    );
    assert.ok(commit.outcome === 'superseded' && commit.change === 2 && commit.current?.id === 'evt_once');
    assert.equal(await rowAt(store(), things, 'with event'), undefined);
  });

  test('applies the changes of a unit in order, so that one may free what a later one takes', async () => {
    const rev = await commitAll(store(), put(things, 'giver', { sku: 'freed' }));
    await commitAll(store(), remove(things, 'giver', rev), put(things, 'taker', { sku: 'freed' }));
    assert.equal(await rowAt(store(), things, 'giver'), undefined);
  });
}

/** Unique values: who holds one, who frees it, and what is looked at before. */
function uniquenessTests({ store }: Bench): void {
  test('names the unique field whose value another undeleted row holds', async () => {
    const rev = await commitAll(store(), put(things, 'holder', { sku: 'S-1' }));
    const taken = { outcome: 'taken', change: 0, fields: ['sku'] };
    assert.deepEqual(await store().commit(unit(put(things, 'other', { sku: 'S-1' }))), taken);
    const other = await commitAll(store(), put(things, 'other', { sku: 'S-2' }));
    assert.deepEqual(await store().commit(unit(put(things, 'other', { sku: 'S-1' }, other))), taken);
    await commitAll(store(), put(things, 'holder', { sku: 'S-1', name: 'keeps its own' }, rev));
  });

  test('lets any number of rows have no value, or null, in a unique field', async () => {
    await commitAll(store(), put(things, 'null 1', { sku: null }), put(things, 'null 2', { sku: null }));
    await commitAll(store(), put(things, 'none 1', {}), put(things, 'none 2', {}));
  });

  test('frees a unique value when its row is softly deleted, and checks it when the row comes back', async () => {
    const rev = await commitAll(store(), put(things, 'gone', { sku: 'again' }));
    const deleted = await commitAll(store(), put(things, 'gone', { sku: 'again' }, rev, { deletedAt: 1 }));
    await commitAll(store(), put(things, 'new', { sku: 'again' }));
    const back = await store().commit(unit(put(things, 'gone', { sku: 'again' }, deleted)));
    assert.deepEqual(back, { outcome: 'taken', change: 0, fields: ['sku'] });
  });

  test('lets one of 50 concurrent units have a unique value', async () => {
    const commits = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        store().commit(unit(put(things, `sku race ${index}`, { sku: 'raced' }))),
      ),
    );
    assert.equal(commits.filter((commit) => commit.outcome === 'committed').length, 1);
    assert.equal(commits.filter((commit) => commit.outcome === 'taken').length, 49);
  });

  test('says that a change is stale before anything else that stands against it', async () => {
    const rev = await commitAll(store(), put(things, 'stale first', { sku: 'stale first' }));
    const body = { sku: 'S-1', categoryId: 'no such category' };
    for (const change of [
      put(things, 'stale first', body),
      put(things, 'stale first', body, rev + 1_000_000),
    ]) {
      assert.equal((await store().commit(unit(change))).outcome, 'superseded');
    }
  });
}

/** Versions of tables tell whether a list may have changed. */
function versionTests({ fresh }: Bench): void {
  test('changes the version of a table with every unit that changed it, and only then', async () => {
    const opened = await fresh();
    const versions = async () => [
      await opened.store.version('things'),
      await opened.store.version('categories'),
      await opened.store.version('events'),
    ];
    const empty = await versions();
    const rev = await commitAll(opened.store, put(things, 'v', {}));
    const one = await versions();
    assert.notEqual(one[0], empty[0]);
    assert.deepEqual(one.slice(1), empty.slice(1));
    await opened.store.commit(unit(put(things, 'v', {})));
    await opened.store.commit(unit(put(categories, 'c', {}), put(things, 'v', {})));
    assert.deepEqual(await versions(), one);
    await commitAll(opened.store, remove(things, 'v', rev), event('evt_v'));
    const two = await versions();
    assert.ok(two[0] !== one[0] && two[0] !== empty[0] && two[1] === one[1] && two[2] !== one[2]);
    await opened.reopen();
  });
}
