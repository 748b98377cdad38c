/** Settlements over both stores, and the races that several processes and failing storage make of them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import { type Delivery, deliveryDocument, triggerOf } from '../../../src/model/delivery.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { keptRow, type Store, StoreUnavailable } from '../../../src/store/store.ts';
import type { Attempted, Claim, Settled, Verdict } from '../../../src/webhooks/sending/conclude-delivery.ts';
import type { KnownEndpoint } from '../../../src/webhooks/sending/known-endpoint.ts';
import { attemptsTable, deliveriesCollection } from '../../../src/webhooks/sending/sending-tables.ts';
import { type Attempt, createSettle } from '../../../src/webhooks/sending/settle-delivery.ts';
import { attemptsPage } from '../../../src/work/settlement.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines, failing } from '../../harness/stores.ts';
import { answer, attempted, delivery, failure, isoTime, madeAt } from '../policy/fixture.ts';

const owner = 'usr_1';
const table = deliveriesCollection.name;

const endpoint: Endpoint = {
  id: 'ep_1',
  url: 'https://receiver.example/hooks',
  events: ['*'],
  scheme: 'standard',
  status: 'enabled',
  createdAt: isoTime(madeAt),
  updatedAt: isoTime(madeAt),
};
const known: KnownEndpoint = {
  endpoint,
  rev: 1,
  owner,
  principal: undefined,
  url: new URL(endpoint.url),
  secrets: [],
};

let way: 'alone' | 'together' = 'alone';

/** A settler with everything that it told. */
function settler(store: Pick<Store, 'commit' | 'read' | 'lines'>) {
  const facts: Observation[] = [];
  const notes: Verdict[] = [];
  const disabled: string[] = [];
  const services = servicesOver(store, {
    observe: (fact) => facts.push(fact),
    settings: { webhookRetryAfterSecondsMax: 86_400, webhookSnippetCharactersMax: 100 },
  });
  const health: Parameters<typeof createSettle>[2] = {
    note: (_, verdict) => notes.push(verdict),
    disable: async ({ endpoint: { id } }, reason) => {
      disabled.push(`${id} ${reason}`);
    },
  };
  const { alone, together } = createSettle(services, schedulesDefault, health, () => 0.5);
  /** As the engine does: alone only what could not be settled together. */
  async function settleAsOne(claim: Claim, outcome: Attempted): Promise<Settled> {
    const settled = await new Promise<Settled | undefined>((done) => together(claim, outcome, done));
    return settled ?? alone(claim, outcome);
  }
  return { settle: way === 'alone' ? alone : settleAsOne, together, facts, notes, disabled };
}

let made = 0;

/** Puts a delivery that was made just now. */
async function claimed(store: Store, parts: Partial<Delivery> = {}): Promise<Claim> {
  made += 1;
  const put = delivery({ id: `dlv_${made}`, ...parts });
  const rev = await write(store, put, undefined);
  return { delivery: put, rev, owner, endpoint: known, trigger: triggerOf(put) };
}

async function write(store: Store, next: Delivery, rev: number | undefined): Promise<number> {
  const expect = rev === undefined ? ({ absent: true } as const) : { rev };
  const row = keptRow(deliveryDocument(next), owner, madeAt, Date.parse(next.updatedAt));
  const commit = await store.commit({ changes: [{ table, id: next.id, expect, next: row }], events: [] });
  assert.equal(commit.outcome, 'committed');
  return commit.outcome === 'committed' ? commit.rev : 0;
}

async function standing(store: Store, id: string): Promise<Delivery | undefined> {
  const row = await store.read(table, id);
  return row === undefined ? undefined : (JSON.parse(row.doc) as Delivery);
}

async function attempts(store: Store, id: string): Promise<readonly Attempt[]> {
  const { docs } = await attemptsPage(store, attemptsTable, id, { afterNumber: 0, limit: 1000 });
  return docs.map((doc) => JSON.parse(doc) as Attempt);
}

type Case = readonly [title: string, run: (one: Store, other: Store) => Promise<void>];

const cases: readonly Case[] = [
  [
    'writes the delivery and the attempt down together, with their owner',
    async (one) => {
      const claim = await claimed(one);
      const { settle, notes, facts } = settler(one);
      const outcome = answer(503, { snippet: 'no\0t now' });
      const settled = await settle(claim, attempted(outcome));
      assert.deepEqual(await standing(one, claim.delivery.id), settled.delivery);
      assert.equal(settled.delivery?.status, 'not_delivered');
      const [attempt, ...others] = await attempts(one, claim.delivery.id);
      assert.equal(others.length, 0);
      assert.equal(attempt?.statusCode, 503);
      assert.equal(attempt?.responseSnippet, 'not now');
      assert.equal((await one.read('attempts', `${claim.delivery.id}/000001`))?.owner, owner);
      assert.deepEqual(notes, [settled.verdict]);
      assert.deepEqual(facts, [
        {
          kind: 'delivery-attempted',
          endpoint: 'ep_1',
          delivery: claim.delivery.id,
          outcome: 'failed',
          status: 503,
          failure: undefined,
          durationMs: 5,
        },
      ]);
    },
  ],
  [
    'keeps a resend that came during a failing attempt, and drops it after one that was answered with 2xx',
    async (one, other) => {
      for (const status of [500, 200]) {
        const claim = await claimed(one);
        const dueAt = isoTime(madeAt + 300);
        await write(other, { ...claim.delivery, status: 'pending', dueAt, updatedAt: dueAt }, claim.rev);
        const { delivery: next } = await settler(one).settle(claim, attempted(answer(status)));
        assert.deepEqual(await standing(other, claim.delivery.id), next);
        assert.equal(next?.dueAt, status === 200 ? null : dueAt);
        assert.equal(next?.status, status === 200 ? 'delivered' : 'pending');
        assert.equal((await attempts(one, claim.delivery.id)).length, 1);
      }
    },
  ],
  [
    'drops what it knows of a delivery that was removed, and still tells what the endpoint did',
    async (one, other) => {
      const claim = await claimed(one);
      const removal = { table, id: claim.delivery.id, expect: { rev: claim.rev }, next: null };
      await other.commit({ changes: [removal], events: [] });
      const { settle, notes } = settler(one);
      const settled = await settle(claim, attempted(answer(500)));
      assert.equal(settled.delivery, undefined);
      assert.equal(notes[0]?.health, 'failed');
      assert.deepEqual(await attempts(one, claim.delivery.id), []);
    },
  ],
  [
    'counts an attempt once whose settlement was made although its answer was lost',
    async (one) => {
      const claim = await claimed(one);
      const store = failing(one);
      const { settle, notes } = settler(store);
      const outcome = attempted(answer(500));
      store.fault = 'answer-lost';
      await assert.rejects(settle(claim, outcome), StoreUnavailable);
      assert.equal(notes.length, 0);
      store.fault = 'none';
      const settled = await settle(claim, outcome);
      assert.equal(settled.delivery?.attemptCount, 1);
      assert.equal(settled.delivery?.scheduledAttemptCount, 1);
      assert.deepEqual(await standing(one, claim.delivery.id), settled.delivery);
      assert.equal((await attempts(one, claim.delivery.id)).length, 1);
      assert.equal(notes.length, 1);
    },
  ],
  [
    'finds its attempt again behind one of another process',
    async (one, other) => {
      const claim = await claimed(one);
      await settler(other).settle(claim, attempted(answer(502)));
      const store = failing(one);
      const { settle } = settler(store);
      const outcome = attempted(failure('timeout'), madeAt + 2000);
      const lostSecond: Store['commit'] = async (unit) => {
        const commit = await one.commit(unit);
        if (commit.outcome === 'superseded') return commit;
        throw new StoreUnavailable('the answer was lost', { retryAfterSeconds: 1 });
      };
      await assert.rejects(settler({ ...one, commit: lostSecond }).settle(claim, outcome), StoreUnavailable);
      const settled = await settle(claim, outcome);
      assert.equal(settled.delivery?.attemptCount, 2);
      assert.deepEqual(
        (await attempts(one, claim.delivery.id)).map(({ error }) => error),
        [null, 'timeout'],
      );
    },
  ],
  [
    'writes an attempt down later that storage could not take at first',
    async (one) => {
      const claim = await claimed(one);
      const store = failing(one);
      const { settle } = settler(store);
      store.fault = 'lost';
      await assert.rejects(settle(claim, attempted(answer(200))), StoreUnavailable);
      store.fault = 'none';
      assert.equal((await settle(claim, attempted(answer(200)))).delivery?.status, 'delivered');
    },
  ],
  [
    'logs every attempt and moves the schedule once where several processes made the same one',
    async (one, other) => {
      const claims = await Promise.all(Array.from({ length: 20 }, () => claimed(one)));
      await Promise.all(
        claims.flatMap((claim) => [
          settler(one).settle(claim, attempted(answer(500), madeAt + 1000)),
          settler(other).settle(claim, attempted(answer(502), madeAt + 1001)),
          settler(other).settle(claim, attempted(failure('reset'), madeAt + 1002)),
        ]),
      );
      for (const {
        delivery: { id },
      } of claims) {
        const next = await standing(one, id);
        assert.equal(next?.attemptCount, 3);
        assert.equal(next?.scheduledAttemptCount, 1);
        const logged = await attempts(other, id);
        assert.deepEqual(
          logged.map(({ number }) => number),
          [1, 2, 3],
        );
        assert.deepEqual(new Set(logged.map(({ statusCode }) => statusCode)), new Set([500, 502, null]));
      }
    },
  ],
  [
    'delivers what one of two processes delivered, whichever is written down first',
    async (one, other) => {
      const claims = await Promise.all(Array.from({ length: 20 }, () => claimed(one)));
      await Promise.all(
        claims.flatMap((claim, at) => {
          const good = () => settler(one).settle(claim, attempted(answer(200), madeAt + 1000));
          const bad = () => settler(other).settle(claim, attempted(answer(500), madeAt + 1001));
          return at % 2 === 0 ? [good(), bad()] : [bad(), good()];
        }),
      );
      for (const {
        delivery: { id },
      } of claims) {
        const next = await standing(one, id);
        assert.equal(next?.status, 'delivered');
        assert.equal(next?.dueAt, null);
        assert.equal(next?.attemptCount, 2);
      }
    },
  ],
  [
    'writes nothing of an attempt that the program broke off, and no attempt of an expunged event',
    async (one) => {
      const claim = await claimed(one);
      const store = failing(one);
      const { settle, notes, facts } = settler(store);
      const aborted = await settle(claim, attempted(failure('aborted')));
      assert.equal(aborted.delivery, claim.delivery);
      assert.equal(store.commits, 0);
      const expunged = await settle(claim, attempted({ kind: 'expunged' }));
      assert.equal(expunged.delivery?.lastError, 'expunged');
      assert.deepEqual(await standing(one, claim.delivery.id), expunged.delivery);
      assert.deepEqual(await attempts(one, claim.delivery.id), []);
      assert.deepEqual(facts, []);
      assert.ok(notes.every(({ health }) => health === 'ignored'));
    },
  ],
  [
    'keeps nothing that a receiver said to a delivery that was expunged meanwhile',
    async (one, other) => {
      const claim = await claimed(one);
      await settler(other).settle(claim, attempted({ kind: 'expunged' }));
      const { delivery: next } = await settler(one).settle(
        claim,
        attempted(answer(500, { snippet: 'echo' })),
      );
      assert.equal(next?.dueAt, null);
      assert.equal((await attempts(one, claim.delivery.id))[0]?.responseSnippet, '');
    },
  ],
  [
    'disables an endpoint that answered 410, and not before its delivery is written down',
    async (one) => {
      const claim = await claimed(one);
      const store = failing(one);
      const { settle, disabled } = settler(store);
      store.fault = 'lost';
      await assert.rejects(settle(claim, attempted(answer(410))), StoreUnavailable);
      assert.deepEqual(disabled, []);
      store.fault = 'none';
      const { delivery: next } = await settle(claim, attempted(answer(410)));
      assert.deepEqual(disabled, ['ep_1 gone']);
      assert.equal(next?.dueAt, null);
    },
  ],
  [
    'takes the next number where the log has an attempt that the delivery does not count',
    async (one) => {
      const claim = await claimed(one);
      const stray = { expect: { absent: true } as const, next: keptRow('{}', owner, madeAt, madeAt) };
      const id = `${claim.delivery.id}/000001`;
      await one.commit({ changes: [{ table: 'attempts', id, ...stray }], events: [] });
      const { delivery: next } = await settler(one).settle(claim, attempted(answer(200)));
      assert.equal(next?.status, 'delivered');
      assert.equal(next?.attemptCount, 2);
    },
  ],
  [
    'lists the attempts of one delivery, oldest first, by pages',
    async (one) => {
      const claim = await claimed(one, { id: `dlv_list_${way}` });
      const neighbour = await claimed(one, { id: `dlv_list_${way}0` });
      await settler(one).settle(neighbour, attempted(answer(200)));
      let current = claim;
      for (let number = 1; number <= 12; number += 1) {
        const outcome: Attempted = attempted(answer(500 + number), madeAt + number * 1000);
        const { delivery: next } = await settler(one).settle(current, outcome);
        const row = await one.read(table, claim.delivery.id);
        assert.ok(next !== undefined && row !== undefined);
        current = { ...claim, delivery: next, rev: row.rev };
      }
      const first = await attemptsPage(one, attemptsTable, claim.delivery.id, { afterNumber: 0, limit: 5 });
      const second = await attemptsPage(one, attemptsTable, claim.delivery.id, { afterNumber: 5, limit: 50 });
      assert.ok(first.more && !second.more);
      const codes = [...first.docs, ...second.docs].map((doc) => (JSON.parse(doc) as Attempt).statusCode);
      assert.deepEqual(
        codes,
        Array.from({ length: 12 }, (_, at) => 501 + at),
      );
    },
  ],
];

for (const [engine, open] of engines) {
  test(`settles on ${engine}`, async (context: TestContext) => {
    const [one, other] = await open(context);
    for (way of ['alone', 'together'] as const)
      for (const [title, run] of cases) await context.test(`${way}: ${title}`, () => run(one, other));
  });

  test(`settles attempts of one turn in one unit on ${engine}`, async (context: TestContext) => {
    const [one] = await open(context);
    const store = failing(one);
    const { together, facts } = settler(store);
    const claims = await Promise.all(Array.from({ length: 70 }, () => claimed(one)));
    const settle = (claim: Claim) =>
      new Promise<Settled | undefined>((done) => together(claim, attempted(answer(200)), done));
    const settled = await Promise.all(claims.map(settle));
    assert.equal(store.commits, 2, 'the first unit is full');
    assert.equal(facts.length, 70);
    for (const [at, { delivery }] of claims.entries()) {
      assert.deepEqual(await standing(one, delivery.id), settled[at]?.delivery);
      assert.equal((await attempts(one, delivery.id)).length, 1);
    }
  });

  test(`settles no attempt of a unit of which one is superseded on ${engine}`, async (context: TestContext) => {
    const [one, other] = await open(context);
    const { together, facts } = settler(one);
    const claims = await Promise.all(Array.from({ length: 3 }, () => claimed(one)));
    const [, second] = claims;
    assert.ok(second !== undefined);
    await write(other, { ...second.delivery, updatedAt: isoTime(madeAt + 1) }, second.rev);
    const settle = (claim: Claim) =>
      new Promise<Settled | undefined>((done) => together(claim, attempted(answer(200)), done));
    assert.deepEqual(await Promise.all(claims.map(settle)), [undefined, undefined, undefined]);
    assert.deepEqual(facts, []);
    for (const { delivery } of claims) {
      assert.equal((await standing(one, delivery.id))?.status, 'pending');
      assert.deepEqual(await attempts(one, delivery.id), []);
    }
  });
}
