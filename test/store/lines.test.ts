/** The lines in which changes wait for a row: order, bounds, and that every waiting change gets its turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lines, LineUnavailable } from '../../src/store/lines.ts';
import { Overtaken } from '../../src/store/store.ts';

const row = { table: 'things', id: 'a' };
const other = { table: 'things', id: 'b' };

/** All that is ready to go on has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A row with a counter, and changes that name the count which they were computed from. */
function counter() {
  let count = 0;
  let lost = 0;
  return {
    get count() {
      return count;
    },
    get lost() {
      return lost;
    },
    async add(): Promise<true | Overtaken> {
      const read = count;
      await settled();
      if (count !== read) {
        lost += 1;
        return new Overtaken(row);
      }
      count = read + 1;
      return true;
    },
  };
}

test('makes every one of many changes at once, and none loses twice', async () => {
  const lines = new Lines({});
  const shared = counter();
  await Promise.all(Array.from({ length: 1000 }, () => lines.change(row, () => shared.add())));
  assert.equal(shared.count, 1000);
  assert.ok(shared.lost < 1000, `${shared.lost} lost`);
  assert.deepEqual([lines.waiting, lines.isBusy(row)], [0, false]);
});

test('lets changes go in the order in which they came', async () => {
  const lines = new Lines({});
  const order: number[] = [];
  const turns = Array.from({ length: 5 }, (_, index) =>
    lines.hold(row, false, async () => {
      await settled();
      order.push(index);
    }),
  );
  await Promise.all(turns);
  assert.deepEqual(order, [0, 1, 2, 3, 4]);
});

test('lets neighbours share a place and others wait for them', async () => {
  const lines = new Lines({});
  const now: string[] = [];
  const seen: string[] = [];
  const work = (name: string, shared: boolean) =>
    lines.hold(row, shared, async () => {
      now.push(name);
      await settled();
      seen.push([...now].sort().join(''));
      now.splice(now.indexOf(name), 1);
    });
  await Promise.all([work('a', false), work('b', true), work('c', true), work('d', false), work('e', true)]);
  assert.deepEqual(seen, ['a', 'bc', 'c', 'd', 'e']);
});

test('takes several rows in one order, so that two changes of the same rows do not wait for each other', async () => {
  const lines = new Lines({});
  const one = lines.turn();
  const two = lines.turn();
  await one.take(row);
  await two.take(other);
  const both = [one.take(other), two.take(row)];
  await settled();
  await Promise.race(both);
  one.release();
  two.release();
  await Promise.all(both);
  one.release();
  two.release();
  assert.deepEqual([lines.isBusy(row), lines.isBusy(other), lines.waiting], [false, false, 0]);
});

test('refuses one change more than may wait, and admits as many again later', async () => {
  const lines = new Lines({ changesWaitingMax: 2 });
  const head = lines.turn();
  await head.take(row);
  const waiting = [
    lines.hold(row, false, settled),
    lines.hold(other, false, settled),
    lines.hold(row, true, settled),
  ];
  assert.equal(lines.waiting, 2);
  await assert.rejects(lines.hold(row, false, settled), LineUnavailable);
  head.release();
  await Promise.all(waiting);
  assert.equal(await lines.hold(row, false, async () => 'made'), 'made');
});

test('gives up when the time is over, and those behind move up', async () => {
  const lines = new Lines({ changeWaitMs: 10 });
  const long = Promise.withResolvers<void>();
  const holding = lines.hold(row, false, () => long.promise);
  await assert.rejects(lines.hold(row, false, settled), LineUnavailable);
  assert.equal(lines.waiting, 0);
  long.resolve();
  await holding;
  assert.equal(lines.isBusy(row), false);
});

test('gives up where only other processes come first, when the time is over', async () => {
  const lines = new Lines({ changeWaitMs: 10 });
  const overtaken = lines.change(row, async () => {
    await settled();
    return new Overtaken(row);
  });
  await assert.rejects(overtaken, LineUnavailable);
  assert.equal(lines.isBusy(row), false);
});

test('leaves the line when its client has left', async () => {
  const lines = new Lines({});
  const head = lines.turn();
  await head.take(row);
  let leave: (() => void) | undefined;
  const turn = lines.turn((listener) => {
    leave = listener;
    return () => undefined;
  });
  const taking = turn.take(row);
  leave?.();
  await assert.rejects(taking, LineUnavailable);
  assert.equal(lines.waiting, 0);
  head.release();
  assert.equal(lines.isBusy(row), false);
});
