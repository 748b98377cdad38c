/** The state machine of kept mails: what each result of an attempt makes of a mail. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { conclude, type MailPolicy, recipientsLeft } from '../../src/mail/mail-engine.ts';
import type { Attempted } from '../../src/mail/smtp.ts';
import type { KeptMail } from '../../src/model/kept-mail.ts';

const created = '2026-08-01T09:30:00.000Z';
const at = Date.parse('2026-08-01T09:31:00.000Z');
const policy: MailPolicy = { schedule: [10, 60], attemptsMax: 4, random: () => 0.5 };
const mail: KeptMail = {
  ...{ id: 'mail_1', to: ['a@x.example', 'b@x.example'], cc: [], bcc: [] },
  ...{ subject: 'Hello', template: null },
  ...{ status: 'pending', attempts: 0, scheduledAttempts: 0, accepted: [], refused: [] },
  ...{ dueAt: created, sentAt: null, lastError: null, createdAt: created, updatedAt: created },
};
const unreachable: Attempted = { kind: 'unreachable', told: 'ECONNREFUSED', error: undefined };
const answered = (...refusals: [string, boolean][]): Attempted => ({
  kind: 'answered',
  refusals: refusals.map(([recipient, isFinal]) => ({ recipient, isFinal, error: isFinal ? '550' : '451' })),
});

function after(current: KeptMail, attempted: Attempted): KeptMail {
  return conclude(current, attempted, recipientsLeft(current), at, policy);
}

test('is sent once every recipient was accepted', () => {
  const sent = after(mail, answered());
  assert.deepEqual([sent.status, sent.dueAt, sent.attempts], ['sent', null, 1]);
  assert.deepEqual(sent.accepted, mail.to);
  assert.equal(sent.sentAt, new Date(at).toISOString());
});

test('is tried again for the recipients that are left', () => {
  const first = after(mail, answered(['b@x.example', false]));
  assert.deepEqual([first.status, first.lastError], ['pending', '451']);
  assert.equal(first.dueAt, new Date(at + 10_000).toISOString());
  assert.deepEqual(recipientsLeft(first), ['b@x.example']);
  const second = after(first, answered());
  assert.deepEqual([second.status, second.lastError], ['sent', null]);
});

test('fails if a recipient is refused for good, after the others were served', () => {
  const first = after(mail, answered(['a@x.example', true], ['b@x.example', false]));
  assert.deepEqual([first.status, first.lastError], ['pending', '550']);
  const second = after(first, answered());
  assert.deepEqual([second.status, second.lastError], ['failed', '550']);
  assert.deepEqual([second.accepted, second.refused], [['b@x.example'], ['a@x.example']]);
});

test('follows the schedule, whose last entry repeats, to the last attempt', () => {
  const waits: (number | null)[] = [];
  for (let current = mail; ; ) {
    current = after(current, unreachable);
    waits.push(current.dueAt === null ? null : Date.parse(current.dueAt) - at);
    if (current.status !== 'pending') {
      assert.deepEqual([current.status, current.lastError], ['failed', 'ECONNREFUSED']);
      break;
    }
  }
  assert.deepEqual(waits, [10_000, 60_000, 60_000, null]);
});

test('fails at once if it cannot be sent at all', () => {
  const failed = after(mail, { kind: 'impossible', told: 'no content', error: undefined });
  assert.deepEqual([failed.status, failed.lastError, failed.refused], ['failed', 'no content', mail.to]);
});

test('keeps what another attempt recorded meanwhile', () => {
  const meanwhile: KeptMail = { ...mail, attempts: 3, accepted: ['a@x.example'], sentAt: created };
  const settled = conclude(meanwhile, answered(['b@x.example', false]), mail.to, at, policy);
  assert.deepEqual([settled.attempts, settled.accepted], [4, ['a@x.example']]);
  assert.equal(settled.status, 'pending');
});
