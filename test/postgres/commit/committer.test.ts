/** Batches of units on a real server: what travels together, in which order, within which bounds, and who is told. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { charactersPerRow, UnitTooLarge } from '../../../src/store/group-commit.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { categories, event, put, remove, revOf, things, unit } from '../../contract/fixture.ts';
import { channel, counters, freshPlace, rowsOf, schema, startCommitter } from './fixture.ts';

test('commits the units of a turn in one flight, the first of which waited for nothing else', async (context) => {
  const place = await freshPlace(context);
  const batches: number[] = [];
  const { committer, flights } = startCommitter(context, place, { onBatch: (units) => batches.push(units) });
  await committer.commit(unit(put(categories, 'c', {})));
  flights.length = 0;
  batches.length = 0;
  const commits = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      committer.commit(unit(put(things, `t${index}`, { categoryId: 'c' }), event(`e${index}`))),
    ),
  );
  assert.deepEqual(batches, [100]);
  assert.equal(flights.length, 1);
  const [flight = []] = flights;
  assert.ok(flight[0]?.startsWith('BEGIN') && flight.at(-1) === 'COMMIT');
  assert.deepEqual(
    commits.map(revOf),
    Array.from({ length: 100 }, (_, index) => index + 2),
  );
  const { rows } = await place.look.query(`SELECT count(DISTINCT xmin::text) FROM ${schema}.things`);
  assert.equal(rows[0].count, 1);
  assert.deepEqual(await counters(place.look), { '': 101, things: 101, categories: 1, events: 101 });
});

test('sends statements whose texts do not depend on how many rows there are', async (context) => {
  const place = await freshPlace(context);
  const { committer, flights } = startCommitter(context, place);
  await committer.commit(unit(put(things, 'one', {}), event('one')));
  const before = flights.at(-1);
  await Promise.all([2, 3, 4].map((id) => committer.commit(unit(put(things, `${id}`, {}), event(`${id}`)))));
  assert.deepEqual(flights.at(-1), before);
});

test('judges in two flights what one flight assumed wrongly, and commits the rest of the batch with it', async (context) => {
  const place = await freshPlace(context);
  const { committer, flights } = startCommitter(context, place);
  const rev = revOf(await committer.commit(unit(put(things, 'a', { sku: 'S' }))));
  flights.length = 0;
  const commits = await Promise.all([
    committer.commit(unit(put(things, 'b', {}), event('b'))),
    committer.commit(unit(put(things, 'a', {}, rev + 5))),
    committer.commit(unit(put(things, 'c', { sku: 'S' }))),
    committer.commit(unit(put(things, 'd', {}))),
  ]);
  assert.deepEqual(
    commits.map(({ outcome }) => outcome),
    ['committed', 'superseded', 'taken', 'committed'],
  );
  assert.equal(flights.length, 3);
  assert.deepEqual(await counters(place.look), {
    '': rev + 2,
    things: rev + 2,
    categories: 0,
    events: rev + 2,
  });
});

test('takes what arrives while a batch is under way as the next, in the order in which it came', async (context) => {
  const place = await freshPlace(context);
  const batches: number[] = [];
  const { committer } = startCommitter(context, place, { onBatch: (units) => batches.push(units) });
  const first = committer.commit(unit(put(things, 'first', {})));
  await first;
  const revs: number[] = [];
  const settle = async (id: string): Promise<void> => {
    revs.push(revOf(await committer.commit(unit(put(things, id, {})))));
  };
  const all = [settle('a')];
  // The batch of `a` leaves at the end of this turn: what follows finds it under way.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  for (let index = 0; index < 20; index += 1) all.push(settle(`later ${index}`));
  await Promise.all(all);
  assert.deepEqual(batches, [1, 1, 20]);
  assert.deepEqual(
    revs,
    revs.toSorted((a, b) => a - b),
  );
});

test('bounds a batch by units and by characters, and what waits by a number', async (context) => {
  const place = await freshPlace(context);
  const batches: number[] = [];
  const { committer } = startCommitter(context, place, {
    unitsPerTransactionMax: 3,
    charactersPerTransactionMax: 2 * charactersPerRow + 1000,
    unitsWaitingMax: 8,
    onBatch: (units) => batches.push(units),
  });
  await committer.commit(unit(put(things, 'warm', {})));
  batches.length = 0;
  const small = Array.from({ length: 8 }, (_, index) => committer.commit(unit(put(things, `s${index}`, {}))));
  assert.equal(committer.queue.unitsWaiting, 8);
  await assert.rejects(committer.commit(unit(put(things, 'ninth', {}))), StoreUnavailable);
  await Promise.all(small);
  assert.deepEqual(batches, [3, 3, 2]);
  batches.length = 0;
  const name = 'x'.repeat(600);
  await Promise.all([1, 2, 3].map((id) => committer.commit(unit(put(things, `big ${id}`, { name })))));
  assert.deepEqual(batches, [2, 1]);
  batches.length = 0;
  const rows = (name: string) => [1, 2, 3].map((id) => put(things, `${name} ${id}`, {}));
  await Promise.all(['v', 'w'].map((wide) => committer.commit(unit(...rows(wide)))));
  assert.deepEqual(batches, [1, 1], 'rows count, too');
});

test('bounds what waits by its octets, and refuses for good one unit that is longer by itself', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place, { unitsWaitingBytesMax: 5000 });
  const write = (id: string, length = 900) =>
    committer.commit(unit(put(things, id, { name: 'x'.repeat(length) })));
  const results = await Promise.allSettled([write('a'), write('b'), write('c')]);
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'fulfilled', 'rejected'],
  );
  assert.equal((await write('c')).outcome, 'committed');
  assert.equal((await write('long', 2000)).outcome, 'committed');
  await assert.rejects(write('longer', 2501), UnitTooLarge);
});

test('rejects a unit that names what is not declared, and puts no events', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  await assert.rejects(committer.commit(unit({ ...put(things, 'x', {}), table: 'nowhere' })), TypeError);
  await assert.rejects(committer.commit(unit({ ...put(things, 'x', {}), table: 'events' })), TypeError);
  const change = put(things, 'x', { categoryId: 'c' });
  const stray = { ...change, table: 'categories' };
  await assert.rejects(committer.commit(unit(stray)), TypeError);
  assert.equal((await committer.commit(unit(put(things, 'x', {})))).outcome, 'committed');
});

test('rejects the one unit whose values the database does not take, and commits every other', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  const units = Array.from({ length: 20 }, (_, index) =>
    unit(put(things, `t${index}`, {}), event(`e${index}`)),
  );
  units[13] = unit(put(things, 'zero', { name: 'x' }, undefined, { owner: 'a\0b' }), event('e13'));
  const results = await Promise.allSettled(units.map((each) => committer.commit(each)));
  for (const [index, result] of results.entries()) {
    if (index === 13) {
      assert.ok(result.status === 'rejected' && !(result.reason instanceof StoreUnavailable));
      assert.equal(result.reason.code, '22021');
    } else assert.ok(result.status === 'fulfilled' && result.value.outcome === 'committed');
  }
  assert.equal((await rowsOf(place.look, 'things')).length, 19);
  assert.equal((await rowsOf(place.look, 'events')).length, 19);
});

test('tells the field of a unique index that only a newer declaration knows', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  await place.look.query(
    `CREATE UNIQUE INDEX newer ON ${schema}.things ((doc::jsonb ->> 'name')) WHERE deleted_at IS NULL;
     INSERT INTO ${schema}.comity_indexes VALUES ('newer', 'things', '["name"]', '')`,
  );
  await committer.commit(unit(put(things, 'a', { name: 'same' })));
  const commits = await Promise.all([
    committer.commit(unit(put(things, 'b', { name: 'other' }))),
    committer.commit(unit(event('e'), put(things, 'c', {}), put(things, 'd', { name: 'same' }))),
    committer.commit(unit(put(things, 'f', { name: 'third' }))),
  ]);
  assert.deepEqual(
    commits.map(({ outcome }) => outcome),
    ['committed', 'taken', 'committed'],
  );
  // The table is known, not which of its rows: the first that could be meant is told.
  assert.deepEqual(commits[1], { outcome: 'taken', change: 0, fields: ['name'] });
});

test('keeps every document byte for byte, whatever it holds', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  const texts = ['"\\', '\u001f', '\u001f1\u001e', '{}', 'NULL', '{NULL}', '😀\uffff', "'; DROP", ',', ' '];
  const units = texts.map((text, index) => {
    const change = put(things, text, { name: text }, undefined, { owner: text, search: text });
    return unit(change, event(`e${index}`, text, text));
  });
  for (const commit of await Promise.all(units.map((each) => committer.commit(each)))) revOf(commit);
  for (const row of await rowsOf(place.look, 'things')) {
    assert.equal(row.doc, units[texts.indexOf(row.id)]?.changes[0]?.next?.doc);
    assert.equal(row.owner, row.id);
  }
  const { rows } = await place.look.query(`SELECT collection, search FROM ${schema}.events
    JOIN ${schema}.things ON collection = things.id ORDER BY 1`);
  assert.equal(rows.length, texts.length);
  for (const { collection, search } of rows) assert.equal(collection, search);
});

test('notifies each commit with its revision and the tables it changed, and tells this process the same', async (context) => {
  const place = await freshPlace(context);
  const told: (readonly [number, number])[][] = [];
  const { committer } = startCommitter(context, place, { onChanged: (touched) => told.push([...touched]) });
  await place.look.query(`LISTEN ${channel}`);
  const number = (name: string): number => place.numbers.get(name) ?? 0;
  const heard = once(place.look, 'notification');
  await committer.commit(unit(put(things, 'a', {}), event('e')));
  const [{ payload }] = await heard;
  assert.equal(payload, `1:${number('things')},${number('events')}`);
  assert.deepEqual(told, [
    [
      [number('things'), 1],
      [number('events'), 1],
    ],
  ]);
  // A unit that changes nothing gets a revision, and nobody is told.
  const idle = {
    changes: [{ table: 'things', id: 'x', expect: { absent: true as const }, next: null }],
    events: [],
  };
  assert.deepEqual(await committer.commit(idle), { outcome: 'committed', rev: 2 });
  assert.equal(told.length, 1);
});

test('purges old rows in steps, and raises revisions only when a row went', async (context) => {
  const place = await freshPlace(context);
  const told: ReadonlyMap<number, number>[] = [];
  const { committer } = startCommitter(context, place, { onChanged: (touched) => told.push(touched) });
  await Promise.all(
    Array.from({ length: 1203 }, (_, index) =>
      committer.commit({ changes: [], events: [{ ...event(`e${index}`), createdAt: 1000 + index }] }),
    ),
  );
  const before = await counters(place.look);
  told.length = 0;
  assert.equal(await committer.purge('events', 1000, 10_000), 0);
  assert.deepEqual(await counters(place.look), before);
  assert.equal(told.length, 0);
  assert.equal(await committer.purge('events', 2200, 10_000), 1200);
  const events = (before.events ?? 0) + 3;
  assert.deepEqual(await counters(place.look), { ...before, '': events, events, ' purged': 1200 });
  assert.equal(told.length, 3);
  assert.deepEqual(
    (await rowsOf(place.look, 'events')).map(({ id }) => id),
    ['e1200', 'e1201', 'e1202'],
  );
  await assert.rejects(committer.purge('nowhere', 1, 1), TypeError);
});

test('purges no row that was updated after it was found', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place, { findOld: async () => ['old', 'fresh', 'gone'] });
  for (const [id, updatedAt] of [
    ['old', 1000],
    ['fresh', 3000],
  ] as const) {
    await committer.commit(unit(put(things, id, {}, undefined, { updatedAt })));
  }
  assert.equal(await committer.purge('things', 2000, 10), 1);
  assert.deepEqual(
    (await rowsOf(place.look, 'things')).map(({ id }) => id),
    ['fresh'],
  );
});

test('commits what it took before it closes, takes nothing after, and leaves no trace among the writers', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  const taken = [1, 2, 3].map((id) => committer.commit(unit(put(things, `${id}`, {}))));
  const closed = committer.close();
  await assert.rejects(committer.commit(unit(put(things, 'late', {}))), StoreUnavailable);
  await assert.rejects(committer.purge('things', 1, 1), StoreUnavailable);
  await closed;
  await committer.close();
  for (const commit of await Promise.all(taken)) revOf(commit);
  const { rows } = await place.look.query(`SELECT writer FROM ${schema}.comity_writers`);
  assert.deepEqual(rows, []);
});

test('lets two committers share a schema: revisions rise over both, and one of two changes of a row wins', async (context) => {
  const place = await freshPlace(context);
  const both = [startCommitter(context, place), startCommitter(context, place)];
  const rev = revOf(
    (await both[0]?.committer.commit(unit(put(things, 'raced', {})))) ?? {
      outcome: 'taken',
      change: 0,
      fields: [],
    },
  );
  const commits = await Promise.all(
    Array.from({ length: 200 }, (_, index) => {
      const { committer } = both[index % 2] as (typeof both)[0];
      const changes =
        index < 100 ? put(things, 'raced', { stock: index }, rev) : put(things, `own ${index}`, {});
      return committer.commit(unit(changes, event(`e${index}`)));
    }),
  );
  const revs = commits.flatMap((commit) => (commit.outcome === 'committed' ? [commit.rev] : []));
  assert.equal(revs.length, 101);
  assert.equal(new Set(revs).size, 101);
  assert.equal(commits.slice(0, 100).filter(({ outcome }) => outcome === 'committed').length, 1);
  assert.equal((await counters(place.look))[''], Math.max(...revs));
  assert.deepEqual(new Set((await rowsOf(place.look, 'events')).map((row) => row.rev)), new Set(revs));
});

test('removes rows only where nothing names them, of one batch or another', async (context) => {
  const place = await freshPlace(context);
  const { committer } = startCommitter(context, place);
  const rev = revOf(await committer.commit(unit(put(categories, 'c', {}))));
  const commits = await Promise.all([
    committer.commit(unit(put(things, 'a', { categoryId: 'c' }))),
    committer.commit(unit(remove(categories, 'c', rev))),
  ]);
  assert.deepEqual(
    commits.map(({ outcome }) => outcome),
    ['committed', 'depended-on'],
  );
});
