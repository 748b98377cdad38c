/** The parts of the delivery engine, each alone: what may begin, and when. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Row } from '../../../src/store/store.ts';
import { Capacity, type CapacityTicket, type Holding } from '../../../src/webhooks/sending/capacity.ts';
import {
  dueDeliveries,
  EndpointQueue,
  TokenBucket,
  Window,
} from '../../../src/webhooks/sending/endpoint-queue.ts';
import { DueRows, Turns } from '../../../src/work/due-queue.ts';
import { Breaker } from '../../../src/work/retries.ts';
import { Alarm } from '../../../src/work/timers.ts';
import { fakeTime } from './fake-time.ts';

describe('breaker', () => {
  const settings = {
    webhookBreakerFailuresMax: 3,
    webhookBreakerSeconds: 10,
    webhookBreakerSecondsMax: 35,
  };
  const opened = (random = 0) => {
    const breaker = new Breaker(settings, () => random);
    breaker.failed(0, false);
    breaker.failed(0, false);
    return { breaker, until: breaker.failed(0, false) };
  };

  test('opens at as many failures in a row as the setting says, and a success begins the count anew', () => {
    const breaker = new Breaker(settings, () => 0);
    assert.equal(breaker.failed(0, false), undefined);
    assert.equal(breaker.failed(0, false), undefined);
    assert.equal(breaker.succeeded(), false);
    assert.equal(breaker.failed(0, false), undefined);
    assert.equal(breaker.failed(0, false), undefined);
    assert.equal(breaker.mode, 'closed');
    assert.equal(breaker.failed(5, false), 10_005);
    assert.equal(breaker.pausedUntil(10_004), 10_005);
  });

  test('lets exactly one probe begin when its time has come, and closes at its success', () => {
    const { breaker, until = 0 } = opened();
    assert.equal(breaker.pausedUntil(until), 0);
    assert.equal(breaker.mode, 'half-open');
    assert.equal(breaker.probing, false);
    assert.equal(breaker.began(), true);
    assert.equal(breaker.probing, true);
    assert.equal(breaker.succeeded(), true);
    assert.equal(breaker.mode, 'closed');
    assert.equal(breaker.began(), false);
  });

  test('stays open twice as long at each probe that fails, up to the bound', () => {
    const { breaker, until = 0 } = opened();
    const periods: number[] = [];
    let at = until;
    for (let probe = 0; probe < 3; probe += 1) {
      breaker.pausedUntil(at);
      breaker.began();
      const next = breaker.failed(at, true) ?? 0;
      periods.push(next - at);
      at = next;
    }
    assert.deepEqual(periods, [20_000, 35_000, 35_000]);
  });

  test('is jittered downwards by a fifth at most', () => {
    assert.equal(opened(0).until, 10_000);
    assert.equal(opened(0.999999).until, 8001);
  });

  test('passes over failures of attempts that had begun before it opened', () => {
    const { breaker, until = 0 } = opened();
    assert.equal(breaker.failed(1, false), undefined);
    assert.equal(breaker.pausedUntil(1), until);
    breaker.pausedUntil(until);
    breaker.began();
    assert.equal(breaker.failed(until, false), undefined);
    assert.equal(breaker.probing, true);
  });

  test('lets another probe begin where one said nothing', () => {
    const { breaker, until = 0 } = opened();
    breaker.pausedUntil(until);
    breaker.ignored(breaker.began());
    assert.equal(breaker.probing, false);
    assert.equal(breaker.mode, 'half-open');
  });

  test('lets a probe begin before its time when somebody asks', () => {
    const { breaker } = opened();
    breaker.allowProbe();
    assert.equal(breaker.pausedUntil(1), 0);
    assert.equal(breaker.began(), true);
  });
});

describe('window', () => {
  test('begins at its bound and is halved once for all attempts that were under way', () => {
    const window = new Window(16);
    const attempts = Array.from({ length: 16 }, () => window.began());
    for (const attempt of attempts) window.slowDown(attempt);
    assert.equal(window.size, 8);
    window.slowDown(window.began());
    assert.equal(window.size, 4);
  });

  test('is never less than one', () => {
    const window = new Window(2);
    for (let at = 0; at < 5; at += 1) window.slowDown(window.began());
    assert.equal(window.size, 1);
  });

  test('grows by one for each window of successes, up to its bound', () => {
    const window = new Window(4);
    window.slowDown(window.began());
    assert.equal(window.size, 2);
    const sizes = Array.from({ length: 7 }, () => {
      window.succeeded();
      return window.size;
    });
    assert.deepEqual(sizes, [2, 3, 3, 3, 4, 4, 4]);
  });

  test('doubles in the time of an answer after a pause, and grows steadily again after a sign of too much', () => {
    const window = new Window(64);
    window.paused();
    const sizes = [window.size];
    for (let answers = 0; answers < 3; answers += 1) {
      const { size } = window;
      for (let at = 0; at < size; at += 1) window.succeeded();
      sizes.push(window.size);
    }
    assert.deepEqual(sizes, [1, 2, 4, 8]);
    window.slowDown(window.began());
    for (let at = 0; at < 4; at += 1) window.succeeded();
    assert.equal(window.size, 5);
  });

  test('follows another bound, and keeps what it learnt', () => {
    const window = new Window(8);
    window.setMax(32);
    assert.equal(window.size, 32);
    window.slowDown(window.began());
    window.setMax(64);
    assert.equal(window.size, 16);
    window.setMax(4);
    assert.equal(window.size, 4);
  });
});

describe('token bucket', () => {
  test('never lets more than the rate and a tenth of it, or one, begin in any second', () => {
    const rates = fc.double({ min: 0.1, max: 5000, noNaN: true });
    fc.assert(
      fc.property(rates, fc.array(fc.nat({ max: 40 }), { maxLength: 300 }), (rate, waits) => {
        const bucket = new TokenBucket(rate, 0);
        const begun: number[] = [];
        let at = 0;
        for (const wait of waits) {
          at += wait;
          while (bucket.waitMs(at) === 0) {
            bucket.take();
            begun.push(at);
          }
        }
        const most = rate + Math.max(1, rate / 10) + 0.001;
        for (const [index, from] of begun.entries()) {
          const within = begun.filter((time, other) => other >= index && time < from + 1000).length;
          assert.ok(within <= most, `${within} of ${rate}`);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('says how long to wait, and may go on exactly then', () => {
    const bucket = new TokenBucket(3, 0);
    assert.equal(bucket.waitMs(0), 0);
    bucket.take();
    assert.equal(bucket.waitMs(0), 334);
    assert.equal(bucket.waitMs(334), 0);
  });
});

describe('turns', () => {
  const drain = <T>(turns: Turns<T>) => {
    const taken: T[] = [];
    for (let next = turns.next(); next !== undefined; next = turns.next()) taken.push(next);
    return taken;
  };

  test('go from tenant to tenant, and within each from endpoint to endpoint', () => {
    const turns = new Turns<string>();
    for (const member of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) turns.add(member, member.slice(0, 1));
    assert.deepEqual(drain(turns), ['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  });

  test('come to an endpoint once, however often it asks, and after all others when it asks again', () => {
    const turns = new Turns<string>();
    turns.add('a', 'one');
    turns.add('b', 'one');
    turns.add('a', 'one');
    assert.equal(turns.size, 2);
    assert.equal(turns.next(), 'a');
    turns.add('a', 'one');
    assert.deepEqual(drain(turns), ['b', 'a']);
  });

  test('pass over who went', () => {
    const turns = new Turns<string>();
    turns.add('a', 'one');
    turns.add('b', 'two');
    turns.remove('a');
    assert.deepEqual(drain(turns), ['b']);
    assert.equal(turns.size, 0);
  });
});

describe('capacity', () => {
  const hold = (): Holding => ({ sending: 0, slow: 0 });
  const beginMany = (capacity: Capacity, holding: Holding, count: number, at = 0): CapacityTicket[] =>
    Array.from({ length: count }, () => capacity.begin(holding, 'all', at));

  test('is full at as many attempts as the setting says, and when as many answers wait to be written down', () => {
    const capacity = new Capacity(4);
    const holding = hold();
    const tickets = beginMany(capacity, holding, 4);
    assert.equal(capacity.full, true);
    for (const ticket of tickets) capacity.answered(ticket);
    assert.equal(capacity.full, false);
    for (const ticket of beginMany(capacity, holding, 3)) capacity.answered(ticket);
    capacity.begin(holding, 'all', 0);
    assert.equal(capacity.full, true);
    assert.equal(capacity.settling, 7);
    capacity.settled();
    assert.equal(capacity.full, false);
  });

  test('gives the second half in equal shares', () => {
    const capacity = new Capacity(16);
    const [one, other, third] = [hold(), hold(), hold()];
    beginMany(capacity, one, 8);
    assert.equal(capacity.admits(one, 'all', { parties: 1, endpoints: 2 }, 0), false);
    assert.equal(capacity.admits(other, 'all', { parties: 1, endpoints: 2 }, 0), true);
    beginMany(capacity, other, 5);
    assert.equal(capacity.admits(other, 'all', { parties: 1, endpoints: 2 }, 0), false);
    assert.equal(capacity.admits(third, 'all', { parties: 1, endpoints: 2 }, 0), true);
  });

  test('gives all of it to an endpoint that is alone', () => {
    const capacity = new Capacity(16);
    const alone = hold();
    beginMany(capacity, alone, 15);
    assert.equal(capacity.isFullFor('all', 1, true), false);
    assert.equal(capacity.admits(alone, 'all', { parties: 1, endpoints: 0 }, 0), true);
  });

  test('keeps the last eighth for parties that have less than that', () => {
    const capacity = new Capacity(16);
    const hanging = Array.from({ length: 14 }, hold);
    for (const holding of hanging) capacity.begin(holding, 'one', 0);
    assert.equal(capacity.full, false);
    assert.equal(capacity.isFullFor('one', 1, false), true);
    for (let begun = 0; begun < 2; begun += 1) {
      assert.equal(capacity.isFullFor('other', 2, false), false);
      capacity.begin(hold(), 'other', 0);
    }
    assert.equal(capacity.full, true);
  });

  test('gives the second half to parties in equal shares, and a share to the endpoints of its party', () => {
    const capacity = new Capacity(16);
    for (let begun = 0; begun < 9; begun += 1) capacity.begin(hold(), 'one', 0);
    assert.equal(capacity.isFullFor('one', 1, false), false);
    assert.equal(capacity.isFullFor('one', 2, false), true);
    assert.equal(capacity.isFullFor('other', 2, false), false);
    const [first, second] = [hold(), hold()];
    for (let begun = 0; begun < 4; begun += 1) {
      assert.equal(capacity.admits(first, 'other', { parties: 2, endpoints: 1 }, 0), true);
      capacity.begin(first, 'other', 0);
    }
    assert.equal(capacity.admits(first, 'other', { parties: 2, endpoints: 1 }, 0), false);
    assert.equal(capacity.admits(second, 'other', { parties: 2, endpoints: 1 }, 0), true);
  });

  test('lets endpoints with slow attempts begin no other while such hold half of it', () => {
    const capacity = new Capacity(8);
    const [hanging, healthy, other] = [hold(), hold(), hold()];
    const tickets = beginMany(capacity, hanging, 4);
    assert.equal(capacity.slowAt(999), 0);
    assert.equal(capacity.slowAt(1000), 4);
    assert.equal(capacity.admits(hanging, 'all', { parties: 1, endpoints: 2 }, 1000), false);
    assert.equal(capacity.admits(healthy, 'all', { parties: 1, endpoints: 2 }, 1000), true);
    const [first] = tickets;
    if (first !== undefined) capacity.answered(first);
    assert.deepEqual(hanging, { sending: 3, slow: 3 });
    assert.equal(capacity.admits(hanging, 'all', { parties: 1, endpoints: 0 }, 1000), true);
    capacity.begin(other, 'all', 1000);
    assert.equal(capacity.easy, false);
  });
});

describe('alarm', () => {
  test('rings for each endpoint at its time, in order, with one timer', async () => {
    const time = fakeTime(0);
    const rung: string[] = [];
    const alarm = new Alarm(time.clock, (id) => rung.push(`${id} ${time.clock()}`), time.timers);
    alarm.set('a', 300);
    alarm.set('b', 100);
    alarm.set('c', 200);
    alarm.set('a', 50);
    alarm.clear('c');
    await time.passTo(1000);
    assert.deepEqual(rung, ['a 50', 'b 100']);
    assert.equal(alarm.size, 0);
    assert.equal(time.next(), undefined);
  });

  test('rings a time once, and again when it is set again while ringing', async () => {
    const time = fakeTime(0);
    const rung: number[] = [];
    const ring = (id: string): void => {
      rung.push(time.clock());
      if (rung.length < 3) alarm.set(id, time.clock() + 10);
    };
    const alarm = new Alarm(time.clock, ring, time.timers);
    alarm.set('a', 5);
    await time.passTo(1000);
    assert.deepEqual(rung, [5, 15, 25]);
  });

  test('sleeps for five minutes at most, so that a clock that is set forward is noticed', async () => {
    const time = fakeTime(0);
    const alarm = new Alarm(time.clock, () => undefined, time.timers);
    alarm.set('a', 10 * 60_000);
    assert.equal(time.next(), 300_000);
    alarm.close();
    assert.equal(time.next(), undefined);
  });

  test('rings for all when the clock was set back by more than a minute, and for none before', async () => {
    for (const [backMs, wanted] of [
      [60_000, []],
      [60_001, ['a', 'b']],
    ] as const) {
      const time = fakeTime(1_000_000);
      let back = 0;
      const rung: string[] = [];
      const clock = () => time.clock() - back;
      const alarm = new Alarm(clock, (id) => rung.push(id), time.timers);
      alarm.set('a', 1_000_000 + 100_000);
      alarm.set('b', 1_000_000 + 3_600_000);
      back = backMs;
      await time.passTo(1_000_000 + 100_000);
      assert.deepEqual(rung, wanted);
      alarm.close();
    }
  });

  test('does not grow with how often times are replaced, and rings the last of each in order', async () => {
    const time = fakeTime(0);
    const rung: number[] = [];
    const alarm = new Alarm(time.clock, (id) => rung.push(Number(id)), time.timers);
    for (let round = 0; round < 50; round += 1) {
      for (let id = 0; id < 40; id += 1) alarm.set(String(id), 1000 * (50 - round) + ((id * 7) % 40));
    }
    assert.equal(alarm.size, 40);
    await time.passTo(60_000);
    const sorted = [...rung].sort((one, other) => ((one * 7) % 40) - ((other * 7) % 40));
    assert.equal(rung.length, 40);
    assert.deepEqual(rung, sorted);
  });
});

describe('queue of an endpoint', () => {
  const now = 1_000_000;
  const row = (id: string, dueAt: number): Row => {
    const doc = JSON.stringify({ id, dueAt: new Date(dueAt).toISOString() });
    return { id, rev: 1, doc, owner: null, createdAt: 0, updatedAt: 0, deletedAt: null };
  };
  const plan = {
    bounded: true,
    way: () => ({ by: 'nothing' }) as const,
    rows: () => [],
    page: () => assert.fail('it reads rows'),
  };
  const made = () => {
    const budget = { buffered: 0 };
    const breaker = { webhookBreakerFailuresMax: 1, webhookBreakerSeconds: 1, webhookBreakerSecondsMax: 1 };
    const rows = new DueRows({ plan: () => plan }, dueDeliveries, 'ep_1');
    return {
      budget,
      queue: new EndpointQueue(rows, new Breaker(breaker, Math.random), budget, 4),
    };
  };
  const ids = (queue: EndpointQueue) => {
    const taken: string[] = [];
    for (let due = queue.shift(); due !== undefined; due = queue.shift()) taken.push(due.delivery.id);
    return taken;
  };

  test('takes what is due, knows when the next one is, and whether there may be more', () => {
    const { queue, budget } = made();
    assert.equal(queue.mayHoldMore, true);
    queue.endRead(queue.beginRead(now), [row('a', 1), row('b', 2), row('c', now + 5)], 3, now);
    assert.equal(budget.buffered, 2);
    assert.deepEqual(ids(queue), ['a', 'b']);
    assert.equal(budget.buffered, 0);
    assert.deepEqual([queue.mayHoldMore, queue.nextDueAt], [false, now + 5]);
    queue.endRead(queue.beginRead(now), [row('a', 1), row('b', 2), row('d', 3)], 3, now);
    assert.deepEqual(ids(queue), ['d']);
    assert.equal(queue.mayHoldMore, true);
  });

  test('reads on behind the last row of a full read, unless something before it may be due', () => {
    const { queue } = made();
    const full = [row('a', 1), row('b', 2)];
    const begin = () => {
      const epoch = queue.beginRead(now);
      return { epoch, behind: queue.readsBehind?.id };
    };
    queue.endRead(begin().epoch, full, 2, now);
    const second = begin();
    assert.equal(second.behind, 'b');
    queue.endRead(second.epoch, [row('c', 3), row('d', 4)], 2, now);
    assert.deepEqual(ids(queue), ['a', 'b', 'c', 'd']);
    queue.mayHoldMore = true;
    assert.equal(begin().behind, undefined, 'it was woken');
    queue.endRead(0, full, 2, now);
    queue.dueAt(now);
    assert.equal(begin().behind, undefined, 'an earlier row is due again');
    queue.endRead(0, full, 2, now);
    queue.dueAt(now + 1);
    const third = begin();
    assert.equal(third.behind, 'b');
    queue.mayHoldMore = true;
    queue.endRead(third.epoch, [row('e', 5), row('f', 6)], 2, now);
    assert.equal(begin().behind, undefined, 'it was woken during the read');
    assert.equal(queue.nextDueAt, Number.POSITIVE_INFINITY);
  });

  test('takes a new row without a read where it knows all others, and leaves it to a read otherwise', () => {
    const { queue, budget } = made();
    assert.equal(queue.offer(row('a', 1), now), false, 'nothing is known of a new queue');
    queue.endRead(queue.beginRead(now), [], 4, now);
    assert.ok(queue.offer(row('a', 1), now));
    assert.ok(queue.offer(row('a', 1), now), 'it has this one already');
    assert.ok(queue.offer(row('later', now + 5), now));
    assert.deepEqual([queue.buffered, budget.buffered, queue.nextDueAt], [1, 1, now + 5]);
    assert.equal(queue.offer(row('b', 2), now + 5), false, 'an earlier row is due');
    const epoch = queue.beginRead(now);
    assert.equal(queue.offer(row('b', 2), now), false, 'a read is under way');
    queue.endRead(epoch, [row('a', 1)], 4, now);
    while (queue.offer(row(`c${queue.buffered}`, 3), now)) assert.ok(queue.buffered < 1000);
    assert.equal(queue.buffered, queue.wanted - queue.taken, 'as many as it would read');
  });

  test('takes nothing again that was written down while the rows were being read', () => {
    const { queue } = made();
    queue.endRead(queue.beginRead(now), [row('a', 1)], 4, now);
    assert.deepEqual(ids(queue), ['a']);
    const epoch = queue.beginRead(now);
    queue.release('a');
    queue.endRead(epoch, [row('a', 1), row('b', 2)], 4, now);
    assert.deepEqual(ids(queue), ['b']);
    // A resend makes the same one due again, and a read that begins after it was written down shows that.
    queue.endRead(queue.beginRead(now), [row('a', 3)], 4, now);
    assert.deepEqual(ids(queue), ['a']);
  });

  test('knows that more may be due when it was told so during a read, or when the read was for nothing', () => {
    const { queue } = made();
    const woken = queue.beginRead(now);
    queue.mayHoldMore = true;
    queue.endRead(woken, [], 4, now);
    assert.equal(queue.mayHoldMore, true);
    const dropped = queue.beginRead(now);
    queue.drop();
    queue.endRead(dropped, [row('a', 1)], 4, now);
    assert.deepEqual([queue.mayHoldMore, queue.buffered], [true, 0]);
    queue.beginRead(now);
    queue.failRead();
    assert.deepEqual([queue.mayHoldMore, queue.reading], [true, false]);
  });

  test('lets go of what has not begun, and of nothing else', () => {
    const { queue, budget } = made();
    queue.endRead(queue.beginRead(now), [row('a', 1), row('b', 2)], 4, now);
    queue.shift();
    queue.drop();
    assert.deepEqual([queue.taken, queue.buffered, budget.buffered, queue.mayHoldMore], [1, 0, 0, true]);
    queue.prefer(row('a', 1));
    assert.equal(queue.buffered, 0);
    queue.prefer(row('b', 2));
    assert.deepEqual(ids(queue), ['b']);
  });
});
