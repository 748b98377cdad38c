/** The order in which parties are served, and who gives way when the queue is full. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from '../../src/model/fair-queue.ts';

function filled(sizeMax: number, items: readonly string[]): FairQueue<string> {
  const queue = new FairQueue<string>(sizeMax);
  for (const item of items) queue.push(item.charAt(0), item);
  return queue;
}

function taken(queue: FairQueue<string>, mayServe?: (party: string) => boolean): readonly string[] {
  const order: string[] = [];
  for (let next = queue.take(mayServe); next !== undefined; next = queue.take(mayServe))
    order.push(next.item);
  return order;
}

test('serves parties in turn, and the items of one in the order in which they came', () => {
  assert.deepEqual(taken(filled(9, ['a1', 'a2', 'a3', 'b1', 'c1', 'c2'])), [
    'a1',
    'b1',
    'c1',
    'a2',
    'c2',
    'a3',
  ]);
});

test('passes over a party that may not be served now', () => {
  const queue = filled(9, ['a1', 'b1', 'a2']);
  assert.deepEqual(
    taken(queue, (party) => party !== 'a'),
    ['b1'],
  );
  assert.deepEqual([queue.count, taken(queue)], [2, ['a1', 'a2']]);
});

test('refuses the newest items of the party with the most waiting when it is full', () => {
  const queue = filled(4, ['a1', 'a2', 'a3', 'a4', 'b1']);
  assert.deepEqual(queue.overflow(), ['a4']);
  queue.push('a', 'a5');
  assert.deepEqual(queue.overflow(), ['a5']);
  assert.deepEqual(taken(queue), ['a1', 'b1', 'a2', 'a3']);
});

test('counts what its items take, however they leave it', () => {
  const queue = new FairQueue<string>(10, (item) => item.length);
  for (const item of ['aaaa', 'bbb', 'ccc']) queue.push(item.charAt(0), item);
  assert.deepEqual(queue.overflow(), []);
  queue.push('b', 'b');
  assert.deepEqual(queue.overflow(), ['aaaa']);
  assert.deepEqual(
    queue.drop((item) => item === 'bbb'),
    ['bbb'],
  );
  assert.deepEqual([queue.size, queue.count, taken(queue)], [4, 2, ['b', 'ccc']]);
  assert.deepEqual([queue.size, queue.count], [0, 0]);
});
