import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { type ScheduleName, schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import type { ExchangeFailure } from '../../../src/egress/exchange.ts';
import { type Delivery, deliveryDocument, type Trigger, triggerOf } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { type Attempted, conclude, type Policy } from '../../../src/webhooks/sending/conclude-delivery.ts';
import { answer, attempted, delivery, failure, isoTime, madeAt } from './fixture.ts';

const endedAt = madeAt + 1000;
const dayS = 86_400;

type Facts = Pick<Endpoint, 'scheme' | 'mode'>;
const endpoints: readonly (readonly [ScheduleName, Facts])[] = [
  ['standard', { scheme: 'standard' }],
  ['live', { scheme: 'timestamped', mode: 'live' }],
  ['sandbox', { scheme: 'timestamped', mode: 'sandbox' }],
  ['plain', { scheme: 'plain' }],
];

function policy(endpoint: Facts = { scheme: 'standard' }, trigger: Trigger = 'automatic'): Policy {
  return { endpoint, trigger, schedules: schedulesDefault, random: () => 0.5, retryAfterSecondsMax: dayS };
}

/** One that somebody asked for while its schedule goes on in an hour. */
const asked = delivery({
  attemptCount: 3,
  scheduledAttemptCount: 2,
  nextAttemptAt: isoTime(madeAt + 3_600_000),
  dueAt: isoTime(madeAt + 500),
});

const statuses = [
  200, 201, 204, 299, 300, 301, 302, 307, 400, 401, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504, 599,
];
const failures: readonly ExchangeFailure[] = [
  'refused',
  'dns',
  'connect',
  'tls',
  'timeout',
  'reset',
  'protocol',
];
const outcomes: readonly Attempted['outcome'][] = [
  ...statuses.map((status) => answer(status)),
  ...failures.map(failure),
];

function nameOf(outcome: Attempted['outcome']): string | number {
  return outcome.kind === 'answered'
    ? outcome.status
    : outcome.kind === 'failed'
      ? outcome.failure
      : outcome.kind;
}

for (const [name, endpoint] of endpoints) {
  test(`concludes every answer and failure of an attempt by the ${name} schedule`, () => {
    const [firstDelay] = schedulesDefault[name];
    for (const outcome of outcomes) {
      const {
        delivery: next,
        isLogged,
        verdict,
      } = conclude(delivery(), attempted(outcome, endedAt), policy(endpoint));
      const isDelivered = outcome.kind === 'answered' && outcome.status < 300;
      const isGone = nameOf(outcome) === 410 && endpoint.scheme === 'standard';
      const retry =
        isDelivered || isGone || firstDelay === undefined ? null : isoTime(endedAt + firstDelay * 1000);
      const status = outcome.kind === 'answered' ? outcome.status : null;
      assert.deepEqual(
        next,
        delivery({
          status: isDelivered ? 'delivered' : 'not_delivered',
          attemptCount: 1,
          scheduledAttemptCount: 1,
          nextAttemptAt: retry,
          dueAt: retry,
          lastStatusCode: status,
          lastError: outcome.kind === 'failed' ? outcome.failure : null,
          ...('timing' in outcome ? { lastLatencyMs: Math.round(outcome.timing.totalMs) } : {}),
          updatedAt: isoTime(endedAt),
        }),
        `${name} ${nameOf(outcome)}`,
      );
      assert.ok(isLogged);
      assert.deepEqual(verdict, {
        health: isDelivered ? 'succeeded' : 'failed',
        notBefore: null,
        slowDown: [429, 502, 503, 504, 'timeout'].includes(nameOf(outcome)),
        gone: isGone,
      });
    }
  });

  test(`leaves the ${name} schedule where it was after an attempt that somebody asked for`, () => {
    for (const outcome of outcomes) {
      const { delivery: next, verdict } = conclude(
        asked,
        attempted(outcome, endedAt),
        policy(endpoint, 'manual'),
      );
      const isDelivered = outcome.kind === 'answered' && outcome.status < 300;
      const isGone = nameOf(outcome) === 410 && endpoint.scheme === 'standard';
      const retry = isDelivered || isGone ? null : asked.nextAttemptAt;
      assert.equal(next.status, isDelivered ? 'delivered' : 'not_delivered', `${nameOf(outcome)}`);
      assert.equal(next.attemptCount, 4);
      assert.equal(next.scheduledAttemptCount, 2);
      assert.equal(next.nextAttemptAt, retry);
      assert.equal(next.dueAt, retry);
      assert.equal(verdict.health, isDelivered ? 'succeeded' : 'ignored');
      assert.equal(verdict.gone, isGone);
    }
  });
}

test('takes 410 for a wish to hear no more from standard endpoints alone', () => {
  for (const [, endpoint] of endpoints) {
    const { verdict } = conclude(delivery(), attempted(answer(410)), policy(endpoint));
    assert.equal(verdict.gone, endpoint.scheme === 'standard');
  }
});

test('waits as long as Retry-After asks with 429, 502, 503 and 504, and with nothing else', () => {
  for (const status of statuses) {
    const outcome = answer(status, { fields: [['retry-after', '3600']] });
    const { delivery: next, verdict } = conclude(delivery(), attempted(outcome, endedAt), policy());
    const isHonoured = [429, 502, 503, 504].includes(status);
    assert.equal(verdict.notBefore, isHonoured ? endedAt + 3_600_000 : null, `${status}`);
    if (isHonoured) assert.equal(next.dueAt, isoTime(endedAt + 3_600_000));
  }
});

test('tells the endpoint to wait, but not the schedule, after an attempt that somebody asked for', () => {
  const outcome = answer(503, { fields: [['retry-after', '7200']] });
  const { delivery: next, verdict } = conclude(
    asked,
    attempted(outcome, endedAt),
    policy(undefined, 'manual'),
  );
  assert.equal(verdict.notBefore, endedAt + 7_200_000);
  assert.equal(next.nextAttemptAt, asked.nextAttemptAt);
});

test('makes the attempts of its schedule and not one more', () => {
  for (const [name, endpoint] of endpoints) {
    let current = delivery();
    let attempts = 0;
    while (current.dueAt !== null) {
      attempts += 1;
      current = conclude(
        current,
        attempted(answer(500), Date.parse(current.dueAt) + 10),
        policy(endpoint),
      ).delivery;
    }
    assert.equal(attempts, schedulesDefault[name].length + 1, name);
    assert.equal(current.status, 'not_delivered');
    assert.equal(current.scheduledAttemptCount, attempts);
  }
});

test('counts and logs nothing of an attempt that the program itself broke off', () => {
  const before = delivery();
  const { delivery: next, isLogged, verdict } = conclude(before, attempted(failure('aborted')), policy());
  assert.equal(next, before);
  assert.equal(isLogged, false);
  assert.deepEqual(verdict, { health: 'ignored', notBefore: null, slowDown: false, gone: false });
});

test('gives a delivery up whose event is gone, without an attempt', () => {
  const before = delivery({
    attemptCount: 2,
    scheduledAttemptCount: 2,
    status: 'not_delivered',
    lastStatusCode: 500,
  });
  const {
    delivery: next,
    isLogged,
    verdict,
  } = conclude(before, attempted({ kind: 'expunged' }, endedAt), policy());
  assert.deepEqual(next, {
    ...before,
    nextAttemptAt: null,
    dueAt: null,
    lastStatusCode: null,
    lastError: 'expunged',
    updatedAt: isoTime(endedAt),
  });
  assert.equal(isLogged, false);
  assert.equal(verdict.health, 'ignored');
});

const begun = delivery({ attemptCount: 1, scheduledAttemptCount: 1, status: 'not_delivered' });
const askedMeanwhile: Delivery = { ...begun, status: 'pending', dueAt: isoTime(madeAt + 700) };

test('keeps a resend that was asked for while an attempt by schedule failed', () => {
  const { delivery: next } = conclude(askedMeanwhile, attempted(answer(500), endedAt), policy(), begun);
  assert.equal(next.status, 'pending');
  assert.equal(next.dueAt, askedMeanwhile.dueAt);
  assert.equal(next.nextAttemptAt, isoTime(endedAt + 300_000));
  assert.equal(next.scheduledAttemptCount, 2);
  assert.equal(triggerOf(next), 'manual');
});

test('keeps a second resend that was asked for while the first failed', () => {
  const again: Delivery = { ...asked, status: 'pending', dueAt: isoTime(madeAt + 900) };
  const { delivery: next } = conclude(again, attempted(answer(500)), policy(undefined, 'manual'), asked);
  assert.equal(next.dueAt, again.dueAt);
  assert.equal(next.nextAttemptAt, asked.nextAttemptAt);
  assert.equal(next.status, 'pending');
});

test('needs no resend any more that was asked for while an attempt was answered with 2xx', () => {
  const { delivery: next } = conclude(askedMeanwhile, attempted(answer(200)), policy(), begun);
  assert.equal(next.status, 'delivered');
  assert.equal(next.dueAt, null);
  assert.equal(next.nextAttemptAt, null);
});

test('does not undo what another process delivered', () => {
  const standing = conclude(begun, attempted(answer(204)), policy()).delivery;
  const { delivery: next } = conclude(standing, attempted(answer(500), endedAt + 5), policy(), begun);
  assert.deepEqual(next, { ...standing, attemptCount: 3, updatedAt: isoTime(endedAt + 5) });
});

test('moves the schedule once where two processes failed with the same attempt', () => {
  const standing = conclude(begun, attempted(answer(500)), policy()).delivery;
  const { delivery: next } = conclude(standing, attempted(answer(502), endedAt + 5), policy(), begun);
  assert.equal(next.scheduledAttemptCount, standing.scheduledAttemptCount);
  assert.equal(next.nextAttemptAt, standing.nextAttemptAt);
  assert.equal(next.dueAt, standing.dueAt);
  assert.equal(next.attemptCount, 3);
  assert.equal(next.lastStatusCode, 502);
});

const unsent = [
  ['whose owner may not read it any more', 'forbidden', 'access_lost'],
  ['that ended every program which made its body', 'given_up', 'given_up'],
] as const;

for (const [which, kind, lastError] of unsent) {
  test(`ends a delivery ${which}, and counts no attempt`, () => {
    const { delivery, isLogged, verdict } = conclude(begun, attempted({ kind }), policy());
    assert.deepEqual(
      [delivery.status, delivery.dueAt, delivery.nextAttemptAt, delivery.lastError, delivery.attemptCount],
      ['not_delivered', null, null, lastError, begun.attemptCount],
    );
    assert.deepEqual([isLogged, verdict.health], [false, 'ignored']);
  });
}

test('sends nothing any more that was expunged while an attempt was under way', () => {
  const standing = conclude(begun, attempted({ kind: 'expunged' }), policy()).delivery;
  for (const outcome of [answer(500), answer(200), failure('timeout')]) {
    const { delivery: next } = conclude(standing, attempted(outcome), policy(), begun);
    assert.equal(next.dueAt, null);
    assert.equal(next.nextAttemptAt, null);
    assert.equal(next.attemptCount, 2);
    assert.equal(next.lastError, next.status === 'delivered' ? null : 'expunged');
  }
  const delivered = conclude(begun, attempted(answer(200)), policy()).delivery;
  assert.equal(conclude(delivered, attempted({ kind: 'expunged' }), policy(), begun).delivery, delivered);
});

const anyOutcome: fc.Arbitrary<Attempted['outcome']> = fc.oneof(
  fc.constantFrom(...outcomes, failure('aborted')),
  fc
    .integer({ min: 0, max: 200_000 })
    .map((seconds) => answer(503, { fields: [['retry-after', `${seconds}`]] })),
  fc.constant({ kind: 'expunged' } as const),
);
const anyStep = fc.record({
  outcome: anyOutcome,
  resend: fc.boolean(),
  late: fc.integer({ min: 0, max: 600_000 }),
});

test('keeps its promises over any history of attempts and resends', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...endpoints),
      fc.array(anyStep, { maxLength: 30 }),
      ([name, endpoint], steps) => {
        let current = delivery();
        let now = madeAt;
        for (const { outcome, resend, late } of steps) {
          now = Math.max(now, current.dueAt === null ? 0 : Date.parse(current.dueAt)) + late;
          if (resend) current = { ...current, status: 'pending', dueAt: isoTime(now) };
          if (current.dueAt === null) continue;
          const before = current;
          const trigger = triggerOf(before);
          const conclusion = conclude(before, attempted(outcome, now + 10), policy(endpoint, trigger));
          const next = conclusion.delivery;
          assert.deepEqual(JSON.parse(deliveryDocument(next)), next);
          assert.equal(next.attemptCount, before.attemptCount + (conclusion.isLogged ? 1 : 0));
          assert.ok(next.scheduledAttemptCount <= next.attemptCount);
          assert.equal(next.dueAt, next === before ? before.dueAt : next.nextAttemptAt);
          if (next.status === 'delivered') assert.equal(next.dueAt, null);
          if (next.nextAttemptAt !== null && next.nextAttemptAt !== before.nextAttemptAt) {
            assert.ok(Date.parse(next.nextAttemptAt) > now, 'the schedule goes forward');
            assert.equal(trigger, 'automatic');
            if (name === 'live') assert.ok(Date.parse(next.nextAttemptAt) <= madeAt + 3 * dayS * 1000);
          }
          if (conclusion.verdict.health === 'failed') assert.equal(trigger, 'automatic');
          current = next;
        }
      },
    ),
    { numRuns: 300 },
  );
});
