/** The memory budget: its bounds for one holder, for all and for administrators, what is shared, and who is let in when. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { type Holder, MemoryBudget, type MemoryRefusal } from '../../src/memory/budget.ts';
import {
  defaultMemoryBytes,
  mappableBytes,
  memoryBytesMin,
  OctetLine,
} from '../../src/memory/program-memory.ts';
import { LoopTurns } from '../../src/observe/event-loop.ts';

const one: Holder = { name: '192.0.2.1', isReserved: false };
const other: Holder = { name: '192.0.2.2', isReserved: false };
const third: Holder = { name: '192.0.2.3', isReserved: false };
const administrator: Holder = { name: 'administrator', isReserved: true };

function budgetOf(bytesMax = 800, sharePercent = 50, more: object = {}): MemoryBudget {
  return new MemoryBudget({ bytesMax, sharePercent, ...more });
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a holder may take its share to the octet, and no more', () => {
  const budget = budgetOf();
  const lease = budget.lease('content', one);
  assert.equal(lease.grow(400), true);
  assert.equal(lease.grow(1), false);
  assert.equal(budget.lease('answers', one).grow(1), false, 'whatever it is for');
  assert.equal(budget.lease('content', other).grow(300), true);
  assert.equal(budget.canEverHold(one, 400), true);
  assert.equal(budget.canEverHold(one, 401), false);
});

test('all holders together leave an eighth to administrators, who may take it all', () => {
  const budget = budgetOf();
  assert.ok(budget.lease('content', one).grow(400));
  const rest = budget.lease('content', other);
  assert.equal(rest.grow(301), false);
  assert.equal(rest.grow(300), true);
  const reserved = budget.lease('answers', administrator);
  assert.equal(reserved.grow(101), false);
  assert.equal(reserved.grow(100), true);
  assert.equal(budget.bytes(), 800);
  assert.deepEqual([budget.bytes('content'), budget.bytes('answers')], [700, 100]);
});

test('what is released can be taken again, and nothing stays counted', () => {
  const budget = budgetOf();
  for (let round = 0; round < 3; round += 1) {
    const lease = budget.lease('streams', one);
    assert.ok(lease.grow(400));
    lease.set(250);
    assert.equal(budget.bytes(), 250);
    lease.release();
    lease.release();
    lease.set(10);
    assert.equal(budget.bytes(), 0);
  }
});

test('octets that several send at once are counted once, until the last has sent them', () => {
  const budget = budgetOf();
  const octets = new Uint8Array(600);
  const leases = [one, one, other, administrator].map((holder) => budget.lease('answers', holder));
  assert.ok(
    leases.every((lease) => lease.growShared(octets)),
    'no share is charged',
  );
  assert.equal(budget.bytes(), 600);
  assert.equal(budget.isShared(octets), true);
  assert.equal(budget.lease('answers', third).growShared(new Uint8Array(101)), false);
  for (const lease of leases.slice(0, 3)) lease.release();
  assert.equal(budget.bytes(), 600);
  leases[3]?.release();
  assert.deepEqual([budget.bytes(), budget.isShared(octets)], [0, false]);
});

test('octets that several hold count once for each holder, against its share', () => {
  const budget = budgetOf();
  const octets = new Uint8Array(300);
  const [first, second, others] = [one, one, other].map((holder) => budget.lease('streams', holder));
  assert.ok(first?.grow(200));
  for (const lease of [first, second, others]) lease?.share(octets);
  assert.equal(budget.bytes(), 300, 'in place of what was read for');
  const left = budget.shareBytesMax - 300;
  assert.deepEqual([budget.hasRoom(one, left), budget.hasRoom(one, left + 1)], [true, false]);
  first?.share(undefined);
  assert.equal(budget.hasRoom(one, left + 1), false);
  second?.share(new Uint8Array(100));
  assert.equal(budget.bytes(), 400);
  assert.equal(budget.hasRoom(one, left + 1), true);
  second?.release();
  others?.release();
  assert.equal(budget.bytes(), 0);
});

test('who waits for room is let in when there is some, one of each holder in turn', async () => {
  const budget = budgetOf();
  const first = budget.lease('streams', one);
  assert.ok(first.grow(400));
  const full = budget.lease('streams', third);
  assert.ok(full.grow(300));
  const order: string[] = [];
  const waitFor = (holder: Holder, label: string) => {
    const lease = budget.lease('streams', holder);
    lease.whenRoom(100, () => order.push(label));
    return lease;
  };
  waitFor(one, 'one 1');
  waitFor(one, 'one 2');
  const gone = waitFor(other, 'gone');
  waitFor(other, 'other 1');
  await turn();
  assert.deepEqual(order, []);
  gone.release();
  full.release();
  await turn();
  assert.deepEqual(order, ['other 1'], 'the share of the first is still taken');
  first.release();
  await turn();
  assert.deepEqual(order, ['other 1', 'one 1', 'one 2']);
});

test('one that asks for more than a share is given a share', async () => {
  const budget = budgetOf();
  let went = false;
  const lease = budget.lease('streams', one);
  lease.whenRoom(100_000, () => {
    went = true;
  });
  assert.deepEqual([went, lease.bytes], [true, 400]);
});

test('a turn of the event loop lets in only as many as it has time for', async () => {
  let nowMs = 0;
  const budget = budgetOf(8000, 50, { turns: new LoopTurns(() => nowMs) });
  let went = 0;
  for (let index = 0; index < 6; index += 1) {
    budget.lease('streams', one).whenRoom(1, () => {
      went += 1;
      nowMs += 5;
    });
  }
  assert.equal(went, 2, 'ten milliseconds');
  await turn();
  assert.equal(went, 4);
  await turn();
  assert.equal(went, 6);
});

test('a lease that ends before its turn takes no room', async () => {
  let nowMs = 0;
  const turns = new LoopTurns(() => nowMs);
  const budget = budgetOf(8000, 50, { turns });
  turns.take(() => {
    nowMs += 10;
  });
  const lease = budget.lease('streams', one);
  lease.whenRoom(100, () => assert.fail('the lease has ended'));
  lease.release();
  await turn();
  assert.equal(budget.bytes(), 0);
});

test('refusals are reported once a second for each use, with their number', () => {
  let nowMs = 0;
  const told: MemoryRefusal[] = [];
  const onRefused = (refusal: MemoryRefusal) => told.push(refusal);
  const budget = budgetOf(800, 50, { monotonic: () => nowMs, onRefused });
  const lease = budget.lease('content', one);
  for (let index = 0; index < 5; index += 1) assert.equal(lease.growOrRefuse(500), false);
  nowMs = 1000;
  lease.growOrRefuse(500);
  assert.deepEqual(
    told.map(({ use, bytes, refusals }) => [use, bytes, refusals]),
    [
      ['content', 500, 1],
      ['content', 500, 5],
    ],
  );
});

test('a line works on so many octets at once, in order, and always on one', async () => {
  const line = new OctetLine(100);
  assert.equal(line.enter(60), undefined);
  assert.equal(line.enter(40), undefined);
  const order: number[] = [];
  const entered = [500, 10, 10].map((bytes, index) => line.enter(bytes)?.then(() => order.push(index)));
  assert.equal(line.waiting, 3);
  line.leave(60);
  await turn();
  assert.deepEqual(order, [], 'the first that waits is too large, and is not overtaken');
  line.leave(40);
  await turn();
  assert.deepEqual(order, [0]);
  line.leave(500);
  await Promise.all(entered);
  assert.deepEqual([order, line.bytes, line.waiting], [[0, 1, 2], 20, 0]);
});

test('the default is a fourth of what the control group allows, and at most half of the heap', () => {
  const MiB = 1024 * 1024;
  const total = 24_576 * MiB;
  assert.equal(defaultMemoryBytes({ constrained: 512 * MiB, total, heap: 268 * MiB }), 128 * MiB);
  assert.equal(defaultMemoryBytes({ constrained: 2 ** 64, total, heap: 4192 * MiB }), 2096 * MiB);
  assert.equal(defaultMemoryBytes({ constrained: 0, total: 1024 * MiB, heap: 524 * MiB }), 256 * MiB);
  assert.equal(defaultMemoryBytes({ constrained: 32 * MiB, total, heap: 20 * MiB }), memoryBytesMin);
});

test('an eighth of the memory that the process may have is worth mapping', () => {
  const MiB = 1024 * 1024;
  const heap = 268 * MiB;
  assert.equal(mappableBytes({ constrained: 512 * MiB, total: 24_576 * MiB, heap }), 64 * MiB);
  assert.equal(mappableBytes({ constrained: 2 ** 64, total: 24_576 * MiB, heap }), 3072 * MiB);
  assert.equal(mappableBytes({ constrained: 0, total: 1024 * MiB, heap }), 128 * MiB);
});

test('a wait for room ends with room or with a stop, and leaves no listener at the stop', async () => {
  const budget = budgetOf();
  const stop = new AbortController();
  const held = budget.lease('content', one);
  assert.ok(held.grow(400));
  await budget.lease('background', other).untilRoom(100, stop.signal);
  const waiting = budget.lease('background', one);
  const admitted = waiting.untilRoom(100, stop.signal);
  await turn();
  assert.equal(budget.bytes('background'), 100);
  held.release();
  await admitted;
  assert.deepEqual([budget.bytes('background'), getEventListeners(stop.signal, 'abort').length], [200, 0]);
  const stopped = budget.lease('background', one).untilRoom(400, stop.signal);
  stop.abort();
  await stopped;
  await budget.lease('background', one).untilRoom(400, stop.signal);
  assert.deepEqual([budget.bytes('background'), getEventListeners(stop.signal, 'abort').length], [200, 0]);
});
