/**
 * Requests that arrive at once are handled in turns of the event loop, so that they do not hold it together; connections that come, one each
 * turn, and probes do not wait for them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LoopTurns } from '../../src/observe/event-loop.ts';

/** A clock that only work moves. */
function scene() {
  let nowMs = 1000;
  const handled: number[] = [];
  const turns = new LoopTurns(() => nowMs);
  const work = (number: number, ms: number) => () => {
    handled.push(number);
    nowMs += ms;
  };
  return {
    ...{ turns, handled, work },
    take: (number: number, ms: number) => turns.take(work(number, ms)),
    takeProbe: (number: number, ms: number) => turns.takeProbe(work(number, ms)),
    /** A turn of the loop in which a connection is accepted and read. */
    accept: async (ms: number) => {
      turns.connectionCame();
      nowMs += ms;
      await nextTurn();
    },
  };
}

test('requests wait in order for later turns once those of one turn have taken 10 ms', async () => {
  const { handled, take } = scene();
  for (let number = 1; number <= 7; number += 1) take(number, 4);
  assert.deepEqual(handled, [1, 2, 3]);
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 3, 4, 5, 6]);
  take(8, 4);
  assert.deepEqual(handled, [1, 2, 3, 4, 5, 6], 'none overtakes those that wait');
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 3, 4, 5, 6, 7, 8]);
});

test('a request of another turn is handled as it arrives', async () => {
  const { handled, take } = scene();
  take(1, 20);
  await nextTurn();
  take(2, 1);
  assert.deepEqual(handled, [1, 2]);
});

test('the time of a turn includes what follows when the promises of a request settle', async () => {
  const { turns, handled, work } = scene();
  for (let number = 1; number <= 2; number += 1) turns.take(work(number, 5));
  const later = work(30, 20);
  turns.take(() => {
    handled.push(3);
    void Promise.resolve().then(later);
  });
  turns.take(work(4, 1));
  assert.deepEqual(handled, [1, 2]);
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 3, 30]);
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 3, 30, 4]);
});

test('loops that share a turn go on step by step, and requests come between', async () => {
  const { turns, handled, take, work } = scene();
  const loop = async (number: number) => {
    for (let step = 0; step < 3; step += 1) {
      await turns.next();
      work(number, 6)();
    }
  };
  const loops = [loop(1), loop(2)];
  take(3, 1);
  await Promise.all(loops);
  assert.deepEqual([...handled].sort(), [1, 1, 1, 2, 2, 2, 3]);
  assert.ok(handled.indexOf(3) < 4, handled.join());
});

test('a timer fires between the steps of loops that would go on in one turn', async () => {
  const turns = new LoopTurns();
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  });
  while (!isOver) await turns.next();
});

test('while connections come, work has next to no time for 300 ms and then a fifth, and turns of 10 ms again after them', async () => {
  const { handled, take, accept } = scene();
  for (let number = 0; number < 100; number += 1) take(number, 5);
  assert.equal(handled.length, 2);
  // The turn that the first two began, and those in which connections come.
  for (let came = 0; came < 580; came += 1) await accept(0.5);
  const inBurst = handled.length;
  assert.ok(inBurst >= 4 && inBurst <= 8, `${(inBurst - 4) * 5} ms of work beside 290 ms of accepting`);
  for (let came = 0; came < 400; came += 1) await accept(0.5);
  const before = handled.length;
  const later = before - inBurst;
  assert.ok(later >= 8 && later <= 12, `${later * 5} ms of work beside 200 ms of accepting`);
  await nextTurn();
  await nextTurn();
  assert.equal(handled.length, before + 4, 'two turns of two');
});

test('a connection after a pause leaves work its whole turn', async () => {
  const { handled, take, accept } = scene();
  await accept(1);
  for (let number = 1; number <= 3; number += 1) take(number, 4);
  assert.deepEqual(handled, [], 'none before what else the turn accepts and reads');
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 3]);
});

test('a probe goes before those that wait, and between two probes goes one of them', async () => {
  const { handled, take, takeProbe, accept } = scene();
  for (let number = 1; number <= 4; number += 1) take(number, 5);
  takeProbe(101, 1);
  takeProbe(102, 1);
  assert.deepEqual(handled, [1, 2], 'the turn is over for probes, too');
  await nextTurn();
  assert.deepEqual(handled, [1, 2, 101, 3, 102, 4]);
  await nextTurn();
  await accept(0);
  take(5, 8);
  await accept(0);
  take(6, 1);
  takeProbe(103, 1);
  assert.deepEqual(handled.slice(6), [5, 103], 'at once, while work waits for connections');
});

test('what waited begins its request in the same turn, and only one', async () => {
  const { turns, handled, take, accept } = scene();
  await accept(0);
  turns.take(() => {
    handled.push(1);
    take(11, 1);
    take(12, 1);
  });
  take(2, 1);
  await nextTurn();
  assert.deepEqual(handled, [1, 11, 2, 12]);
});

test('what a store answers is read in turns while connections come, and without one otherwise', async () => {
  const { turns, accept, handled, work } = scene();
  assert.equal(turns.nextRead(), undefined);
  await accept(1);
  turns.take(work(1, 1));
  const turn = turns.nextRead();
  assert.ok(turn !== undefined);
  void turn.then(work(2, 1));
  await accept(1);
  await accept(1);
  assert.deepEqual(handled, [1, 2]);
  await nextTurn();
  await nextTurn();
  assert.equal(turns.nextRead(), undefined, 'no connection comes');
});

test('a page that was begun goes before those that wait, and takes the time of a turn at most', async () => {
  const { turns, take, handled, work } = scene();
  const page = async (number: number): Promise<void> => {
    for (let part = 0; part < 4; part += 1) {
      await turns.nextOfBegun();
      work(number + part, 4)();
    }
  };
  take(1, 10);
  for (const number of [10, 20]) turns.take(() => void page(number));
  take(30, 1);
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  assert.deepEqual(handled, [1, 10, 11, 12, 13, 20, 21, 22, 23, 30]);
});

test('a store reads another page after those that were read, and before what has not begun', async () => {
  const { turns, take, handled, work } = scene();
  assert.equal(turns.nextPage(), undefined, 'no page waits');
  const page = async (number: number): Promise<void> => {
    for (let part = 0; part < 3; part += 1) {
      await turns.nextOfBegun();
      work(number + part, 6)();
    }
  };
  take(1, 10);
  void page(10);
  take(30, 6);
  const turn = turns.nextPage();
  assert.ok(turn !== undefined);
  void turn.then(work(20, 6));
  for (let count = 0; count < 4; count += 1) await nextTurn();
  assert.deepEqual(handled, [1, 10, 11, 12, 20, 30]);
});

test('a turn is spent after 10 ms, and the next is not', async () => {
  const { turns, take } = scene();
  take(1, 9);
  assert.equal(turns.isSpent(), false);
  take(2, 1);
  assert.equal(turns.isSpent(), true);
  await nextTurn();
  assert.equal(turns.isSpent(), false);
});
