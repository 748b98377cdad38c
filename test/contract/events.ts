/** The event log: order, completeness under concurrent writers, filters, and the calls on change; shared counters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Field, idField, ownerField } from '../../src/model/field.ts';
import { always, type Filter } from '../../src/model/filter.ts';
import { readLog } from '../../src/store/follow-log.ts';
import type { LogPosition, Store, TailEntry } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { commitAll, event, fields, put, remove, rowAt, things, unit } from './fixture.ts';

const origin: LogPosition = { rev: 0, id: '' };

export function eventTests(bench: Bench): void {
  readingTests(bench);
  stretchTests(bench);
  resourceTests(bench);
  deliveryTests(bench);
  changeTests(bench);
  tallyTests(bench);
  rowTests(bench);
}

/** What a tail gives, in which order, and what a filter keeps back. */
function resourceTests({ store, fresh }: Bench): void {
  test('keeps the id of the resource of an event, and its representation before an update, in one unit with events that have none', async () => {
    const from = await store().head();
    const long = JSON.stringify({ text: 'é\\u001f"\\\\'.repeat(1000) });
    await commitAll(
      store(),
      { ...event('evt_1'), document: 'a' },
      { ...event('evt_2'), document: 'a', former: long },
      event('evt_3'),
      { ...event('evt_4'), document: 'b', former: '{}' },
    );
    await commitAll(store(), { ...event('evt_5'), document: 'é', former: undefined });
    const found = await store().tail(from, always, 10);
    assert.deepEqual(
      found.map(({ id, document, former }) => [id, document, former]),
      [
        ['evt_1', 'a', null],
        ['evt_2', 'a', long],
        ['evt_3', null, null],
        ['evt_4', 'b', '{}'],
        ['evt_5', 'é', null],
      ],
    );
  });

  test('lists the events of one resource newest first at the cost of a page, and filters by members of the former representation', async () => {
    const collection: Field = { name: 'collection', path: [], type: 'string', column: 'collection' };
    const document: Field = { name: 'document', path: [], type: 'string', column: 'document' };
    const rev: Field = { name: 'rev', path: [], type: 'integer', column: 'rev' };
    const status: Field = { name: 'status', path: ['status'], type: 'string', within: 'former' };
    const opened = await fresh();
    for (let index = 0; index < 30; index += 1) {
      const former =
        index % 3 === 0 ? JSON.stringify({ status: index === 3 ? 'open' : 'closed' }) : undefined;
      await commitAll(opened.store, { ...event(`evt_${index}`), document: `d${index % 2}`, former });
    }
    const filter: Filter = {
      op: 'and',
      filters: [
        { op: 'eq', field: collection, value: 'things' },
        { op: 'eq', field: document, value: 'd1' },
      ],
    };
    const sort = [
      { field: rev, direction: 'desc' },
      { field: idField, direction: 'desc' },
    ] as const;
    const plan = opened.store.plan({ table: 'events', filter, sort, limit: 2 });
    assert.equal(plan.bounded, true);
    const [first, second] = await plan.rows({ from: 'start' });
    assert.deepEqual([first?.id, second?.id], ['evt_29', 'evt_27']);
    const open = await opened.store.tail({ rev: 0, id: '' }, { op: 'eq', field: status, value: 'open' }, 10);
    assert.deepEqual(
      open.map(({ id }) => id),
      ['evt_3'],
    );
    const other = await opened.store.tail(
      { rev: 0, id: '' },
      { op: 'like', field: status, pattern: 'clo%' },
      3,
    );
    assert.deepEqual(
      other.map(({ id }) => id),
      ['evt_0', 'evt_6', 'evt_9'],
    );
  });
}

function stretchTests({ fresh }: Bench): void {
  test('reads a log of mostly other events in bounded stretches, each going on where the last one ended', async () => {
    const { store: log } = await fresh();
    const wanted = ['evt_0007', 'evt_0555', 'evt_1400'];
    for (let index = 0; index < 1500; index += 1) {
      const id = `evt_${String(index).padStart(4, '0')}`;
      void log.commit(unit(event(id, 'things', wanted.includes(id) ? 'usr_7' : null)));
    }
    await commitAll(log, event('evt_last'));
    const filter: Filter = { op: 'eq', field: ownerField, value: 'usr_7' };
    const [, second] = await log.tail(origin, always, 2);
    assert.deepEqual(await log.stretch(origin, 2), { rev: second?.rev, id: second?.id });
    const head = await log.head();
    assert.deepEqual(await log.stretch(head, 10), head);
    assert.equal((await log.tail(origin, always, 10, { until: await log.stretch(origin, 2) })).length, 2);
    const reads: (readonly string[])[] = [];
    for (let at = origin, isFull = true; isFull; ) {
      const read = await readLog(log, at, { filter, limit: 10, bytesMax: 1_000_000 });
      reads.push(read.entries.map(({ id }) => id));
      [at, isFull] = [read.to, read.isFull];
    }
    assert.deepEqual(reads, [['evt_0007'], ['evt_0555'], ['evt_1400'], []].slice(0, reads.length));
    assert.ok(reads.length >= 3);
    // The revision of the log rises with a purge too, after which no event may follow.
    await log.purge('events', 9_000_000_000_000, 10_000);
    const empty = await readLog(log, origin, { filter, limit: 10, bytesMax: 1_000_000 });
    assert.deepEqual([empty.entries, empty.to, empty.isFull], [[], log.logPosition(), false]);
  });
}

function readingTests({ store, fresh }: Bench): void {
  test('starts with a head before every event', async () => {
    const opened = await fresh();
    const head = await opened.store.head();
    assert.deepEqual(await opened.store.tail(head, always, 10), []);
    await commitAll(opened.store, event('evt_first'));
    assert.equal((await opened.store.tail(head, always, 10)).length, 1);
    assert.deepEqual(await opened.store.tail(await opened.store.head(), always, 10), []);
  });

  test('gives each event with its revision, type, collection, owner and bytes', async () => {
    const entry = event('evt_whole', 'things', 'usr_1');
    const from = await store().head();
    const rev = await commitAll(store(), put(things, 'e', {}), entry);
    const { createdAt, ...rest } = entry;
    assert.deepEqual(await store().tail(from, always, 10), [{ ...rest, rev, document: null, former: null }]);
    const row = await store().read('events', 'evt_whole');
    assert.ok(
      row?.rev === rev && row.doc === entry.doc && row.owner === 'usr_1' && row.createdAt === createdAt,
    );
    assert.deepEqual(await store().head(), { rev, id: 'evt_whole' });
  });

  test('orders the events of one unit by id, and stops and goes on between them', async () => {
    const from = await store().head();
    await commitAll(store(), event('evt_c'), event('evt_a'), event('evt_b'));
    const seen: string[] = [];
    let at = from;
    for (;;) {
      const [entry] = await store().tail(at, always, 1);
      if (entry === undefined) break;
      seen.push(entry.id);
      at = { rev: entry.rev, id: entry.id };
    }
    assert.deepEqual(seen, ['evt_a', 'evt_b', 'evt_c']);
  });

  test('passes only the events that the filter passes, near the head and far from it', async () => {
    const opened = await fresh();
    for (let index = 0; index < 600; index += 1) {
      const owner = index % 100 === 7 ? 'usr_7' : null;
      void opened.store.commit(
        unit(event(`evt_${String(index).padStart(4, '0')}`, index % 2 === 0 ? 'things' : 'notes', owner)),
      );
    }
    await commitAll(opened.store, event('evt_last', 'notes'));
    const of = async (filter: Parameters<Store['tail']>[1], after = origin) =>
      (await opened.store.tail(after, filter, 1000)).map((entry) => entry.id);
    assert.equal((await of({ op: 'eq', field: fields.collection, value: 'things' })).length, 300);
    assert.equal((await of({ op: 'eq', field: fields.type, value: 'notes.created' })).length, 301);
    assert.equal((await of({ op: 'eq', field: fields.owner, value: 'usr_7' })).length, 6);
    assert.deepEqual(await of({ op: 'never' }), []);
    const near = await opened.store.tail(origin, always, 590);
    const last = near.at(-1);
    assert.deepEqual(
      await of(
        { op: 'eq', field: fields.collection, value: 'notes' },
        { rev: last?.rev ?? 0, id: last?.id ?? '' },
      ),
      ['evt_0591', 'evt_0593', 'evt_0595', 'evt_0597', 'evt_0599', 'evt_last'],
    );
  });
}

/** A follower of the log gets every event once, and is called when there are new ones. */
function deliveryTests({ fresh }: Bench): void {
  test('never skips an event while many writers commit', async () => {
    const opened = await fresh();
    const seen: TailEntry[] = [];
    let at = origin;
    let writing = true;
    const writers = Promise.all(
      Array.from({ length: 16 }, async (_, writer) => {
        for (let index = 0; index < 50; index += 1) {
          await commitAll(
            opened.store,
            put(things, `t ${writer} ${index}`, {}),
            event(`evt_${99 - writer}_${index}`),
          );
        }
      }),
    ).finally(() => {
      writing = false;
    });
    for (let last = false; ; ) {
      const entries = await opened.store.tail(at, always, 7);
      seen.push(...entries);
      const newest = entries.at(-1);
      if (newest !== undefined) at = { rev: newest.rev, id: newest.id };
      else if (last) break;
      else last = !writing;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writers;
    assert.equal(new Set(seen.map((entry) => entry.id)).size, 800);
    assert.equal(seen.length, 800);
    for (const [index, entry] of seen.entries())
      assert.ok(index === 0 || entry.rev > (seen[index - 1]?.rev ?? 0));
  });

  test('calls back after units that appended events are visible, until it is stopped', async () => {
    const opened = await fresh();
    let calls = 0;
    let called = Promise.withResolvers<readonly TailEntry[]>();
    const stop = opened.store.onAppend(() => {
      calls += 1;
      called.resolve(opened.store.tail(origin, always, 10));
    });
    await commitAll(opened.store, put(things, 'silent', {}));
    await commitAll(opened.store, event('evt_1'));
    assert.equal((await called.promise).at(-1)?.id, 'evt_1');
    called = Promise.withResolvers();
    await commitAll(opened.store, event('evt_2'));
    assert.equal((await called.promise).at(-1)?.id, 'evt_2');
    stop();
    const before = calls;
    await commitAll(opened.store, event('evt_3'));
    await opened.store.ping();
    assert.equal(calls, before);
  });
}

/** Who follows a table is told of every unit that changes it. */
function changeTests({ fresh }: Bench): void {
  test('calls back after units that changed the table, and not for another table', async () => {
    const { store } = await fresh();
    let calls = 0;
    let called = Promise.withResolvers<void>();
    const stop = store.onChange('things', () => {
      calls += 1;
      called.resolve();
    });
    const rev = await commitAll(store, put(things, 'watched', {}));
    await called.promise;
    called = Promise.withResolvers();
    await commitAll(store, remove(things, 'watched', rev));
    await called.promise;
    const before = calls;
    await commitAll(store, event('evt_elsewhere'));
    const expected = { table: 'things', id: 'watched', expect: { absent: true as const }, next: null };
    await commitAll(store, expected, event('evt_expecting'));
    await commitAll(store, put(things, 'refused', {}, rev)).catch(() => undefined);
    await store.ping();
    assert.equal(calls, before);
    stop();
    await commitAll(store, put(things, 'unwatched', {}));
    await store.ping();
    assert.equal(calls, before);
  });

  test('refuses to follow a table that is not declared', async () => {
    const { store } = await fresh();
    assert.throws(() => store.onChange('nowhere', () => undefined), TypeError);
  });
}

/** Counters that are shared, for which no row is written. */
function tallyTests({ store }: Bench): void {
  const later = Date.now() + 60_000;

  test('adds to counters and gives what each holds then, in order', async () => {
    const tally = (...parts: readonly (readonly [string, number])[]) =>
      store().tally(parts.map(([key, add]) => ({ key, add, expiresAt: later })));
    assert.deepEqual(await tally(['a', 2], ['b', 1]), [2, 1]);
    assert.deepEqual(await tally(['b', 3], ['c', 0], ['a', 1]), [4, 0, 3]);
    assert.deepEqual(await tally(), []);
  });

  test('loses nothing that is added at the same time', async () => {
    const one = () => store().tally([{ key: 'busy', add: 1, expiresAt: later }]);
    const totals = (await Promise.all(Array.from({ length: 100 }, one))).flat();
    assert.equal(Math.max(...totals), 100);
  });

  test('changes no version and no revision', async () => {
    const before = await store().version('things');
    await store().tally([{ key: 'silent', add: 1, expiresAt: later }]);
    assert.equal(await store().version('things'), before);
  });
}

/** Events are also rows of a table. */
function rowTests({ store }: Bench): void {
  test('lists events like the rows of any table, and lets a unit remove one', async () => {
    const rev = await commitAll(store(), event('evt_listed', 'listed'));
    const plan = store().plan({
      table: 'events',
      filter: { op: 'eq', field: fields.collection, value: 'listed' },
      sort: [{ field: fields.id, direction: 'asc' }],
      limit: 5,
    });
    assert.equal((await plan.page({ from: 'start' })).docs.length, 1);
    await commitAll(store(), remove({ ...things, name: 'events' }, 'evt_listed', rev));
    assert.equal((await plan.page({ from: 'start' })).docs.length, 0);
    assert.equal(await rowAt(store(), { ...things, name: 'events' }, 'evt_listed'), undefined);
  });
}
