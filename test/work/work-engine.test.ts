/** The engine of due work with a policy of the test: what it holds for every policy, whatever an attempt is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Row, StoreUnavailable } from '../../src/store/store.ts';
import { DueQueue, type DueRows } from '../../src/work/due-queue.ts';
import { Breaker } from '../../src/work/retries.ts';
import { WorkEngine, type WorkPolicy } from '../../src/work/work-engine.ts';
import { everyLane } from '../harness/due-work.ts';
import { servicesOver } from '../harness/services-over.ts';
import { fakeTime, turnOver } from '../webhooks/engine/fake-time.ts';

type Job = { readonly id: string };
/** When each job is due, in the order of the times. */
type Jobs = Map<string, number>;

class JobQueue extends DueQueue<Job> {
  get lane(): string {
    return this.id;
  }
  get wanted(): number {
    return this.taken + 4;
  }
  protected parse({ id, doc }: Row) {
    return { due: { id }, dueAt: doc };
  }
}

const start = 1_000_000;
const breaker = { webhookBreakerFailuresMax: 3, webhookBreakerSeconds: 10, webhookBreakerSecondsMax: 60 };

function rowsOf(queue: string, jobs: Jobs): DueRows {
  const row = ([id, at]: readonly [string, number]): Row => {
    const doc = new Date(at).toISOString();
    return { id, rev: 1, doc, owner: null, createdAt: 0, updatedAt: 0, deletedAt: null };
  };
  const first = (count: number) => [...jobs].slice(0, count).map(row);
  return { queue, first, lastBefore: () => [], last: () => [] } as unknown as DueRows;
}

type Under = { readonly queue: JobQueue; readonly id: string; readonly end: () => void };

/** Queues over jobs in memory; the test ends each attempt, which removes its job. */
function scene(jobs: Readonly<Record<string, Jobs>>, roomMax = 8, perQueueMax = 2) {
  const time = fakeTime(start);
  const begun: string[] = [];
  /** Kinds of observations that the test causes. */
  const expected: string[] = [];
  const underWay: Under[] = [];
  const held = new Map<string, number>();
  const count = (lane: string, by: number) => held.set(lane, (held.get(lane) ?? 0) + by);
  const queues = new Map(
    Object.entries(jobs).map(([id, own]) => {
      const rows = rowsOf(id, own);
      return [id, new JobQueue(rows, new Breaker(breaker, () => 0), { buffered: 0 })];
    }),
  );
  const own = (queue: JobQueue) => underWay.filter((each) => each.queue === queue).length;
  const policy: WorkPolicy<Job, JobQueue> = {
    ...{ readsAtOnce: 2, attemptsPerTurn: 1 },
    faults: { kind: 'store-failed', reading: 'reading', attempt: 'an attempt' },
    partyOf: ({ id }) => id,
    mayWork: () => true,
    hasRoom: () => underWay.length < roomMax,
    isFull: (queue) => own(queue) >= perQueueMax,
    admits: () => true,
    attempt({ queue, due: { id } }) {
      begun.push(id);
      const end = () => {
        underWay.splice(underWay.indexOf(attempt), 1);
        jobs[queue.id]?.delete(id);
        engine.ended(queue, id);
      };
      const attempt = { queue, id, end };
      underWay.push(attempt);
    },
    ended: () => undefined,
    wake,
    isAsked: () => false,
  };
  const services = servicesOver(
    { commit: () => assert.fail('no time is set right here') },
    {
      clock: time.clock,
      observe: ({ kind }) => assert.equal(kind, expected.shift() ?? 'nothing fails here'),
    },
  );
  const lanes = {
    ...everyLane,
    hold: (lane: string) => count(lane, 1),
    release: (lane: string) => count(lane, -1),
  };
  const engine = new WorkEngine<Job, JobQueue>(services, { lanes, timers: time.timers }, policy);

  function wake(id: string): void {
    const queue = queues.get(id);
    if (queue === undefined) return;
    queue.mayHoldMore = true;
    engine.ready(queue);
  }
  return { time, begun, expected, underWay, held, queues, engine, wake };
}

const due = (...ids: readonly string[]): Jobs => new Map(ids.map((id) => [id, start - 1]));

test('gives queues turns in turn, and begins no row twice however often it is woken', async () => {
  const { engine, begun, underWay, wake } = scene({ a: due('a1', 'a2', 'a3'), b: due('b1', 'b2') });
  engine.start();
  for (let again = 0; again < 3; again += 1) {
    wake('a');
    wake('b');
    await turnOver();
  }
  assert.deepEqual(begun, ['a1', 'b1', 'a2', 'b2']);
  while (underWay.length > 0) {
    underWay[0]?.end();
    wake('a');
    wake('b');
    await turnOver();
  }
  assert.deepEqual(begun, ['a1', 'b1', 'a2', 'b2', 'a3']);
});

test('stops at the room that there is, and goes on with what waits when an attempt ends', async () => {
  const { engine, begun, underWay, wake } = scene({ a: due('a1'), b: due('b1'), c: due('c1') }, 2);
  engine.start();
  for (const id of ['a', 'b', 'c']) wake(id);
  await turnOver();
  assert.deepEqual(begun, ['a1', 'b1']);
  underWay[0]?.end();
  await turnOver();
  assert.deepEqual(begun, ['a1', 'b1', 'c1']);
});

test('begins what is due later at its time, without being woken', async () => {
  const { engine, begun, time, wake } = scene({ a: new Map([['a1', start + 5000]]) });
  engine.start();
  wake('a');
  await time.passTo(start + 4999);
  assert.deepEqual(begun, []);
  await time.passTo(start + 5000);
  assert.deepEqual(begun, ['a1']);
});

test('leaves a queue alone for longer after a fault than after a store that is away', async () => {
  const { engine, queues, begun, expected, time, wake } = scene({ a: due('a1'), b: due('b1') });
  const [a, b] = [queues.get('a'), queues.get('b')];
  assert.ok(a !== undefined && b !== undefined);
  engine.start();
  expected.push('store-failed', 'store-failed');
  engine.failAttempt(a, false, new StoreUnavailable('away', { retryAfterSeconds: 1 }));
  engine.failAttempt(b, false, new Error('a fault'));
  wake('a');
  wake('b');
  await time.passTo(start + 1000);
  assert.deepEqual(begun, ['a1']);
  await time.passTo(start + 30_000);
  assert.deepEqual(begun, ['a1', 'b1']);
});

test('holds the lane of each attempt until its end, and drains by waiting for them', async () => {
  const { engine, begun, underWay, held, wake } = scene({ a: due('a1', 'a2', 'a3') });
  engine.start();
  wake('a');
  await turnOver();
  assert.deepEqual([held.get('a'), engine.underWay], [2, 2]);
  let isDrained = false;
  const drained = engine.drain(1000).then(() => {
    isDrained = true;
  });
  wake('a');
  underWay[0]?.end();
  await turnOver();
  assert.deepEqual([isDrained, engine.working.aborted, held.get('a')], [false, false, 1]);
  underWay[0]?.end();
  await drained;
  assert.deepEqual(begun, ['a1', 'a2']);
  assert.equal(held.get('a'), 0);
});

test('aborts what is under way when the time for draining is over, and then the writing', async () => {
  const { engine, time, wake } = scene({ a: due('a1') });
  engine.start();
  wake('a');
  await turnOver();
  const drained = engine.drain(1000);
  await time.passTo(start + 1000);
  assert.deepEqual([engine.working.aborted, engine.settling.aborted], [true, false]);
  await time.passTo(start + 2000);
  await drained;
  assert.equal(engine.settling.aborted, true);
});
