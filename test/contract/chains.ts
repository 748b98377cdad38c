/** Chains: changes of a row that are computed from a change of it that is not committed yet (store/lines.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Commit, Row, Store, Turn } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { commitAll, event, put, remove, rowAt, things, unit } from './fixture.ts';

type Link = { readonly turn: Turn; readonly row: Row | undefined; readonly isProvisional: boolean };

async function enter(store: Store, id: string, turn = store.lines.turn(undefined, true)): Promise<Link> {
  await turn.take({ table: things.name, id });
  return { turn, ...(await store.readNewest(things.name, id)) };
}

const priceOf = (row: Row | undefined): number => Number(JSON.parse(row?.doc ?? '{}').price);

/** Adds one to the price of the row as it is read in the turn. */
async function add(store: Store, id: string, count: { lost: number }): Promise<number> {
  const turn = store.lines.turn(undefined, true);
  try {
    for (;;) {
      const { row } = await enter(store, id, turn);
      const change = put(things, id, { name: id, price: priceOf(row) + 1 }, row?.rev);
      const commit = await store.commit(unit(change, event(`${id}-${String(row?.rev)}-${priceOf(row)}`)));
      if (commit.outcome === 'committed') return commit.rev;
      assert.equal(commit.outcome, 'superseded');
      count.lost += 1;
    }
  } finally {
    turn.release();
  }
}

export function chainTests(bench: Bench): void {
  committedTests(bench);
  failureTests(bench);
}

function committedTests({ store }: Bench): void {
  test('a chain of changes of one row is committed in few transactions, in order, and none is lost', async () => {
    await commitAll(store(), put(things, 'chained', { name: 'chained', price: 0 }));
    const count = { lost: 0 };
    const revs = await Promise.all(Array.from({ length: 500 }, () => add(store(), 'chained', count)));
    assert.equal(priceOf(await rowAt(store(), things, 'chained')), 500);
    assert.deepEqual([new Set(revs).size, revs.every((rev) => rev > 0)], [500, true]);
    assert.deepEqual(
      revs,
      [...revs].sort((one, other) => one - other),
    );
    assert.equal(count.lost, 0);
  });

  test('a change is computed from the one before, which is not committed yet', async () => {
    await commitAll(store(), put(things, 'next', { name: 'next', price: 1 }));
    const first = await enter(store(), 'next');
    assert.equal(first.isProvisional, false);
    const change = put(things, 'next', { name: 'next', price: 2 }, first.row?.rev);
    const committed = store().commit(unit(change));
    const second = await enter(store(), 'next');
    assert.deepEqual([priceOf(second.row), second.isProvisional], [2, true]);
    const last = await store().commit(unit(remove(things, 'next', Number(second.row?.rev))));
    assert.deepEqual([(await committed).outcome, last.outcome], ['committed', 'committed']);
    assert.equal(await rowAt(store(), things, 'next'), undefined);
    for (const { turn } of [first, second]) turn.release();
  });
}

function failureTests({ store }: Bench): void {
  test('the failure of a change fails those computed from it, and the next begins anew', async () => {
    await commitAll(store(), put(things, 'taken', { name: 'taken', price: 1, sku: 'held' }));
    await commitAll(store(), put(things, 'fails', { name: 'fails', price: 1, sku: 'own' }));
    const links: Link[] = [];
    const commits: Promise<Commit>[] = [];
    const link = async (body: Record<string, unknown>): Promise<void> => {
      const entered = await enter(store(), 'fails');
      links.push(entered);
      const change = put(things, 'fails', { name: 'fails', ...body }, entered.row?.rev);
      commits.push(store().commit(unit(change)));
    };
    await link({ price: 2, sku: 'held' });
    await link({ price: 3, sku: 'own' });
    await link({ price: 4, sku: 'own' });
    const outcomes = (await Promise.all(commits)).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ['taken', 'superseded', 'superseded']);
    await link({ price: 5, sku: 'own' });
    assert.equal(links.at(-1)?.isProvisional, false);
    assert.equal((await commits.at(-1))?.outcome, 'committed');
    assert.equal(priceOf(await rowAt(store(), things, 'fails')), 5);
    for (const { turn } of links) turn.release();
  });

  test('a change that joins a chain may wait for the committed row', async () => {
    await commitAll(store(), put(things, 'alone', { name: 'alone', price: 1 }));
    const first = await enter(store(), 'alone');
    const change = put(things, 'alone', { name: 'alone', price: 2 }, first.row?.rev);
    const committed = store().commit(unit(change));
    const second = await enter(store(), 'alone');
    let isAlone = false;
    const alone = second.turn.take({ table: things.name, id: 'alone' }, true).then(() => {
      isAlone = true;
    });
    await committed;
    assert.equal(isAlone, false);
    first.turn.release();
    await alone;
    const { row, isProvisional } = await store().readNewest(things.name, 'alone');
    assert.deepEqual([priceOf(row), isProvisional, second.turn.isChained], [2, false, false]);
    second.turn.release();
  });
}
