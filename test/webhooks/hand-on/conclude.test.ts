/** What a message becomes by an attempt: the rules that need no store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { handOnScheduleDefault } from '../../../src/config/senders.ts';
import { receivingRetention } from '../../../src/webhooks/receiving/received-tables.ts';
import { Shares } from '../../../src/webhooks/receiving/sender-queue.ts';
import { conclude, triggerOf } from '../../../src/webhooks/receiving/settle-received.ts';
import { failed, message } from './fixture.ts';

const at = Date.UTC(2026, 2, 2);
const failedAt = at + 1234;

function after(handedOn: ReturnType<typeof failed>, scheduledAttempts: number, random: number) {
  const begun = message('rec_1', at, { scheduledAttempts, attempts: scheduledAttempts });
  const run = { handedOn, startedAt: at, endedAt: failedAt };
  return conclude(begun, begun, run, { schedule: handOnScheduleDefault, random: () => random }).received;
}

test('tries again by the schedule to the millisecond, a tenth around each delay', () => {
  for (const [index, seconds] of handOnScheduleDefault.entries()) {
    for (const [random, factor] of [
      [0, 0.9],
      [0.5, 1],
    ] as const) {
      const { dueAt, status, scheduledAttempts } = after(failed('thrown'), index, random);
      assert.equal(Date.parse(dueAt ?? ''), failedAt + Math.max(1000, Math.round(seconds * 1000 * factor)));
      assert.deepEqual([status, scheduledAttempts], ['pending', index + 1]);
    }
  }
});

test('is the dead letter after the last attempt of the schedule, and at once where no other would help', () => {
  const last = after(failed('thrown'), handOnScheduleDefault.length, 0.5);
  assert.deepEqual([last.status, last.dueAt, last.lastError], ['failed', null, 'thrown']);
  const never = after(failed('unprocessable', { permanent: true }), 0, 0.5);
  assert.deepEqual([never.status, never.dueAt, never.lastError], ['failed', null, 'unprocessable']);
});

test('waits as long as a Retry-After says, and never less than the schedule', () => {
  const later = after(failed('status', { notBefore: failedAt + 60_000 }), 0, 0.5);
  assert.equal(Date.parse(later.dueAt ?? ''), failedAt + 60_000);
  const sooner = after(failed('status', { notBefore: failedAt + 1 }), 0, 0.5);
  assert.equal(Date.parse(sooner.dueAt ?? ''), failedAt + 5000);
});

test('leaves the schedule where another attempt moved it', () => {
  const begun = message('rec_1', at);
  const moved = { ...begun, attempts: 1, scheduledAttempts: 1, dueAt: new Date(at + 9000).toISOString() };
  const run = { handedOn: failed('thrown'), startedAt: at, endedAt: failedAt };
  const { received } = conclude(moved, begun, run, { schedule: [5], random: () => 0.5 });
  assert.deepEqual([received.attempts, received.scheduledAttempts, received.dueAt], [2, 1, moved.dueAt]);
});

test('tells what was replayed from what came and what the schedule tries again', () => {
  const later = new Date(at + 1).toISOString();
  assert.equal(triggerOf(message('rec_1', at)), 'automatic');
  assert.equal(triggerOf(message('rec_1', at, { scheduledAttempts: 1, dueAt: later })), 'automatic');
  assert.equal(triggerOf(message('rec_1', at, { dueAt: later })), 'manual');
});

test('keeps a part of the whole free for each sender, and lets one alone have the rest', () => {
  const shares = new Shares(8, 2);
  const [greedy, modest] = [shares.add(100), shares.add(1)];
  let begun = 0;
  for (; shares.admits(greedy); begun += 1) shares.begin(greedy);
  assert.equal(begun, 7);
  assert.ok(shares.admits(modest));
  shares.begin(modest);
  assert.ok(!shares.admits(modest) && !shares.admits(greedy));
  shares.end(greedy);
  assert.ok(shares.admits(greedy));
  shares.begin(greedy);
  shares.end(modest);
  assert.ok(!shares.admits(greedy));
});

test('lets every sender have one at a time where there are more senders than places', () => {
  const shares = new Shares(2, 3);
  const [first, second, third] = [shares.add(8), shares.add(8), shares.add(8)] as const;
  for (const share of [first, second]) {
    assert.ok(shares.admits(share));
    shares.begin(share);
  }
  assert.ok(!shares.admits(third));
  shares.end(first);
  assert.ok(shares.admits(third) && !shares.admits(second));
});

test('keeps messages, their attempts and their contents for the same time', () => {
  const rules = receivingRetention({ receivedRetentionSeconds: 60 });
  assert.deepEqual(rules, [
    { table: 'received', seconds: 60 },
    { table: 'received_attempts', seconds: 60 },
    { table: 'received_contents', seconds: 60 },
  ]);
});
