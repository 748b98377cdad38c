/**
 * Due work of a clock that was ahead and was set right, on both stores: it waits no longer than its schedule says, from the moment at which a
 * program with the right time looks.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { schedulesDefault } from '../../src/config/webhook-schedules.ts';
import type { Delivery } from '../../src/model/delivery.ts';
import { byId } from '../../src/model/filter.ts';
import { keptRow, type Row, type Store } from '../../src/store/store.ts';
import { dueDeliveries } from '../../src/webhooks/sending/endpoint-queue.ts';
import { deliveriesCollection } from '../../src/webhooks/sending/sending-tables.ts';
import { DueRows, isAhead } from '../../src/work/due-queue.ts';
import { engines } from '../harness/stores.ts';
import { fakeTime, watchedStore } from '../webhooks/engine/fake-time.ts';
import { answered, openSender } from '../webhooks/engine/sender.ts';

const hourMs = 3_600_000;
const start = Date.UTC(2026, 2, 2);
const aheadMs = 72 * hourMs;

type Scene = { readonly store: Store; readonly rest: () => Promise<void> };

async function sending({ store, rest }: Scene, now: number, clockMs = () => 0) {
  const time = fakeTime(now, rest);
  const clock = () => time.clock() + clockMs();
  const begun: { readonly event: string; readonly at: number }[] = [];
  const sender = await openSender({
    ...{ store, clock, timers: time.timers },
    async answer({ delivery }) {
      begun.push({ event: delivery.eventId, at: clock() });
      return answered(503);
    },
  });
  return { time, begun, sender };
}

async function deliveries(store: Store): Promise<readonly Row[]> {
  const { name: table } = deliveriesCollection;
  const plan = store.plan({ table, filter: { op: 'and', filters: [] }, sort: byId, limit: 100 });
  return plan.rows({ from: 'start' });
}

for (const [engine, open] of engines) {
  test(`sends what a clock ahead had made or put off, by its schedule from now on (${engine})`, async (context) => {
    const [opened] = await open(context);
    const scene = watchedStore(opened);
    const early = await sending(scene, start + aheadMs);
    await early.sender.endpoint('ep_1');
    await early.sender.engine.start();
    const [failed = ''] = await early.sender.events(1);
    // The third delay is half an hour.
    await early.time.passTo(start + aheadMs + 0.2 * hourMs);
    assert.equal(early.begun.length, 3);
    await early.sender.close();
    const [made = ''] = await early.sender.events(1);

    const { time, begun, sender } = await sending(scene, start);
    await sender.engine.start();
    await time.passTo(start + 1000);
    assert.deepEqual(begun, [{ event: made, at: start }]);
    const rescheduled = sender.observed.flatMap((each) =>
      each.kind === 'work-rescheduled' ? [[each.queue, each.rows]] : [],
    );
    assert.deepEqual(rescheduled, [['ep_1', 2]]);
    const [third = 0] = schedulesDefault.standard.slice(2);
    await time.passTo(start + hourMs);
    const [again] = begun.filter(({ event }) => event === failed);
    assert.ok(
      again !== undefined && again.at > start && again.at <= start + 1.1 * third * 1000,
      `${again?.at}`,
    );
    await sender.close();
  });

  test(`looks behind hundreds of rows that wait by their schedule (${engine})`, async (context) => {
    const [opened] = await open(context);
    const scene = watchedStore(opened);
    const early = await sending(scene, start + 2 * hourMs);
    await early.sender.endpoint('ep_1');
    await early.sender.events(250);
    await early.sender.close();
    // Due before and after those of the clock ahead, of which none is among the last hundred.
    const waiting = Array.from({ length: 300 }, (_, n) => {
      const dueAt = new Date(start + (n % 2 === 0 ? 1 : 40) * hourMs + n).toISOString();
      const doc = { id: `w${n}`, endpointId: 'ep_1', eventId: `w${n}`, dueAt, nextAttemptAt: dueAt };
      const next = keptRow(JSON.stringify(doc), null, start - 1000, start - 1000);
      return { table: deliveriesCollection.name, id: doc.id, expect: { absent: true } as const, next };
    });
    assert.equal((await opened.commit({ changes: waiting, events: [] })).outcome, 'committed');

    const { time, begun, sender } = await sending(scene, start);
    await sender.engine.start();
    await time.passTo(start + 301_000);
    const rows = sender.observed.flatMap((each) => (each.kind === 'work-rescheduled' ? [each.rows] : []));
    assert.equal(
      rows.reduce((sum, each) => sum + each, 0),
      250,
    );
    assert.ok(Math.max(...rows) <= 100, 'a unit sets at most a hundred');
    assert.ok(begun.length > 0);
    await sender.close();
  });

  test(`notices within minutes that its own clock was set back, with work under way (${engine})`, async (context) => {
    const [opened] = await open(context);
    let ahead = aheadMs;
    const { time, begun, sender } = await sending(watchedStore(opened), start, () => ahead);
    await sender.endpoint('ep_1');
    await sender.engine.start();
    await sender.events(12);
    await time.passTo(start + 60_000);
    assert.ok(
      sender.observed.some(({ kind }) => kind === 'endpoint-left-alone'),
      'it is left alone',
    );
    ahead = 0;
    const before = begun.length;
    await time.passTo(start + 20 * 60_000);
    assert.ok(begun.length > before, 'the endpoint is tried again');
    const rows = await deliveries(opened);
    for (const { doc } of rows) {
      const { dueAt } = JSON.parse(doc) as Delivery;
      assert.ok(Date.parse(dueAt ?? '') < start + 3 * hourMs, String(dueAt));
    }
    await sender.close();
  });

  test(`leaves what is being sent to its attempt while its clock is set back (${engine})`, async (context) => {
    const [opened] = await open(context);
    const scene = watchedStore(opened);
    let ahead = aheadMs;
    const time = fakeTime(start, scene.rest);
    const clock = () => time.clock() + ahead;
    const begun: string[] = [];
    let fail: (() => void) | undefined;
    const sender = await openSender({
      ...{ store: scene.store, clock, timers: time.timers },
      async answer({ delivery }) {
        begun.push(delivery.eventId);
        if (begun.length === 2) await new Promise<void>((resolve) => (fail = resolve));
        return answered(500);
      },
    });
    await sender.endpoint('ep_1');
    await sender.engine.start();
    await sender.events(1);
    await time.passTo(start + 1);
    const [slow = ''] = await sender.events(1);
    await time.passTo(start + 2);
    assert.equal(begun[1], slow);
    ahead = 0;
    sender.wake('ep_1');
    await time.passTo(start + 3);
    assert.ok(sender.observed.some(({ kind }) => kind === 'work-rescheduled'));
    fail?.();
    await time.passTo(start + 1000);
    assert.equal(begun.filter((event) => event === slow).length, 1, 'it is not sent again at once');
    const row = (await deliveries(opened)).find(({ doc }) => doc.includes(slow));
    const { scheduledAttemptCount, attemptCount, dueAt } = JSON.parse(row?.doc ?? '') as Delivery;
    assert.deepEqual([attemptCount, scheduledAttemptCount], [1, 1]);
    assert.ok(Date.parse(dueAt ?? '') > start + 1000, String(dueAt));
    await sender.close();
  });

  test(`sets right the last rows of a queue, and only times of the future that the future set (${engine})`, async (context) => {
    const [store] = await open(context);
    const now = start;
    const row = (id: string, updatedAt: number, dueAt: number | null, nextAttemptAt = dueAt) => {
      const text = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
      const doc = {
        id,
        endpointId: 'ep_1',
        eventId: id,
        dueAt: text(dueAt),
        nextAttemptAt: text(nextAttemptAt),
      };
      return {
        ...{ table: deliveriesCollection.name, id, expect: { absent: true } as const },
        next: keptRow(JSON.stringify({ ...doc, updatedAt: text(updatedAt) }), null, updatedAt, updatedAt),
      };
    };
    const cases = [
      // A minute's difference is no reason.
      ['a', row('a', now + 60_000, now + 2 * hourMs), undefined],
      ['b', row('b', now + 60_001, now + 60_001 + 1000), now + 1000],
      // A right clock has set the time since; that of the change stays ahead.
      ['c', row('c', now + aheadMs, now + hourMs), undefined],
      ['d', row('d', now + aheadMs, now + aheadMs), now],
      ['e', row('e', now + aheadMs, now + aheadMs - 1, now + aheadMs), now],
      ['f', row('f', now - hourMs, now + 40 * hourMs), undefined],
    ] as const;
    const made = await store.commit({ changes: cases.map(([, change]) => change), events: [] });
    assert.equal(made.outcome, 'committed');
    const rows = new DueRows(store, dueDeliveries, 'ep_1');
    const last = await rows.last(100);
    assert.deepEqual(
      (await rows.last(2)).map(({ id }) => id),
      last.slice(-2).map(({ id }) => id),
    );
    const ahead = last.filter((each) => isAhead(each, now));
    assert.equal(
      (await store.commit({ changes: rows.setRight(ahead, now), events: [] })).outcome,
      'committed',
    );
    for (const [id, change, wanted] of cases) {
      const found = await store.read(deliveriesCollection.name, id);
      const delivery = JSON.parse(found?.doc ?? '') as Delivery;
      const before = JSON.parse(change.next.doc) as Delivery;
      if (wanted === undefined) assert.deepEqual(delivery, before, id);
      else {
        assert.equal(Date.parse(delivery.dueAt ?? ''), wanted, id);
        assert.equal(found?.updatedAt, now);
        const isScheduled = before.dueAt === before.nextAttemptAt;
        assert.equal(delivery.nextAttemptAt, isScheduled ? delivery.dueAt : before.nextAttemptAt, id);
      }
    }
  });
}
