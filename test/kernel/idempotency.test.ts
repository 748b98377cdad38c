/**
 * Idempotency-Keys of several processes on one store: two instances of the room share it. What a client sees of one process is in
 * test/wire/resources/idempotency.test.ts.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import {
  type Claim,
  claimSeconds,
  createIdempotency,
  type Idempotency,
  idempotencyTable,
} from '../../src/kernel/idempotency.ts';
import type { Ask, Made } from '../../src/kernel/resource.ts';
import { createIdSource } from '../../src/model/id.ts';
import { type Commit, keptRow, type Store } from '../../src/store/store.ts';
import { engines, failing, openEmbedded } from '../harness/stores.ts';
import { askOf } from '../resources/ask.ts';

const startedAt = Date.UTC(2030, 0, 1);
const newId = createIdSource(Date.now, () => randomInt(32));
const cut = { name: 'StoreUnavailable' };

/** Time of every process of a test. */
type Time = { now: number };

function startProcess(store: Store, time: Time = { now: startedAt }, lifetimeSeconds = 3600): Idempotency {
  return createIdempotency({ store, clock: () => time.now, newId }, lifetimeSeconds);
}

function askWith(key: string, now = startedAt): Ask {
  return askOf({ fields: ['Idempotency-Key', `"${key}"`], now });
}

async function first(idempotency: Idempotency, ask: Ask): Promise<Claim> {
  const claim = await idempotency.claim(ask, 'same');
  assert.equal(claim.status, 'first');
  return claim as Claim;
}

function made(id: string): Made {
  return {
    outcome: 'made',
    created: true,
    location: `/things/${id}`,
    doc: '{}',
    modifiedAt: startedAt,
    validated: true,
  };
}

/** The change of the request and its companion, as one unit. */
function settle(store: Store, claim: Claim, id: string): Promise<Commit> {
  const next = keptRow('{}', null, startedAt, startedAt);
  return store.commit({
    changes: [{ table: 'things', id, expect: { absent: true }, next }, claim.companion(made(id))],
    events: [],
  });
}

async function replayOf(idempotency: Idempotency, ask: Ask): Promise<unknown> {
  const claim = await idempotency.claim(ask, 'same');
  assert.equal(claim.status, 'replay');
  const { result } = claim as Extract<typeof claim, { status: 'replay' }>;
  return 'made' in result ? result.made.location : result.refused.code;
}

for (const [engine, open] of engines) {
  test(`${engine}: of requests on two processes at once one is the first, and its result is what all get`, async (context) => {
    const [one, other] = await open(context);
    const processes = [startProcess(one), startProcess(other)] as const;
    const ask = askWith('race');
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? processes[0] : processes[1]).claim(ask, 'same')),
    );
    const firsts = claims.filter(({ status }) => status === 'first');
    assert.equal(firsts.length, 1);
    assert.ok(claims.every(({ status }) => status === 'first' || status === 'running'));
    assert.equal((await settle(one, firsts[0] as Claim, 'raced')).outcome, 'committed');
    for (const process of processes) {
      assert.equal(await replayOf(process, ask), '/things/raced');
      assert.equal((await process.claim(ask, 'another')).status, 'other');
    }
  });

  test(`${engine}: a request that was slow after another took its claim over makes no change`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const processes = [startProcess(one, time), startProcess(other, time)] as const;
    const ask = askWith('slow');
    const slow = await first(processes[0], ask);
    time.now += claimSeconds * 1000;
    assert.equal((await processes[1].claim(ask, 'same')).status, 'running');
    time.now += 1;
    const taken = await first(processes[1], ask);
    const late = await settle(one, slow, 'late');
    assert.equal(late.outcome, 'superseded');
    assert.equal(await one.read('things', 'late'), undefined);
    await slow.release({ code: 'idempotency_key_in_use' });
    assert.equal(
      (await processes[0].claim(ask, 'same')).status,
      'running',
      'the claim is still the other one',
    );
    assert.equal((await settle(other, taken, 'taken')).outcome, 'committed');
    assert.equal(await replayOf(processes[0], ask), '/things/taken');
  });

  test(`${engine}: after a failure in the middle of the change a retry gets its result, or is the first`, async (context) => {
    for (const [fault, result] of [
      ['answer-lost', '/things/answer-lost'],
      ['lost', undefined],
    ] as const) {
      const [one, other] = await open(context);
      const store = failing(one);
      const process = startProcess(store);
      const ask = askWith(fault);
      const claim = await first(process, ask);
      store.fault = fault;
      await assert.rejects(settle(store, claim, fault), cut);
      store.fault = 'lost';
      await claim.release(undefined);
      await assert.rejects(
        process.claim(ask, 'same'),
        cut,
        'nothing is known while the store does not answer',
      );
      store.fault = 'none';
      if (result === undefined) assert.equal((await process.claim(ask, 'same')).status, 'first');
      else {
        assert.equal(await replayOf(process, ask), result);
        assert.equal(await replayOf(startProcess(other), ask), result);
      }
    }
  });

  test(`${engine}: a key whose claim itself failed is free again, for every process, soon after the store answers`, async (context) => {
    for (const fault of ['answer-lost', 'lost'] as const) {
      const [one, other] = await open(context);
      const store = failing(one);
      const process = startProcess(store);
      store.fault = fault;
      await assert.rejects(process.claim(askWith('same process'), 'same'), cut);
      await assert.rejects(process.claim(askWith('other process'), 'same'), cut);
      store.fault = 'none';
      await first(process, askWith('same process'));
      const elsewhere = startProcess(other);
      for (;;) {
        const { status } = await elsewhere.claim(askWith('other process'), 'same');
        if (status === 'first') break;
        assert.equal(status, 'running');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  });

  test(`${engine}: a claim of somebody else is not freed by one that failed`, async (context) => {
    const [one, other] = await open(context);
    const store = failing(one);
    const process = startProcess(store);
    const ask = askWith('not ours');
    store.fault = 'lost';
    await assert.rejects(process.claim(ask, 'same'), cut);
    const claim = await first(startProcess(other), ask);
    store.fault = 'none';
    assert.equal((await process.claim(ask, 'same')).status, 'running');
    assert.equal((await settle(other, claim, 'theirs')).outcome, 'committed');
    assert.equal(await replayOf(process, ask), '/things/theirs');
  });

  test(`${engine}: a refusal that could not be stored is stored later, and answered all the same`, async (context) => {
    const [one, other] = await open(context);
    const store = failing(one);
    const process = startProcess(store);
    const ask = askWith('refused');
    const claim = await first(process, ask);
    store.fault = 'lost';
    await claim.release({ code: 'unique_taken' });
    store.fault = 'none';
    assert.equal(await replayOf(process, ask), 'unique_taken');
    assert.equal(await replayOf(startProcess(other), ask), 'unique_taken');
  });
}

test('frees a key at once after a refusal of the request itself', async (context) => {
  const store = await openEmbedded(context);
  const process = startProcess(store);
  const claim = await first(process, askWith('corrected'));
  await claim.release(undefined);
  assert.equal(await store.read(idempotencyTable, 'corrected'), undefined);
  await first(startProcess(store), askWith('corrected'));
});

test('counts the age of a claim from the claim, not from the arrival of a request that was long in coming', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: startedAt + 10 * claimSeconds * 1000 };
  const process = startProcess(store, time);
  await first(process, askWith('slow upload', startedAt));
  assert.equal((await process.claim(askWith('slow upload', startedAt), 'same')).status, 'running');
});

test('does not forget a request under way where keys are remembered for less time than it may take', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: startedAt };
  const process = startProcess(store, time, 1);
  const ask = askWith('short');
  const claim = await first(process, ask);
  time.now += 2000;
  assert.equal((await process.claim(ask, 'same')).status, 'running');
  await settle(store, claim, 'short');
  await first(process, ask);
});

test('an answer does not wait for its key when the store hangs', async (context) => {
  const store = await openEmbedded(context);
  const hanging: Store = { ...store };
  const process = startProcess(hanging);
  const claim = await first(process, askWith('hanging'));
  const commits: (() => void)[] = [];
  Object.assign(hanging, {
    commit: (unit: Parameters<Store['commit']>[0]) =>
      new Promise((resolve) => commits.push(() => resolve(store.commit(unit)))),
  });
  await claim.release(undefined);
  assert.equal((await startProcess(store).claim(askWith('hanging'), 'same')).status, 'running');
  Object.assign(hanging, { commit: store.commit });
  for (const commit of commits) commit();
  await first(process, askWith('hanging'));
});
