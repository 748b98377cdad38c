/** Pages and tails that end by the octets of their documents as well as by count. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always, type Filter, type Sort } from '../../src/model/filter.ts';
import { isTailFull } from '../../src/store/page-of-rows.ts';
import type { Plan, Store } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { byId, commitAll, event, fields, idsOn, put, things, walk } from './fixture.ts';

const byPrice: readonly Sort[] = [{ field: fields.price, direction: 'desc' }, ...byId];
/** No index serves it. */
const byCity: readonly Sort[] = [{ field: fields.city, direction: 'asc' }, ...byId];
const sorts = { 'by id': byId, 'by an indexed field': byPrice, 'without an index': byCity } as const;

export function octetTests(bench: Bench): void {
  pageTests(bench);
  edgeTests(bench);
  tailTests(bench);
}

/** Rows of about 1,000 octets each; each seventh has five times as many. */
async function load(store: Store): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < 40; index += 1) {
    const id = `row ${String(index).padStart(2, '0')}`;
    const extra = 'x'.repeat(index % 7 === 6 ? 4900 : 900);
    await commitAll(store, put(things, id, { price: index % 5, address: { city: `c${index % 3}` }, extra }));
    ids.push(id);
  }
  return ids;
}

function pageTests({ fresh }: Bench): void {
  test('ends a page with the document that reaches the bound in octets, and goes on after it', async () => {
    const { store } = await fresh();
    const ids = await load(store);
    for (const [title, sort] of Object.entries(sorts)) {
      const planOf = (limit: number, bytesMax?: number): Plan =>
        store.plan({
          ...{ table: 'things', filter: always, sort, limit },
          ...(bytesMax === undefined ? {} : { bytesMax }),
        });
      const whole = await planOf(100).page({ from: 'start' });
      assert.equal(whole.docs.length, ids.length, title);
      for (const bytesMax of [1, 3000, 8000]) {
        const plan = planOf(100, bytesMax);
        const forwards = await walk(plan, 'after');
        assert.deepEqual(forwards.flatMap(idsOn), idsOn(whole), `${title}, ${bytesMax} octets`);
        for (const page of forwards) {
          const octets = page.docs.map((doc) => Buffer.byteLength(doc));
          const before = octets.slice(0, -1).reduce((sum, each) => sum + each, 0);
          assert.ok(octets.length > 0 && before < bytesMax, `${before} octets before the last document`);
          const all = before + (octets.at(-1) ?? 0);
          assert.equal(page.more && all < bytesMax, false, 'a page that is not full has nothing after it');
        }
        const end = whole.last ?? [];
        const backwards = await walk(plan, 'before', end);
        assert.deepEqual([...backwards].reverse().flatMap(idsOn), idsOn(whole).slice(0, -1), title);
      }
    }
  });

  test('ends a page by count where that comes first, and counts octets from any offset', async () => {
    const { store } = await fresh();
    const ids = await load(store);
    const plan = store.plan({ table: 'things', filter: always, sort: byId, limit: 3, bytesMax: 1_000_000 });
    const first = await plan.page({ from: 'start' });
    assert.deepEqual([idsOn(first), first.more], [ids.slice(0, 3), true]);
    const small = store.plan({ table: 'things', filter: always, sort: byId, limit: 20, bytesMax: 2500 });
    const page = await small.page({ from: 'offset', offset: 30 });
    assert.deepEqual([idsOn(page), page.more], [ids.slice(30, 33), true]);
    const last = await small.page({ from: 'offset', offset: 38 });
    assert.deepEqual([idsOn(last), last.more], [ids.slice(38), false]);
    assert.deepEqual((await small.page({ from: 'offset', offset: 40 })).docs, []);
  });
}

function edgeTests({ fresh }: Bench): void {
  test('counts octets, not characters, and says exactly whether rows remain', async () => {
    const { store } = await fresh();
    for (const id of ['a', 'b', 'c']) await commitAll(store, put(things, id, { name: 'é'.repeat(500) }));
    const [doc = ''] = (
      await store.plan({ table: 'things', filter: always, sort: byId, limit: 1 }).page({ from: 'start' })
    ).docs;
    const octets = Buffer.byteLength(doc);
    assert.ok(octets > doc.length);
    const sizeOf = async (bytesMax: number, filter: Filter = always, sort = byId) => {
      const page = await store
        .plan({ table: 'things', filter, sort, limit: 10, bytesMax })
        .page({ from: 'start' });
      return [page.docs.length, page.more];
    };
    for (const sort of Object.values(sorts)) {
      assert.deepEqual(await sizeOf(octets, always, sort), [1, true]);
      assert.deepEqual(await sizeOf(octets + 1, always, sort), [2, true]);
      assert.deepEqual(await sizeOf(3 * octets - 1, always, sort), [3, false]);
      assert.deepEqual(await sizeOf(2 * octets, always, sort), [2, true]);
    }
    assert.deepEqual(await sizeOf(1, { op: 'eq', field: fields.id, value: 'b' }), [1, false]);
    assert.deepEqual(await sizeOf(1, { op: 'eq', field: fields.id, value: 'none' }), [0, false]);
  });
}

function tailTests({ fresh }: Bench): void {
  test('ends a tail with the event that reaches the bound in octets, near the head and far from it', async () => {
    const { store } = await fresh();
    const origin = { rev: 0, id: '' };
    const ids = Array.from({ length: 12 }, (_, index) => `evt_${String(index).padStart(2, '0')}`);
    for (const id of ids)
      await commitAll(store, { ...event(id), doc: JSON.stringify({ id, x: 'y'.repeat(985) }) });
    for (let index = 0; index < 260; index += 1) await commitAll(store, put(things, `far ${index}`, {}));
    const filters: readonly Filter[] = [always, { op: 'eq', field: fields.collection, value: 'things' }];
    for (const filter of filters) {
      const seen: string[] = [];
      for (let at = origin, more = true; more; ) {
        const batch = await store.tail(at, filter, 100, { bytesMax: 2500 });
        assert.ok(batch.length <= 3);
        seen.push(...batch.map(({ id }) => id));
        at = batch.at(-1) ?? at;
        more = isTailFull(batch, 100, 2500);
      }
      assert.deepEqual(seen, ids);
      assert.equal((await store.tail(origin, filter, 100, { bytesMax: 1 })).length, 1);
      assert.equal((await store.tail(origin, filter, 2, { bytesMax: 1_000_000 })).length, 2);
    }
    const last = (await store.tail(origin, always, 100)).at(-2);
    await commitAll(store, event('evt_z'));
    const near = await store.tail(last ?? origin, filters[1] ?? always, 100, { bytesMax: 1 });
    assert.deepEqual(
      near.map(({ id }) => id),
      ['evt_11'],
    );
  });
}
