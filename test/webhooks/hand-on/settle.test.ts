/** Settlements over both stores, and the races that several processes, other writers and failing storage make of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandedOn } from '../../../src/logic/threads/handler-protocol.ts';
import type { Received } from '../../../src/model/received.ts';
import { type Change, keptRow, type Store, StoreUnavailable } from '../../../src/store/store.ts';
import type { Claimed, HandOn } from '../../../src/webhooks/receiving/hand-on.ts';
import { HandingOn } from '../../../src/webhooks/receiving/handing-on-engine.ts';
import { createSettle, type Run } from '../../../src/webhooks/receiving/settle-received.ts';
import { dueWork } from '../../harness/due-work.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines, failing } from '../../harness/stores.ts';
import {
  attemptsOf,
  content,
  done,
  failed,
  message,
  put,
  rewrite,
  sender,
  standing,
  table,
} from './fixture.ts';

const at = Date.UTC(2026, 2, 2);
const iso = (ms: number) => new Date(ms).toISOString();
let made = 0;
let runs = 0;

async function claimed(store: Store, parts: Partial<Received> = {}): Promise<Claimed> {
  made += 1;
  const received = message(`rec_${made}`, at, parts);
  await put(store, received);
  const row = await store.read(table, received.id);
  return {
    sender: sender('billing'),
    received,
    rev: row?.rev ?? 0,
    content: content(received.id),
    attempt: 1,
  };
}

/** Each began in a millisecond of its own. */
function run(handedOn: Exclude<HandedOn, { outcome: 'aborted' }>): Run {
  runs += 1;
  return { handedOn, startedAt: at + runs, endedAt: at + runs + 7 };
}

/** A run that wrote. */
function wrote(...changes: readonly Change[]): Run {
  return run({ outcome: 'processed', unit: { changes, events: [] }, statusCode: null });
}

function thing(id: string, expect: Change['expect'] = { absent: true }, doc = `{"id":"${id}"}`): Change {
  return { table: 'things', id, expect, next: keptRow(doc, null, at, at) };
}

function settler(store: Pick<Store, 'commit' | 'read' | 'lines'>) {
  return createSettle(store, () => 0.5);
}

async function revOf(store: Store, id: string): Promise<number> {
  return (await store.read('things', id))?.rev ?? 0;
}

type Case = readonly [title: string, run: (one: Store, other: Store) => Promise<void>];

const cases: readonly Case[] = [
  [
    'cuts the message of a failure at a whole character, and keeps nothing that a store refuses',
    async (store) => {
      const claim = await claimed(store);
      const failure = { ...failed('thrown'), message: `\0${'x'.repeat(498)}\u{1f600} and more` };
      await settler(store)(claim, run(failure), true);
      const [attempt] = await attemptsOf(store, claim.received.id);
      assert.equal(attempt?.message, 'x'.repeat(498));
    },
  ],
  [
    'commits what the handler wrote, the mark and the attempt together',
    async (store) => {
      const claim = await claimed(store);
      const event = { id: `evt_${claim.received.id}`, type: 'x.y', collection: '', owner: null, doc: '{}' };
      const unit = { changes: [thing(claim.received.id)], events: [{ ...event, createdAt: at }] };
      const before = await store.head();
      const one = run({ outcome: 'processed', statusCode: null, unit });
      const settled = await settler(store)(claim, one, true);
      assert.equal(settled.kind, 'settled');
      const now = await standing(store, claim.received.id);
      assert.deepEqual(
        [now?.status, now?.attempts, now?.scheduledAttempts, now?.dueAt, now?.updatedAt],
        ['processed', 1, 1, null, iso(one.endedAt)],
      );
      const rev = await revOf(store, claim.received.id);
      assert.equal((await store.read(table, claim.received.id))?.rev, rev);
      assert.equal((await store.head()).rev, rev);
      assert.notEqual(before.rev, rev);
      assert.deepEqual(await attemptsOf(store, claim.received.id), [
        {
          ...{ number: 1, outcome: 'processed', error: null, message: null, statusCode: null },
          ...{ trigger: 'automatic', at: iso(one.startedAt), durationMs: 7 },
        },
      ]);
    },
  ],
  [
    'writes once where two processes ran the same message',
    async (one, other) => {
      const claim = await claimed(one);
      await one.commit({ changes: [thing(`sum ${claim.received.id}`)], events: [] });
      const expect = { rev: await revOf(one, `sum ${claim.received.id}`) };
      const settled = await Promise.all([
        settler(one)(
          claim,
          wrote(thing(`sum ${claim.received.id}`, expect, '{"by":1}'), thing(`a ${claim.received.id}`)),
          true,
        ),
        settler(other)(
          claim,
          wrote(thing(`sum ${claim.received.id}`, expect, '{"by":2}'), thing(`b ${claim.received.id}`)),
          true,
        ),
      ]);
      assert.deepEqual(
        settled.map(({ kind }) => kind),
        ['settled', 'settled'],
      );
      const outcomes = settled.map((each) => (each.kind === 'settled' ? each.handedOn.outcome : each.kind));
      assert.deepEqual(outcomes.toSorted(), ['failed', 'processed']);
      const things = await Promise.all(
        ['a', 'b'].map((name) => one.read('things', `${name} ${claim.received.id}`)),
      );
      assert.equal(things.filter((row) => row !== undefined).length, 1);
      assert.equal((await standing(one, claim.received.id))?.status, 'processed');
      const logged = await attemptsOf(one, claim.received.id);
      assert.deepEqual(
        logged.map(({ error }) => error),
        [null, 'superseded'],
      );
    },
  ],
  [
    'keeps the mark that somebody set meanwhile and drops what the handler wrote',
    async (store) => {
      for (const status of ['processed', 'failed'] as const) {
        const claim = await claimed(store);
        const { id } = claim.received;
        await rewrite(store, id, { status, dueAt: null });
        await settler(store)(claim, wrote(thing(id)), true);
        assert.equal((await standing(store, id))?.status, status);
        assert.equal(await store.read('things', id), undefined);
        assert.deepEqual(
          (await attemptsOf(store, id)).map(({ error }) => error),
          ['superseded'],
        );
      }
    },
  ],
  [
    'leaves a message due when it was replayed meanwhile and this attempt failed, and processed when it did not',
    async (store) => {
      const failing = await claimed(store, { attempts: 2, scheduledAttempts: 2 });
      const dueAt = iso(at + 5000);
      await rewrite(store, failing.received.id, { dueAt, scheduledAttempts: 0 });
      await settler(store)(failing, run(failed('thrown', { permanent: true })), true);
      const { status, attempts, scheduledAttempts, ...now } =
        (await standing(store, failing.received.id)) ?? failing.received;
      assert.deepEqual([status, attempts, scheduledAttempts, now.dueAt], ['pending', 3, 0, dueAt]);
      const working = await claimed(store);
      await rewrite(store, working.received.id, { dueAt });
      await settler(store)(working, wrote(thing(working.received.id)), true);
      assert.equal((await standing(store, working.received.id))?.status, 'processed');
      assert.notEqual(await store.read('things', working.received.id), undefined);
    },
  ],
  [
    'asks for another run where what the handler read was changed, and fails by it when none is left',
    async (store) => {
      const claim = await claimed(store);
      const { id } = claim.received;
      await store.commit({ changes: [thing(id)], events: [] });
      const stale = wrote(thing(`other ${id}`), thing(id, { rev: 1 }));
      assert.deepEqual(await settler(store)(claim, stale, true), { kind: 'rerun' });
      assert.deepEqual(await standing(store, id), claim.received);
      assert.equal(await store.read('things', `other ${id}`), undefined);
      await settler(store)(claim, stale, false);
      const now = await standing(store, id);
      assert.deepEqual([now?.status, now?.lastError, now?.attempts], ['pending', 'superseded', 1]);
      assert.equal(await store.read('things', `other ${id}`), undefined);
    },
  ],
  [
    'fails by what the store refused of the handler, and says what it was',
    async (store) => {
      const user = (id: string): Change => ({
        ...{ table: 'users', id, expect: { absent: true } },
        next: { ...keptRow(`{"id":"${id}","email":"one@shop.example"}`, null, at, at), search: '' },
      });
      await store.commit({ changes: [user('usr_1')], events: [] });
      const claim = await claimed(store);
      const { id } = claim.received;
      const settled = await settler(store)(claim, wrote(thing(id), user('usr_2')), true);
      assert.equal(settled.kind === 'settled' && settled.handedOn.outcome, 'failed');
      const now = await standing(store, id);
      assert.deepEqual([now?.status, now?.lastError], ['pending', 'refused']);
      assert.deepEqual(
        (await attemptsOf(store, id)).map((each) => each.message),
        ['email is already in use'],
      );
      assert.equal(await store.read('things', id), undefined);
    },
  ],
  [
    'recognises its own unit where the answer of the store was lost',
    async (store) => {
      for (const one of [wrote(thing(`lost ${made}`)), run(failed('thrown'))]) {
        const claim = await claimed(store);
        const handle = failing(store);
        const settle = settler(handle);
        handle.fault = 'answer-lost';
        await assert.rejects(() => settle(claim, one, true), StoreUnavailable);
        handle.fault = 'none';
        const settled = await settle(claim, one, true);
        assert.equal(settled.kind, 'settled');
        assert.equal((await standing(store, claim.received.id))?.attempts, 1);
        assert.equal((await attemptsOf(store, claim.received.id)).length, 1);
      }
    },
  ],
  [
    'writes nothing for a message that was removed meanwhile',
    async (store) => {
      const claim = await claimed(store);
      const { id } = claim.received;
      await store.commit({ changes: [{ table, id, expect: { rev: claim.rev }, next: null }], events: [] });
      const settled = await settler(store)(claim, wrote(thing(id)), true);
      assert.equal(settled.kind === 'settled' && settled.received, undefined);
      assert.equal(await store.read('things', id), undefined);
      assert.equal((await attemptsOf(store, id)).length, 0);
    },
  ],
  [
    'lets two processes that hand on for the same sender write once for each message',
    async (one, other) => {
      const ids = Array.from({ length: 20 }, (_, index) => `rec_both_${index}`);
      await put(one, ...ids.map((id) => message(id, at, { sender: 'both' })));
      const written = await Promise.all([one, other].map((store, by) => handOnAll(store, by, ids)));
      assert.deepEqual(
        written.flat().toSorted(),
        ids.toSorted(),
        'each message is processed by one of them, and by one alone',
      );
      for (const id of ids) {
        const rows = await Promise.all([0, 1].map((by) => one.read('things', `${id} by ${by}`)));
        assert.equal(rows.filter((row) => row !== undefined).length, 1);
        assert.equal((await standing(one, id))?.status, 'processed');
      }
    },
  ],
  [
    'takes the next number where the log holds an attempt that the message does not count',
    async (store) => {
      const claim = await claimed(store);
      const { id } = claim.received;
      const row = keptRow('{"at":"","durationMs":0,"outcome":"failed","error":null}', null, at, at);
      const change = {
        table: 'received_attempts',
        id: `${id}/000001`,
        expect: { absent: true },
        next: row,
      } as const;
      await store.commit({ changes: [change], events: [] });
      await settler(store)(claim, run(done as Run['handedOn']), true);
      assert.equal((await standing(store, id))?.attempts, 2);
      assert.equal((await attemptsOf(store, id)).at(1)?.number, 2);
    },
  ],
];

/** Hands on until nothing of them is due any more. @returns the messages that it processed */
async function handOnAll(store: Store, by: number, ids: readonly string[]): Promise<readonly string[]> {
  const processed: string[] = [];
  const services = servicesOver(store, {
    settings: {
      handOnInFlightMax: 64,
      senderInFlightDefault: 8,
      webhookBreakerFailuresMax: 100,
      webhookBreakerSeconds: 1,
      webhookBreakerSecondsMax: 1,
    },
    observe: (fact) => {
      if (fact.kind === 'received-handed-on' && fact.outcome === 'processed') processed.push(fact.message);
    },
  });
  const handOn: HandOn = async (claim) => {
    const changes = [thing(`${claim.received.id} by ${by}`)];
    return { outcome: 'processed', statusCode: null, unit: { changes, events: [] } };
  };
  const engine = new HandingOn(services, dueWork(), [sender('both')], () => handOn);
  await engine.start();
  for (const id of ids) {
    while ((await standing(store, id))?.status === 'pending') await new Promise((next) => setImmediate(next));
  }
  await engine.drain(5000);
  return processed;
}

for (const [name, open] of engines) {
  test(`settling on ${name}`, async (context) => {
    const [one, other] = await open(context);
    for (const [title, check] of cases) await context.test(title, () => check(one, other));
  });
}
