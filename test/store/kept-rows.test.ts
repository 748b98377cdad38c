/** Rows that the embedded store keeps in memory: a read never differs from what the file says in the same turn of the event loop. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { always, byId } from '../../src/model/filter.ts';
import { type Change, keptRow, type Row } from '../../src/store/store.ts';
import { openEmbedded } from '../harness/stores.ts';

const table = 'things';

let seed = 7;

function random(below: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
}

function put(id: string, doc: string, rev?: number, at = 1000): Change {
  return {
    table,
    id,
    expect: rev === undefined ? { absent: true } : { rev },
    next: keptRow(doc, null, at, at),
  };
}

test('gives the same row without reading it again, until a unit changes it', async (context) => {
  const store = await openEmbedded(context);
  const commit = (...changes: readonly Change[]) => store.commit({ changes, events: [] });
  await commit(put('a', '"a"'), put('b', '"b"'));
  const first = store.read(table, 'a') as Row;
  await setImmediate();
  assert.equal(store.read(table, 'a'), first);
  await commit(put('b', '"c"', first.rev));
  assert.equal(store.read(table, 'a'), first, 'another row changed');
  const revision = store.revision();
  await commit(put('a', '"d"', first.rev));
  assert.equal((store.read(table, 'a') as Row).doc, '"d"');
  assert.notEqual(store.revision(), revision);
  assert.equal(store.read('events', 'a'), undefined, 'a row of another table has the same id');
});

test('shows by id what a page shows at the same revision, while units commit, are refused and are purged', async (context) => {
  const store = await openEmbedded(context);
  const plan = store.plan({ table, filter: always, sort: byId, limit: 100 });
  const ids = Array.from({ length: 12 }, (_, index) => `row ${index}`);
  const underWay = new Set<Promise<unknown>>();
  let committed = 0;
  /** Removals and purges under way, one of which may be in the file before the unit that it follows is known. */
  let removing = 0;
  const removes = async <T>(work: Promise<T>): Promise<T> => {
    removing += 1;
    const done = await work;
    removing -= 1;
    return done;
  };
  const start = (work: Promise<unknown>): void => {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  };
  const change = async (id: string, doc: string): Promise<void> => {
    const rev = (store.read(table, id) as Row | undefined)?.rev;
    const isWrong = random(4) === 0;
    const next = random(5) === 0 && rev !== undefined ? null : keptRow(doc, null, 1000, 1000 + random(9));
    const expect = rev === undefined ? ({ absent: true } as const) : { rev: isWrong ? rev + 1 : rev };
    const committing = store.commit({ changes: [{ table, id, expect, next }], events: [] });
    const commit = await (next === null ? removes(committing) : committing);
    if (commit.outcome !== 'committed') return;
    committed += 1;
    const row = store.read(table, id) as Row | undefined;
    assert.ok(
      next === null ? row?.rev !== rev : row === undefined ? removing > 0 : row.rev >= commit.rev,
      'an acknowledged unit is not seen',
    );
  };
  let seen = 0;
  for (let turn = 0; committed < 400; turn += 1) {
    for (let count = random(4); count > 0 && underWay.size < 20; count -= 1) {
      start(change(ids[random(ids.length)] ?? '', `"${turn}"`));
    }
    // On a busy machine purges wait for a reader thread while turns go on.
    if (random(200) === 0 && underWay.size < 20) start(removes(store.purge(table, 1002, 1)));
    const revision = store.revision();
    const rows = plan.rows({ from: 'start' }) as readonly Row[];
    const byIds = ids
      .map((id) => store.read(table, id) as Row | undefined)
      .filter((row) => row !== undefined);
    // The writer may commit between two reads of a turn.
    if (store.revision() === revision) {
      const one = (row: Row) => [row.id, row] as const;
      assert.deepEqual(new Map(byIds.map(one)), new Map(rows.map(one)));
      seen += rows.length;
    }
    await setImmediate();
  }
  await Promise.all(underWay);
  assert.ok(seen > 600, `${seen} rows`);
});
