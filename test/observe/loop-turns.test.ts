/** Requests that arrive at once are handled in turns of the event loop, so that they do not hold it together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LoopTurns } from '../../src/observe/loop-turns.ts';

/** A clock that only work moves. */
function scene() {
  let nowMs = 1000;
  const handled: number[] = [];
  const turns = new LoopTurns(() => nowMs);
  const work = (number: number, ms: number) => () => {
    handled.push(number);
    nowMs += ms;
  };
  return { turns, handled, work, take: (number: number, ms: number) => turns.take(work(number, ms)) };
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
