/**
 * Operations of several processes on one store (§4.1): two instances of the room share it. What a client sees of one process is in
 * test/wire/resources/prefer-async.test.ts.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import type { Response } from '../../src/http/message.ts';
import { deletionMarksTable, markChange } from '../../src/kernel/operations/deletion-marks.ts';
import { createOperations, type Operations } from '../../src/kernel/operations/operations.ts';
import {
  aheadMs,
  leaseMs,
  operationRequestsTable,
  operationsTable,
} from '../../src/kernel/operations/stored-request.ts';
import { type Ask, type Companion, noPreferences } from '../../src/kernel/resource.ts';
import { createIdSource } from '../../src/model/id.ts';
import { startsMax } from '../../src/model/starts-max.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { keptRow, type Store, StoreUnavailable } from '../../src/store/store.ts';
import { embeddedOnly, engines, failing, openEmbedded } from '../harness/stores.ts';
import { askOf } from '../resources/ask.ts';

const startedAt = Date.UTC(2030, 0, 1);

/** A process: its room, what it was asked to carry out, and the gate at which it stands before it commits. */
type Process = {
  readonly operations: Operations;
  /** Ids of requests, in the order in which they were begun. */
  readonly begun: string[];
  readonly facts: Observation[];
  /** What carrying out waits for; resolved unless a test says otherwise. */
  gate: Promise<unknown>;
  /** Commits a part before the gate. */
  makesParts: boolean;
};

/** Time of every process of a test. */
type Time = { now: number };

function startProcess(context: TestContext, store: Store, time: Time): Process {
  const begun: string[] = [];
  const facts: Observation[] = [];
  const process: Process = {
    begun,
    facts,
    gate: Promise.resolve(),
    makesParts: false,
    operations: createOperations(
      {
        store,
        path: '/operations',
        newId: createIdSource(Date.now, () => randomInt(32)),
        clock: () => time.now,
        random: () => randomInt(32),
        observe: (fact) => facts.push(fact),
      },
      async (request, _principal, companions, operation) => {
        if (process.makesParts) await operation.progressed();
        begun.push(request.id);
        await process.gate;
        return makeThing(store, request.id, companions);
      },
    ),
  };
  context.after(() => process.operations.drain(0));
  return process;
}

/** The change: one thing of a new id each time, so that carrying out twice would show. */
async function makeThing(store: Store, id: string, companions: readonly Companion[]): Promise<Response> {
  const made = { outcome: 'made', created: true, location: `/things/${id}`, modifiedAt: null } as const;
  const doc = JSON.stringify({ of: id });
  const commit = await store.commit({
    changes: [
      {
        table: 'things',
        id: newId(),
        expect: { absent: true },
        next: keptRow(doc, null, startedAt, startedAt),
      },
      ...companions.map((companion) => companion({ ...made, doc, validated: false })),
    ],
    events: [],
  });
  if (commit.outcome === 'committed') return { status: 201, fields: [], content: doc };
  return { status: 409, fields: [], content: '{"error":"superseded"}' };
}

const newId = createIdSource(Date.now, () => randomInt(32));

const askLater = (): Ask => askOf({ preferences: { ...noPreferences, respondAsync: true }, now: startedAt });

/** Ids of the accepted requests, which those that carry them out see, by operation. */
const requestIds = new Map<string, string | undefined>();

async function accept(process: Process): Promise<string> {
  const asked = askLater();
  const ask = { ...asked, request: { ...asked.request, id: newId() } };
  const { location } = await process.operations.accept(ask, Buffer.from('{}'));
  const id = location.slice('/operations/'.length);
  requestIds.set(id, ask.request.id);
  return id;
}

test('accepts requests up to a bound in octets, and again when those were carried out', async (context) => {
  const store = await openEmbedded(context);
  const process = startProcess(context, store, { now: startedAt });
  const held = gate();
  process.gate = held.closed;
  const large = Buffer.alloc(12 * 1024 * 1024, '0');
  const acceptLarge = () => process.operations.accept(askLater(), large);
  let accepted = 0;
  await assert.rejects(async () => {
    for (; accepted < 10; accepted += 1) await acceptLarge();
  }, StoreUnavailable);
  assert.ok(accepted >= 1 && accepted < 6, `${accepted} of 12 MiB were accepted within 64 MiB`);
  held.open();
  await process.operations.idle();
  await acceptLarge();
  await process.operations.idle();
});

/** One round of looking for what was left, and the end of what it took up. */
async function lookRound({ operations }: Process): Promise<void> {
  operations.resume();
  await operations.idle();
}

async function statusOf(store: Store, id: string): Promise<unknown> {
  const row = await store.read(operationsTable, id);
  return row === undefined ? undefined : (JSON.parse(row.doc) as { status: unknown }).status;
}

async function thingsOf(store: Store): Promise<number> {
  return store.count('things', { op: 'always' });
}

async function requestsOf(store: Store): Promise<number> {
  return store.count(operationRequestsTable, { op: 'always' });
}

/** A promise and the way to resolve it. */
function gate(): { readonly closed: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { closed: promise, open: () => resolve() };
}

/** Accepts one operation, which goes on when `held` is opened. */
async function acceptHeld(process: Process) {
  const held = gate();
  process.gate = held.closed;
  return { held, id: await accept(process) };
}

/** What a process leaves that dies right after it accepted: a request, held, that nobody carries out. */
function deadProcess(context: TestContext, store: Store, time: Time): Process {
  const process = startProcess(context, store, time);
  process.gate = new Promise(() => undefined);
  return process;
}

for (const [engine, open] of engines) {
  test(`${engine}: a process leaves alone what another is carrying out`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const first = startProcess(context, one, time);
    const second = startProcess(context, other, time);
    const { held, id } = await acceptHeld(first);
    time.now += leaseMs - 1;
    await lookRound(second);
    assert.deepEqual(second.begun, []);
    held.open();
    await first.operations.idle();
    assert.equal(await statusOf(one, id), 'succeeded');
    assert.deepEqual([await thingsOf(one), await requestsOf(one)], [1, 0]);
  });

  test(`${engine}: what a dead process left is taken up when its lease has run out, by one of those alive`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const dead = deadProcess(context, one, time);
    const ids = await Promise.all(Array.from({ length: 25 }, () => accept(dead)));
    const alive = [startProcess(context, one, time), startProcess(context, other, time)];
    await Promise.all(alive.map(lookRound));
    assert.equal(await thingsOf(other), 0);
    time.now += leaseMs + 1;
    await Promise.all(alive.map(lookRound));
    const begun = alive.flatMap((process) => process.begun);
    assert.deepEqual([...begun].sort(), ids.map((id) => requestIds.get(id)).sort(), 'each was begun once');
    for (const id of ids) assert.equal(await statusOf(other, id), 'succeeded');
    assert.deepEqual([await thingsOf(other), await requestsOf(other)], [25, 0]);
  });

  test(`${engine}: a lease of a clock that was ahead has expired once the time is right, and one that is held is renewed`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const dead = deadProcess(context, one, time);
    const left = await accept(dead);
    const alive = startProcess(context, other, time);
    time.now = startedAt - aheadMs;
    await lookRound(alive);
    assert.deepEqual(alive.begun, [], 'clocks may differ');
    time.now -= 1;
    await lookRound(alive);
    assert.deepEqual([alive.begun, await statusOf(other, left)], [[requestIds.get(left)], 'succeeded']);

    const holder = startProcess(context, one, time);
    const { held, id } = await acceptHeld(holder);
    const before = await one.read(operationRequestsTable, id);
    time.now -= aheadMs + 1;
    holder.operations.resume();
    while ((await one.read(operationRequestsTable, id))?.rev === before?.rev)
      await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await one.read(operationRequestsTable, id))?.updatedAt, time.now);
    await lookRound(alive);
    assert.equal(alive.begun.length, 1, 'it is held');
    held.open();
    await holder.operations.idle();
    assert.equal(await statusOf(one, id), 'succeeded');
  });

  test(`${engine}: a process that lost its lease can no longer end the operation, nor make its change`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const slow = startProcess(context, one, time);
    const fast = startProcess(context, other, time);
    const { held, id } = await acceptHeld(slow);
    time.now += leaseMs + 1;
    const taken = gate();
    fast.gate = taken.closed;
    fast.operations.resume();
    while (fast.begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
    // The one that lost it comes first, while the one that has it has not ended.
    held.open();
    await slow.operations.idle();
    assert.equal(await statusOf(one, id), 'pending');
    assert.equal(await thingsOf(one), 0, 'its change went with its lease');
    taken.open();
    await fast.operations.idle();
    assert.equal(await statusOf(one, id), 'succeeded');
    assert.equal(await thingsOf(one), 1);
  });

  test(`${engine}: a lease is renewed while the operation runs, also when the renewal meets its end`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const first = startProcess(context, one, time);
    const second = startProcess(context, other, time);
    const { held, id } = await acceptHeld(first);
    for (let round = 0; round < 4; round += 1) {
      time.now += leaseMs / 2;
      const before = await one.read(operationRequestsTable, id);
      first.operations.resume();
      while ((await one.read(operationRequestsTable, id))?.rev === before?.rev) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await lookRound(second);
    }
    assert.deepEqual(second.begun, [], 'twice the time of a lease went by');
    time.now += leaseMs / 2;
    first.operations.resume();
    held.open();
    await first.operations.idle();
    assert.equal(await statusOf(one, id), 'succeeded');
    assert.equal(await thingsOf(one), 1);
  });

  test(`${engine}: what ends every process that begins it is given up after three, and a start that was given back does not count`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const id = await accept(deadProcess(context, one, time));
    for (let starts = 2; starts <= startsMax; starts += 1) {
      const stopping = deadProcess(context, other, time);
      const begin = async (process: Process): Promise<void> => {
        time.now += leaseMs + 1;
        process.operations.resume();
        while (process.begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
      };
      await begin(stopping);
      await stopping.operations.drain(0);
      await begin(deadProcess(context, one, time));
    }
    time.now += leaseMs + 1;
    const last = startProcess(context, other, time);
    await lookRound(last);
    assert.deepEqual([last.begun, last.facts.map(({ kind }) => kind)], [[], ['operation-failed']]);
    const { status, outcome } = JSON.parse((await one.read(operationsTable, id))?.doc ?? '');
    assert.deepEqual([status, outcome.code], ['failed', 'operation_given_up']);
    assert.match(outcome.error, /the program ended 3 times while it carried out the request/);
    assert.deepEqual([await thingsOf(one), await requestsOf(one)], [0, 0]);
  });

  test(`${engine}: starts that committed a part do not count, and three that committed none are given up with what is left`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const id = await accept(deadProcess(context, one, time));
    const decided = { state: 'decided', roots: 1 } as const;
    await one.commit({ changes: [markChange(id, id, startedAt, decided)], events: [] });
    const begin = async (makesParts: boolean): Promise<void> => {
      const process = deadProcess(context, other, time);
      process.makesParts = makesParts;
      time.now += leaseMs + 1;
      process.operations.resume();
      while (process.begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
    };
    for (let starts = 1; starts <= startsMax + 1; starts += 1) await begin(true);
    assert.equal(await statusOf(one, id), 'pending');
    for (let starts = 1; starts <= startsMax; starts += 1) await begin(false);
    time.now += leaseMs + 1;
    const last = startProcess(context, one, time);
    await lookRound(last);
    assert.deepEqual(last.begun, []);
    const { status, outcome } = JSON.parse((await one.read(operationsTable, id))?.doc ?? '');
    assert.deepEqual([status, outcome.code], ['failed', 'operation_given_up']);
    assert.match(
      outcome.error,
      /: a part of what refers to the resource may be deleted, .*; the same request/,
    );
    assert.equal(await one.count(deletionMarksTable, { op: 'always' }), 0);
  });

  test(`${engine}: what does not end within the drain is given back, and another process takes it at once`, async (context) => {
    const [one, other] = await open(context);
    const time = { now: startedAt };
    const stopping = startProcess(context, one, time);
    const { held, id } = await acceptHeld(stopping);
    await stopping.operations.drain(0);
    const next = startProcess(context, other, time);
    await lookRound(next);
    assert.deepEqual(next.begun, [requestIds.get(id)]);
    held.open();
    await stopping.operations.idle();
    assert.equal(await statusOf(other, id), 'succeeded');
    assert.equal(await thingsOf(other), 1, 'the one that gave it back made nothing');
    assert.deepEqual(stopping.facts, [], 'which is no fault');
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: what the store failed is tried again by the same process, and happens once`, async (context) => {
    for (const fault of ['lost', 'answer-lost'] as const) {
      const [one] = await open(context);
      const store = failing(one);
      const time = { now: startedAt };
      const process = startProcess(context, store, time);
      const { held, id } = await acceptHeld(process);
      store.fault = fault;
      held.open();
      await process.operations.idle();
      assert.equal(await statusOf(one, id), fault === 'lost' ? 'pending' : 'succeeded');
      assert.deepEqual(
        process.facts.map(({ kind }) => kind),
        ['operation-failed'],
      );
      store.fault = 'none';
      time.now += leaseMs + 1;
      await lookRound(process);
      assert.equal(await statusOf(one, id), 'succeeded', fault);
      assert.deepEqual([await thingsOf(one), await requestsOf(one)], [1, 0], fault);
    }
  });
}

test('what failed once is tried again in the next round, without waiting for the lease to run out', async (context) => {
  const store = failing({ ...(await openEmbedded(context)), shared: true });
  const process = startProcess(context, store, { now: startedAt });
  const { held, id } = await acceptHeld(process);
  store.fault = 'lost-once';
  held.open();
  await process.operations.idle();
  assert.equal(await statusOf(store, id), 'pending');
  await lookRound(process);
  assert.equal(await statusOf(store, id), 'succeeded');
  assert.equal(await thingsOf(store), 1);
});

test('a renewal whose answer was lost is recognised, and the operation still ends', async (context) => {
  const store = failing({ ...(await openEmbedded(context)), shared: true });
  const time = { now: startedAt };
  const process = startProcess(context, store, time);
  const { held, id } = await acceptHeld(process);
  const renew = async (): Promise<void> => {
    const { commits } = store;
    time.now += leaseMs / 2;
    process.operations.resume();
    while (store.commits === commits) await new Promise((resolve) => setImmediate(resolve));
  };
  const accepted = (await store.read(operationRequestsTable, id))?.rev;
  store.fault = 'answer-lost';
  await renew();
  const renewed = (await store.read(operationRequestsTable, id))?.rev;
  assert.notEqual(renewed, accepted);
  store.fault = 'none';
  await renew();
  await renew();
  assert.notEqual((await store.read(operationRequestsTable, id))?.rev, renewed, 'it is renewed again');
  held.open();
  await process.operations.idle();
  assert.equal(await statusOf(store, id), 'succeeded');
  assert.equal(process.begun.length, 1);
});

test('does not take what another took after both had found it', async (context) => {
  const store = { ...(await openEmbedded(context)), shared: true };
  const time = { now: startedAt };
  const id = await accept(deadProcess(context, store, time));
  time.now += leaseMs + 1;
  const found = gate();
  const goOn = gate();
  const late = startProcess(
    context,
    {
      ...store,
      read: async (table, row) => {
        found.open();
        await goOn.closed;
        return store.read(table, row);
      },
    },
    time,
  );
  late.operations.resume();
  await found.closed;
  const held = gate();
  const early = startProcess(context, store, time);
  early.gate = held.closed;
  early.operations.resume();
  while (early.begun.length === 0) await new Promise((resolve) => setImmediate(resolve));
  goOn.open();
  await late.operations.idle();
  assert.deepEqual(late.begun, []);
  held.open();
  await early.operations.idle();
  assert.equal(await statusOf(store, id), 'succeeded');
});

test('the only process of an embedded store takes its own back at once', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: startedAt };
  const ids: string[] = [];
  const dead = deadProcess(context, store, time);
  for (let at = 0; at < 25; at += 1) ids.push(await accept(dead));
  const restarted = startProcess(context, store, time);
  await lookRound(restarted);
  assert.deepEqual([...restarted.begun].sort(), ids.map((id) => requestIds.get(id)).sort());
  assert.equal(await thingsOf(store), 25);
});

test('ends an operation whose request the program cannot carry out as failed, and says why', async (context) => {
  const store = await openEmbedded(context);
  const process = startProcess(context, store, { now: startedAt });
  process.gate = Promise.reject(new TypeError('a mistake of the program'));
  process.gate.catch(() => undefined);
  const id = await accept(process);
  await process.operations.idle();
  assert.equal(await statusOf(store, id), 'failed');
  assert.equal(await requestsOf(store), 0, 'nobody tries it for ever');
  assert.deepEqual(
    process.facts.map((fact) => fact.kind === 'operation-failed' && fact.error instanceof TypeError),
    [true],
  );
});

test('forgets a request whose operation is no longer kept', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: startedAt };
  const dead = deadProcess(context, store, time);
  await accept(dead);
  assert.equal(await store.purge(operationsTable, startedAt + 1, 10), 1);
  const next = startProcess(context, store, time);
  await lookRound(next);
  assert.deepEqual(next.begun, []);
  assert.equal(await requestsOf(store), 0);
});

test('looks for what was left through an index, and stops looking when it drains', async (context) => {
  const store = await openEmbedded(context);
  const bounded: boolean[] = [];
  const watched: Store = {
    ...store,
    plan: (query) => {
      const plan = store.plan(query);
      bounded.push(plan.bounded);
      return plan;
    },
  };
  const time = { now: startedAt };
  const process = startProcess(context, watched, time);
  await lookRound(process);
  assert.deepEqual(bounded, [true]);
  await process.operations.drain(0);
  await accept(deadProcess(context, store, time));
  await lookRound(process);
  assert.deepEqual(process.begun, []);
});

test('a round that the store fails is observed, and the next one succeeds', async (context) => {
  const store = await openEmbedded(context);
  const time = { now: startedAt };
  await accept(deadProcess(context, store, time));
  const broken = failing(store);
  broken.fault = 'lost';
  const process = startProcess(context, broken, time);
  await lookRound(process);
  assert.deepEqual(
    process.facts.map(({ kind }) => kind),
    ['store-failed'],
  );
  broken.fault = 'none';
  await lookRound(process);
  assert.equal(await thingsOf(store), 1);
});
