/** The times of jobs, with a clock that the test turns: missed, late, skipped, replaced and changed ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DeclaredJob, type JobTiming, jobTimes } from '../../src/config/jobs.ts';
import { createScheduler, jobStatesTable, stateOf } from '../../src/jobs/scheduler.ts';
import { byId } from '../../src/model/filter.ts';
import { type Received, receivedDocument } from '../../src/model/received.ts';
import type { Observation, Observe } from '../../src/observe/observation.ts';
import { keptRow, type Store } from '../../src/store/store.ts';
import { receivedCollection } from '../../src/webhooks/receiving/received-tables.ts';
import { servicesOver } from '../harness/services-over.ts';
import { engines } from '../harness/stores.ts';
import { type FakeTime, fakeTime, watchedStore } from '../webhooks/engine/fake-time.ts';

const hour = 3_600_000;
const start = Date.UTC(2026, 2, 2, 0, 30);
const hourly: JobTiming = { cron: '0 * * * *', timeZone: 'UTC' };

function jobOf(parts: Partial<DeclaredJob> = {}): DeclaredJob {
  return {
    ...{ name: 'hourly', description: '', timing: hourly, ifMissed: 'run' },
    source: {
      ...{ name: 'job:hourly', schedule: [5], inFlightMax: 1 },
      handOn: { kind: 'job', of: 'hourly', timeoutMs: undefined },
    },
    ...parts,
  };
}

let lastId = 0;

async function startedIn(
  store: Store,
  time: FakeTime,
  rest: () => Promise<void>,
  job?: DeclaredJob,
  observe: Observe = (observation) => assert.fail(JSON.stringify(observation)),
) {
  const newId = () => String(++lastId).padStart(6, '0');
  const services = servicesOver(store, { clock: time.clock, newId, observe });
  const jobs = new Map(job === undefined ? [] : [[job.name, job]]);
  const scheduler = createScheduler(services, jobs, () => undefined, time.timers);
  await scheduler.start();
  await rest();
  return scheduler;
}

async function runs(store: Store): Promise<readonly Received[]> {
  const plan = store.plan({
    ...{ table: receivedCollection.name, filter: { op: 'and', filters: [] }, sort: byId, limit: 100 },
  });
  return (await plan.rows({ from: 'start' })).map(({ doc }) => JSON.parse(doc) as Received);
}

async function conclude(store: Store, parts: Partial<Received>, at: number): Promise<void> {
  const last = (await runs(store)).at(-1) ?? assert.fail('there is no run');
  const row = (await store.read(receivedCollection.name, last.id)) ?? assert.fail();
  const next = keptRow(receivedDocument({ ...last, ...parts }), null, row.createdAt, at);
  const change = { table: receivedCollection.name, id: last.id, expect: { rev: row.rev }, next };
  assert.equal((await store.commit({ changes: [change], events: [] })).outcome, 'committed');
}

for (const [engine, open] of engines) {
  test(`creates each run once, whichever process comes first (${engine})`, async (context) => {
    const [one, other] = await open(context);
    const watched = [watchedStore(one), watchedStore(other)] as const;
    const rest = async () => void (await Promise.all(watched.map((each) => each.rest())));
    const time = fakeTime(start, rest);
    const job = jobOf();
    const schedulers = [
      await startedIn(watched[0].store, time, rest, job),
      await startedIn(watched[1].store, time, rest, job),
    ];
    for (let count = 1; count <= 3; count += 1) {
      await time.passTo(start + count * hour);
      const all = await runs(one);
      assert.deepEqual(
        all.map(({ dedupeKey }) => dedupeKey),
        ['01', '02', '03'].slice(0, count).map((at) => `2026-03-02T${at}:00:00.000Z`),
      );
      await conclude(one, { status: 'processed', dueAt: null }, time.clock());
    }
    await Promise.all(schedulers.map((each) => each.close()));
  });

  test(`runs once for all missed times, or not at all (${engine})`, async (context) => {
    const [store] = await open(context);
    const watched = watchedStore(store);
    const begun = async (now: number, job?: DeclaredJob) => {
      const time = fakeTime(now, watched.rest);
      await (await startedIn(watched.store, time, watched.rest, job)).close();
      return (await runs(store)).map(({ dedupeKey }) => dedupeKey);
    };
    const key = '2026-03-02T05:00:00.000Z';
    assert.deepEqual(await begun(start, jobOf()), []);
    assert.deepEqual(await begun(start + 5 * hour, jobOf()), [key]);
    await conclude(store, { status: 'processed', dueAt: null }, start + 5 * hour);
    assert.deepEqual(await begun(start + 9 * hour, jobOf({ ifMissed: 'skip' })), [key]);
    // A declaration that changed, or was away, has missed nothing.
    const often: JobTiming = { everyMs: 60_000 };
    assert.deepEqual(await begun(start + 20 * hour, jobOf({ timing: often })), [key]);
    assert.deepEqual(await begun(start + 21 * hour), [key]);
    assert.equal(await store.read(jobStatesTable, 'hourly'), undefined);
    assert.deepEqual(await begun(start + 30 * hour, jobOf()), [key]);
  });

  test(`waits for a run that is under way, with the last of its times (${engine})`, async (context) => {
    const [store] = await open(context);
    const watched = watchedStore(store);
    const time = fakeTime(start, watched.rest);
    const scheduler = await startedIn(watched.store, time, watched.rest, jobOf());
    await time.passTo(start + 3 * hour);
    assert.equal((await runs(store)).length, 1);
    const row = (await store.read(jobStatesTable, 'hourly')) ?? assert.fail();
    assert.equal(stateOf(row).waitingFor, '2026-03-02T03:00:00.000Z');
    await conclude(store, { status: 'failed', dueAt: null }, time.clock());
    await time.passTo(time.clock() + 10_000);
    assert.deepEqual(
      (await runs(store)).map(({ dedupeKey }) => dedupeKey),
      ['2026-03-02T01:00:00.000Z', '2026-03-02T03:00:00.000Z'],
    );
    // This one waits for a further attempt, which the next time replaces.
    await conclude(store, { attempts: 1, dueAt: new Date(start + 90 * hour).toISOString() }, time.clock());
    await time.passTo(start + 4 * hour);
    const [, replaced, last] = await runs(store);
    assert.deepEqual([replaced?.status, replaced?.dueAt], ['failed', null]);
    assert.deepEqual([last?.status, last?.dedupeKey], ['pending', '2026-03-02T04:00:00.000Z']);
    await scheduler.close();
  });
}

for (const [engine, open] of engines) {
  test(`sets a next run again that a clock ahead of the time had set (${engine})`, async (context) => {
    const [store] = await open(context);
    const watched = watchedStore(store);
    const begin = async (now: number) => {
      const time = fakeTime(now, watched.rest);
      const seen: Observation[] = [];
      const observe = (observation: Observation) => void seen.push(observation);
      const scheduler = await startedIn(watched.store, time, watched.rest, jobOf(), observe);
      return { time, seen, scheduler };
    };
    const keys = async () => (await runs(store)).map(({ dedupeKey }) => dedupeKey);
    const nextRunAt = async () =>
      stateOf((await store.read(jobStatesTable, 'hourly')) ?? assert.fail()).nextRunAt;
    // A minute ahead is no reason, nor is the hour that a run of this time was created for.
    await (await begin(start + hour / 2 - 30_000)).scheduler.close();
    for (const now of [start + hour / 2 - 60_000, start]) {
      const early = await begin(now);
      await early.scheduler.close();
      assert.deepEqual([early.seen, await nextRunAt()], [[], '2026-03-02T01:00:00.000Z']);
    }
    await (await begin(start + 75 * hour)).scheduler.close();
    assert.equal(await nextRunAt(), '2026-03-05T04:00:00.000Z');
    const set = await begin(start);
    const rescheduled = {
      ...{ kind: 'job-rescheduled', job: 'hourly' },
      ...{ from: '2026-03-05T04:00:00.000Z', to: '2026-03-02T01:00:00.000Z' },
    };
    assert.deepEqual([set.seen, await nextRunAt()], [[rescheduled], '2026-03-02T01:00:00.000Z']);
    // The run of the wrong time still waits: the next time replaces it.
    await set.time.passTo(start + hour);
    assert.deepEqual(await keys(), ['2026-03-05T03:00:00.000Z', '2026-03-02T01:00:00.000Z']);
    await set.scheduler.close();
  });

  test(`notices within minutes that its own clock was set back (${engine})`, async (context) => {
    const [store] = await open(context);
    const watched = watchedStore(store);
    const time = fakeTime(start, watched.rest);
    const seen: Observation[] = [];
    let aheadMs = 72 * hour;
    const clock = () => time.clock() + aheadMs;
    const observe = (observation: Observation) => void seen.push(observation);
    const scheduler = await startedIn(watched.store, { ...time, clock }, watched.rest, jobOf(), observe);
    aheadMs = 0;
    await time.passTo(start + 10 * 60_000);
    assert.deepEqual(
      seen.map(({ kind }) => kind),
      ['job-rescheduled'],
    );
    await time.passTo(start + hour);
    assert.deepEqual(
      (await runs(store)).map(({ dedupeKey }) => dedupeKey),
      ['2026-03-02T01:00:00.000Z'],
    );
    await scheduler.close();
  });
}

test('the last time until a moment counts in milliseconds', () => {
  const quarter = jobTimes({ cron: '*/15 * * * *', timeZone: 'UTC' });
  for (const [text, expected] of [
    ['2026-01-01T10:15:00.000Z', '2026-01-01T10:15:00.000Z'],
    ['2026-01-01T10:14:59.999Z', '2026-01-01T10:00:00.000Z'],
    ['2026-01-01T10:15:00.001Z', '2026-01-01T10:15:00.000Z'],
  ] as const) {
    assert.equal(new Date(quarter.lastUntil(Date.parse(text)) ?? 0).toISOString(), expected);
  }
});
