import assert from 'node:assert/strict';
import test from 'node:test';
import { type Attempt, type AttemptLimit, createAttemptLimit } from '../../src/accounts/attempt-limit.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { servicesOver } from '../harness/services-over.ts';
import { embeddedOnly, engines, openEmbedded } from '../harness/stores.ts';

const windowMs = 900_000;
/** Where a window begins. */
const begin = 2_000_000 * windowMs;

type Clock = { now: number };

function limitOf(store: Pick<Store, 'tally'>, clock: Clock, loginAttempts = 5): AttemptLimit {
  const rule = { name: 'login', attempts: loginAttempts, windowSeconds: 900 };
  return createAttemptLimit(servicesOver(store, { clock: () => clock.now }), rule);
}

async function fail(limit: AttemptLimit, account: string, address: string): Promise<Attempt> {
  const attempt = await limit.begin(account, address);
  if (attempt.ok) attempt.failed();
  return attempt;
}

async function succeed(limit: AttemptLimit, account: string, address: string): Promise<Attempt> {
  const attempt = await limit.begin(account, address);
  if (attempt.ok) await attempt.succeeded();
  return attempt;
}

function refusal(attempt: Attempt): Extract<Attempt, { ok: false }> {
  if (attempt.ok) throw new assert.AssertionError({ message: 'the attempt should be refused' });
  return attempt;
}

for (const [engine, open] of engines) {
  test(`${engine}: counts what processes let fail together`, async (context) => {
    const [one, other] = await open(context);
    const clock = { now: begin };
    const limits = [limitOf(one, clock), limitOf(other, clock)];
    for (let at = 0; at < 5; at += 1) {
      assert.equal((await fail(limits[at % 2] as AttemptLimit, 'ada', `192.0.2.${at}`)).ok, true);
    }
    for (const limit of limits) assert.equal((await fail(limit, 'ada', '192.0.2.9')).ok, false);
  });

  test(`${engine}: admits no more than five of twenty failing attempts that come at once`, async (context) => {
    const [store] = await open(context);
    const limit = limitOf(store, { now: begin });
    const attempts = Array.from({ length: 20 }, () => fail(limit, 'ada', '192.0.2.1'));
    const admitted = (await Promise.all(attempts)).filter(({ ok }) => ok);
    assert.equal(admitted.length, 5);
  });

  test(`${engine}: admits twenty good attempts that come at once`, async (context) => {
    const [store] = await open(context);
    const limit = limitOf(store, { now: begin });
    const attempts = Array.from({ length: 20 }, () => succeed(limit, 'ada', '192.0.2.1'));
    assert.ok((await Promise.all(attempts)).every(({ ok }) => ok));
    // And none of them counts.
    for (let at = 0; at < 5; at += 1) assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
    assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: refuses the sixth attempt after five failed ones on an account`, async (context) => {
    const [store] = await open(context);
    const limit = limitOf(store, { now: begin });
    for (let at = 0; at < 5; at += 1) assert.equal((await fail(limit, 'ada', `192.0.2.${at}`)).ok, true);
    assert.equal((await fail(limit, 'ada', '192.0.2.9')).ok, false);
    assert.equal((await fail(limit, 'eve', '192.0.2.9')).ok, true);
  });

  test(`${engine}: refuses the sixth attempt after five failed ones from an address`, async (context) => {
    const [store] = await open(context);
    const limit = limitOf(store, { now: begin });
    for (let at = 0; at < 5; at += 1) assert.equal((await fail(limit, `user ${at}`, '192.0.2.1')).ok, true);
    assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
    assert.equal((await fail(limit, 'ada', '192.0.2.2')).ok, true);
  });
}

test('does not count a good attempt, nor does one make up for failed ones', async (context) => {
  const limit = limitOf(await openEmbedded(context), { now: begin });
  for (let at = 0; at < 4; at += 1) await fail(limit, 'ada', '192.0.2.1');
  for (let at = 0; at < 10; at += 1) assert.equal((await succeed(limit, 'ada', '192.0.2.1')).ok, true);
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
  assert.equal((await succeed(limit, 'ada', '192.0.2.1')).ok, false);
});

test('keeps one that finds no room waiting while an attempt before it may still be good', async (context) => {
  const limit = limitOf(await openEmbedded(context), { now: begin });
  for (let at = 0; at < 4; at += 1) await fail(limit, 'ada', '192.0.2.1');
  const pending = await limit.begin('ada', '192.0.2.1');
  const next = limit.begin('ada', '192.0.2.1');
  assert.ok(pending.ok);
  await pending.succeeded();
  const admitted = await next;
  assert.ok(admitted.ok);
  const last = limit.begin('ada', '192.0.2.1');
  admitted.failed();
  assert.equal((await last).ok, false);
});

test('looks again where the attempt that it would wait for was settled while the store was asked', async (context) => {
  const store = await openEmbedded(context);
  let meanwhile: (() => Promise<void>) | undefined;
  const limit = limitOf(
    {
      tally: async (tallies) => {
        const act = tallies.some(({ add }) => add < 0) ? meanwhile : undefined;
        if (act !== undefined) meanwhile = undefined;
        await act?.();
        return store.tally(tallies);
      },
    },
    { now: begin },
    1,
  );
  const pending = await limit.begin('ada', '192.0.2.1');
  assert.ok(pending.ok);
  // The first count to be given back is that of the attempt which finds no room.
  meanwhile = () => pending.succeeded();
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
});

test('tells the limit, that nothing is left, and when to come back', async (context) => {
  const clock = { now: begin + 60_500 };
  const limit = limitOf(await openEmbedded(context), clock);
  for (let at = 0; at < 5; at += 1) await fail(limit, 'ada', '192.0.2.1');
  const { allowance } = refusal(await fail(limit, 'ada', '192.0.2.1'));
  assert.equal(allowance.exceeded, true);
  assert.equal(allowance.policy, '"login";q=5;w=900');
  assert.equal(allowance.remaining, '0');
  assert.equal(allowance.rate, `"login";r=0;t=${allowance.retryAfterSeconds}`);
});

test('admits again at the time of Retry-After, and refuses a second before', async (context) => {
  const clock = { now: begin + 60_500 };
  const limit = limitOf(await openEmbedded(context), clock);
  for (let at = 0; at < 5; at += 1) await fail(limit, 'ada', '192.0.2.1');
  const { allowance } = refusal(await fail(limit, 'ada', '192.0.2.1'));
  clock.now += (allowance.retryAfterSeconds - 1) * 1000;
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
  clock.now += 1000;
  // All five were of one moment.
  for (let at = 0; at < 5; at += 1) assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
});

test('never tells to wait longer than the window, whenever in it the attempts came', async (context) => {
  const store = await openEmbedded(context);
  for (const offset of [0, 1, 400, 999, 1000, 11_000, 30_500, 59_999]) {
    const clock = { now: begin + offset };
    const limit = limitOf(store, clock);
    for (let at = 0; at < 5; at += 1) await fail(limit, `at ${offset}`, `from ${offset}`);
    const waits = [clock.now, clock.now + 60_000, clock.now + windowMs - 2000].map(async (now) => {
      const { allowance } = refusal(await fail(limitOf(store, { now }), `at ${offset}`, '192.0.2.200'));
      return now + allowance.retryAfterSeconds * 1000 - clock.now;
    });
    for (const wait of await Promise.all(waits)) {
      assert.ok(wait <= windowMs && wait > windowMs - 1000, `${offset}: ${wait}`);
    }
  }
});

test('does not move Retry-After away from who keeps trying', async (context) => {
  const clock = { now: begin };
  const limit = limitOf(await openEmbedded(context), clock);
  for (let at = 0; at < 5; at += 1) await fail(limit, 'ada', '192.0.2.1');
  const first = refusal(await fail(limit, 'ada', '192.0.2.1')).allowance.retryAfterSeconds;
  for (let second = 1; second <= 30; second += 1) {
    clock.now = begin + second * 1000;
    const { allowance } = refusal(await fail(limit, 'ada', '192.0.2.1'));
    assert.equal(allowance.retryAfterSeconds, first - second);
  }
});

test('admits five at most in any fifteen minutes, wherever they begin', async (context) => {
  const clock = { now: begin + windowMs - 1000 };
  const limit = limitOf(await openEmbedded(context), clock);
  const admitted: number[] = [];
  // Somebody who tries every twelve seconds for an hour and a half.
  for (; clock.now < begin + 7 * windowMs; clock.now += 12_000) {
    if ((await fail(limit, 'ada', '192.0.2.1')).ok) admitted.push(clock.now);
  }
  for (const [index, at] of admitted.entries()) {
    const sixth = admitted[index + 5];
    assert.ok(sixth === undefined || sixth - at >= windowMs, `${index}: ${(sixth ?? 0) - at} ms`);
  }
  // Nor fewer: an attempt counts no longer than the window.
  assert.equal(admitted.length, 31);
});

test('lets attempts go one by one, as they came', async (context) => {
  const clock = { now: begin };
  const limit = limitOf(await openEmbedded(context), clock);
  for (let at = 0; at < 5; at += 1) {
    clock.now = begin + at * 120_000;
    await fail(limit, 'ada', '192.0.2.1');
  }
  for (let at = 0; at < 5; at += 1) {
    const { retryAfterSeconds } = refusal(await fail(limit, 'ada', '192.0.2.1')).allowance;
    clock.now += retryAfterSeconds * 1000;
    assert.equal(clock.now, begin + windowMs + at * 120_000);
    assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
  }
});

test('notes the first refusal of a window and none after it', async (context) => {
  const clock = { now: begin };
  const limit = limitOf(await openEmbedded(context), clock);
  for (let at = 0; at < 5; at += 1) await fail(limit, 'ada', '192.0.2.1');
  assert.equal(refusal(await fail(limit, 'ada', '192.0.2.1')).first, true);
  assert.equal(refusal(await fail(limit, 'ada', '192.0.2.1')).first, false);
  assert.equal(refusal(await fail(limit, 'ada', '192.0.2.2')).first, false);
});

test('sets no limit at 0 and never asks the store', async () => {
  const store = { tally: () => Promise.reject(new Error('asked')) };
  const limit = limitOf(store, { now: begin }, 0);
  for (let at = 0; at < 50; at += 1) assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
});

test('lets nobody try while the store cannot count, and goes on when it can', async (context) => {
  const store = await openEmbedded(context);
  let isAway = true;
  const limit = limitOf(
    {
      tally: (tallies) =>
        isAway
          ? Promise.reject(new StoreUnavailable('away', { retryAfterSeconds: 1 }))
          : store.tally(tallies),
    },
    { now: begin },
  );
  await assert.rejects(limit.begin('ada', '192.0.2.1'), StoreUnavailable);
  isAway = false;
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
});

test('lets a good attempt be good when it could not be given back', async (context) => {
  const store = await openEmbedded(context);
  let isAway = false;
  const limit = limitOf(
    {
      tally: (tallies) =>
        isAway
          ? Promise.reject(new StoreUnavailable('away', { retryAfterSeconds: 1 }))
          : store.tally(tallies),
    },
    { now: begin },
  );
  const attempt = await limit.begin('ada', '192.0.2.1');
  isAway = true;
  assert.ok(attempt.ok);
  await attempt.succeeded();
  isAway = false;
  for (let at = 0; at < 4; at += 1) assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, true);
  assert.equal((await fail(limit, 'ada', '192.0.2.1')).ok, false);
});
