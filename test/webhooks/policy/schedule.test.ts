import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import { liveWindowMs, scheduleOf } from '../../../src/webhooks/sending/conclude-delivery.ts';
import { nextAttemptMs, nextDelayMs, type Schedule } from '../../../src/work/retries.ts';

const hourMs = 3_600_000;
const noJitter = () => 0.5;
const longest = () => 1 - Number.EPSILON;
const live: Schedule = scheduleOf({ scheme: 'timestamped', mode: 'live' }, schedulesDefault);

/** When each attempt of a delivery begins that always fails at once, from 0. */
function attemptTimes(schedule: Schedule, random: () => number): readonly number[] {
  const times: number[] = [];
  let next: number | null = 0;
  while (next !== null) {
    times.push(next);
    const failed = { scheduledAttemptCount: times.length, madeAt: 0, failedAt: next, notBefore: null };
    next = nextAttemptMs(schedule, failed, random);
  }
  return times;
}

test('finds the row of the table for each scheme and mode, and takes timestamped without a mode for live', () => {
  for (const [scheme, mode, name] of [
    ['standard', undefined, 'standard'],
    ['plain', undefined, 'plain'],
    ['timestamped', undefined, 'live'],
    ['timestamped', 'live', 'live'],
    ['timestamped', 'sandbox', 'sandbox'],
  ] as const) {
    const endpoint = mode === undefined ? { scheme } : { scheme, mode };
    assert.equal(scheduleOf(endpoint, schedulesDefault).delaysSeconds, schedulesDefault[name]);
  }
});

test('tries live for up to 3 days, ever more seldom', () => {
  const times = attemptTimes(live, noJitter);
  assert.equal(times.length, 13);
  assert.equal(times.at(-1), (71 * 3600 + 42 * 60 + 35) * 1000);
  for (let at = 2; at < times.length; at += 1) {
    const [before = 0, here = 0, next = 0] = times.slice(at - 2, at + 1);
    assert.ok(next - here >= here - before, `delay ${at}`);
  }
});

test('retries three times within a few hours in the sandbox', () => {
  const times = attemptTimes(
    scheduleOf({ scheme: 'timestamped', mode: 'sandbox' }, schedulesDefault),
    noJitter,
  );
  assert.deepEqual(times, [0, 600_000, 600_000 + hourMs, 600_000 + 4 * hourMs]);
});

test('never retries plain', () => {
  assert.deepEqual(attemptTimes(scheduleOf({ scheme: 'plain' }, schedulesDefault), noJitter), [0]);
});

test('follows the example schedule of Standard Webhooks over several days', () => {
  const times = attemptTimes(scheduleOf({ scheme: 'standard' }, schedulesDefault), noJitter);
  assert.deepEqual(times.slice(0, 4), [0, 5000, 305_000, 2_105_000]);
  assert.equal(times.length, 10);
  assert.equal(times.at(-1), (75 * 3600 + 35 * 60 + 5) * 1000);
});

test('draws every delay from a tenth below to a tenth above, of own schedules too', () => {
  assert.equal(
    nextDelayMs([100], 1, () => 0),
    90_000,
  );
  assert.equal(nextDelayMs([100], 1, noJitter), 100_000);
  assert.equal(nextDelayMs([100], 1, longest), 110_000);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_592_000 }),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      (seconds, drawn) => {
        const delayMs = nextDelayMs([seconds], 1, () => drawn);
        assert.ok(
          delayMs !== null && delayMs >= Math.max(1000, seconds * 900 - 1) && delayMs <= seconds * 1100,
        );
      },
    ),
  );
});

test('never waits less than a second', () => {
  assert.equal(
    nextDelayMs([1], 1, () => 0),
    1000,
  );
});

test('has nothing left after the last entry, and after an entry that was taken away', () => {
  assert.equal(nextDelayMs([5, 10], 2, noJitter), 10_000);
  assert.equal(nextDelayMs([5, 10], 3, noJitter), null);
  assert.equal(nextDelayMs([5, 10], 40, noJitter), null);
  assert.equal(nextDelayMs([], 1, noJitter), null);
});

test('pulls the last live attempt in to the end of the third day where the jitter adds up beyond it', () => {
  const times = attemptTimes(live, longest);
  assert.equal(times.length, 13);
  assert.equal(times.at(-1), liveWindowMs);
});

test('makes no live attempt after the third day, however the jitter falls', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })), (drawn) => {
      const left = [...drawn];
      const times = attemptTimes(live, () => left.pop() ?? 0.9999);
      assert.ok(times.every((time) => time <= liveWindowMs));
      assert.ok(times.length >= 12, `${times.length} attempts`);
    }),
  );
});

test('gives a live delivery up that failed again near the end of the third day', () => {
  const failed = { scheduledAttemptCount: 5, madeAt: 0, failedAt: liveWindowMs - 60_000, notBefore: null };
  assert.equal(nextAttemptMs(live, failed, noJitter), null);
});

test('leaves a configured live schedule of more than 3 days as it is', () => {
  const schedule = scheduleOf({ scheme: 'timestamped' }, { ...schedulesDefault, live: [172_800, 172_800] });
  assert.equal(attemptTimes(schedule, longest).at(-1), 2 * 190_080_000);
});

test('postpones an attempt to the time that the receiver asked for, and never brings it nearer', () => {
  const failed = { scheduledAttemptCount: 1, madeAt: 0, failedAt: 100, notBefore: 9000 };
  assert.equal(nextAttemptMs(live, failed, noJitter), 9000);
  assert.equal(nextAttemptMs(live, { ...failed, notBefore: 200 }, noJitter), 5100);
});

test('gives a live delivery up that the receiver wants only after the third day', () => {
  const failed = { scheduledAttemptCount: 12, madeAt: 0, failedAt: 50 * hourMs, notBefore: 73 * hourMs };
  assert.equal(nextAttemptMs(live, failed, noJitter), null);
});
