/** Leases of lanes: who sends for what, while processes come, go, die and stand still. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { Store } from '../../src/store/store.ts';
import type { KnownEndpoint } from '../../src/webhooks/sending/known-endpoint.ts';
import { createLanes, lanesTable } from '../../src/work/lane-leases.ts';
import { divide, type Lanes, laneCount, laneOf } from '../../src/work/lanes.ts';
import type { Timers } from '../../src/work/timers.ts';
import { engines, failing, openEmbedded } from '../harness/stores.ts';
import { type FakeTime, fakeTime, watchedStore } from '../webhooks/engine/fake-time.ts';

const leaseMs = 25_000;
const timeoutMs = 15_000;
/** In which attempts may begin, counted from a renewal. */
const ownMs = leaseMs - timeoutMs * 1.125;

/** An endpoint of each lane. */
const endpoints: readonly string[] = (() => {
  const found = new Map<number, string>();
  for (let at = 0; found.size < laneCount; at += 1) found.set(laneOf(`ep_${at}`), `ep_${at}`);
  return [...found.values()];
})();

/** That there are endpoints is all that lanes want to know. */
const someEndpoints = { all: () => [{} as KnownEndpoint], onChange: () => () => undefined };

const alone = { holder: { host: 'alone', pid: 1, startedAt: 0 }, isAlive: () => true, hasEnded: () => false };

function services(store: Store, { clock }: FakeTime) {
  const settings = { webhookLeaseMs: leaseMs, webhookTimeoutMs: timeoutMs };
  return { store, clock, settings, observe: () => undefined };
}

type Process = { readonly lanes: Lanes; readonly stop: () => void; readonly go: () => void };

/** Processes on one machine of their own each, which can be made to stand still. */
function world(time: FakeTime, alive: Set<number> = new Set(), ended: Set<string> = new Set()) {
  return async (store: Store, pid: number, host = `host${pid}`, worker?: string): Promise<Process> => {
    alive.add(pid);
    let stands = false;
    const late: (() => void)[] = [];
    const timers: Timers = {
      after: (ms, call) => time.timers.after(ms, () => (stands ? late.push(call) : call())),
      monotonic: time.clock,
    };
    const standing = { ...store, onChange: hearing };
    function hearing(table: string, call: () => void): () => void {
      return store.onChange(table, () => stands || call());
    }
    const process = {
      // Workers start with their process.
      holder: { host, pid, startedAt: worker === undefined ? time.clock() : 0, worker },
      isAlive: (asked: number) => alive.has(asked),
      hasEnded: (asked: string) => ended.has(asked),
    };
    const lanes = await createLanes(services(standing, time), process, someEndpoints, timers);
    return {
      lanes,
      stop: () => {
        stands = true;
      },
      go: () => {
        stands = false;
        for (const call of late.splice(0)) call();
      },
    };
  };
}

const held = ({ lanes }: Process): number => endpoints.filter((id) => lanes.owns(id)).length;

function assertApart(...processes: readonly Process[]): void {
  for (const id of endpoints) {
    const owners = processes.filter(({ lanes }) => lanes.owns(id)).length;
    assert.ok(owners <= 1, `${id} is sent for by ${owners} processes`);
  }
}

for (const [engine, open] of engines) {
  test(`lanes are shared out as processes come, go and die, on ${engine}`, async (context: TestContext) => {
    const [one, other] = await open(context);
    const first = watchedStore(one);
    const second = watchedStore(other);
    const time = fakeTime(1_000_000, async () => {
      await first.rest();
      await second.rest();
      await first.rest();
    });
    const start = world(time);
    const pass = async (ms: number) => {
      const end = time.clock() + ms;
      while (time.clock() < end) {
        await time.passTo(Math.min(end, time.clock() + 1000));
        assertApart(...processes);
      }
    };
    /** Notices of a real database need real time, of which the clock of the test knows nothing. */
    const passUntil = async (isSo: () => boolean) => {
      for (let seconds = 0; seconds < 15 && !isSo(); seconds += 1) await pass(1000);
    };
    const processes: Process[] = [await start(first.store, 1)];
    const [a] = processes;
    assert.ok(a !== undefined);
    assert.equal(held(a), laneCount);

    const b = await start(second.store, 2);
    processes.push(b);
    // The other process hears of it by the store, or at its next renewal.
    await passUntil(() => held(a) === 32 && held(b) === 32);
    assert.deepEqual([held(a), held(b)], [32, 32]);

    const c = await start(first.store, 3);
    processes.push(c);
    await passUntil(() => Math.min(held(a), held(b), held(c)) >= 20);
    assert.deepEqual([held(a), held(b), held(c)].sort(), [20, 22, 22]);

    await b.lanes.close();
    assert.equal(held(b), 0);
    await passUntil(() => held(a) === 32 && held(c) === 32);
    assert.deepEqual([held(a), held(c)], [32, 32]);

    // It dies: after its lease, and not before, its lanes are the other's.
    c.stop();
    await pass(leaseMs - 6000);
    assert.equal(held(a), 32);
    await pass(12_000);
    assert.equal(held(a), laneCount);

    // It was only standing still: it takes up sending as a new process, and nobody else has lost a lane meanwhile.
    assert.equal(held(c), 0);
    c.go();
    await passUntil(() => held(a) === 32 && held(c) === 32);
    assert.deepEqual([held(a), held(c)], [32, 32]);
    for (const { lanes } of processes) await lanes.close();
  });
}

const { store, rest } = watchedStore({ ...(await openEmbedded()), shared: true });

function scene() {
  const time = fakeTime(1_000_000, rest);
  const alive = new Set<number>();
  const ended = new Set<string>();
  return { time, alive, ended, start: world(time, alive, ended) };
}

test('a process alone on its store sends for all, and writes nothing', async () => {
  const { time } = scene();
  const version = await store.version('webhook_lanes');
  const alone = await world(time)({ ...store, shared: false }, 1);
  assert.equal(held(alone), laneCount);
  assert.equal(await store.version('webhook_lanes'), version);
});

test('a process begins nothing that could outlast its lease', async () => {
  const { time, start } = scene();
  const process = await start(store, 1);
  const renewedAt = time.clock();
  process.stop();
  await time.passTo(renewedAt + ownMs - 1);
  assert.equal(held(process), laneCount);
  await time.passTo(renewedAt + ownMs);
  assert.equal(held(process), 0);
  let told = 0;
  process.lanes.onChange(() => {
    told += 1;
  });
  process.go();
  await time.passTo(time.clock() + 100);
  assert.equal(held(process), laneCount);
  assert.equal(told, 1);
  await process.lanes.close();
});

test('a lane is not handed on before what is under way in it is over', async () => {
  const { time, start } = scene();
  const first = await start(store, 1);
  for (const id of endpoints) first.lanes.hold(id);
  const second = await start(store, 2);
  await time.passTo(time.clock() + 6000);
  assert.deepEqual([held(first), held(second)], [32, 0]);
  for (const id of endpoints) first.lanes.release(id);
  await time.passTo(time.clock() + 100);
  assert.deepEqual([held(first), held(second)], [32, 32]);
  await first.lanes.close();
  await second.lanes.close();
});

test('a process that is dead on the same host is taken over at once', async () => {
  const { time, alive, start } = scene();
  const first = await start(store, 1, 'here');
  first.stop();
  alive.delete(1);
  const second = await start(store, 2, 'here');
  assert.equal(held(second), laneCount);
  second.stop();
  // The same number again: a restarted container.
  await time.passTo(time.clock() + 10);
  const third = await start(store, 2, 'here');
  assert.equal(held(third), laneCount);
  // The former life, were it alive after all in a namespace of its own, comes back as another process and both go on.
  second.go();
  await time.passTo(time.clock() + 10_000);
  assert.deepEqual([held(second), held(third)], [32, 32]);
  await second.lanes.close();
  await third.lanes.close();
});

test('begins nothing in a lane that it gives away while the unit that does so is under way', async () => {
  const { time, start } = scene();
  let first: Process | undefined;
  let given = 0;
  const commit: Store['commit'] = async (unit) => {
    const assignment = unit.changes.find(({ id }) => id === 'assignment')?.next?.doc;
    const { lanes } = JSON.parse(assignment ?? '{"lanes":[]}') as {
      readonly lanes: readonly (string | null)[];
    };
    const freed = endpoints.filter((id) => lanes.length > 0 && lanes[laneOf(id)] === null);
    given += freed.length;
    for (const id of freed) assert.equal(first?.lanes.owns(id) ?? false, false, `${id} is given away`);
    return store.commit(unit);
  };
  first = await start({ ...store, commit }, 1);
  assert.equal(held(first), laneCount);
  const second = await start(store, 2);
  await time.passTo(time.clock() + 10_000);
  assert.deepEqual([held(first), held(second), given >= 32], [32, 32, true]);
  await first.lanes.close();
  await second.lanes.close();
});

test('a worker that has ended is taken over at once, and one that has not is left its lanes', async () => {
  const { time, ended, start } = scene();
  const first = await start(store, 1, 'here', 'first');
  const second = await start(store, 1, 'here', 'second');
  await time.passTo(time.clock() + 10_000);
  assert.deepEqual([held(first), held(second)], [32, 32]);
  first.stop();
  ended.add('first');
  const third = await start(store, 1, 'here', 'third');
  await time.passTo(time.clock() + 6000);
  assert.deepEqual([held(second), held(third)], [32, 32]);
  assertApart(second, third);
  await second.lanes.close();
  await third.lanes.close();
});

test('a unit whose answer is lost leads to no second owner, and to no lane without one', async () => {
  const { time, start } = scene();
  const broken = failing(store);
  const first = await start(broken, 1);
  const second = await start(store, 2);
  for (const fault of ['answer-lost', 'lost', 'none', 'answer-lost', 'none'] as const) {
    broken.fault = fault;
    await time.passTo(time.clock() + 12_000);
    assertApart(first, second);
  }
  assert.deepEqual([held(first), held(second)], [32, 32]);
  await first.lanes.close();
  await second.lanes.close();
});

test('refuses a lease that is no longer than an attempt', async () => {
  const { time } = scene();
  const settings = { webhookLeaseMs: 15_000, webhookTimeoutMs: 15_000 };
  const short = { ...services(store, time), settings };
  await assert.rejects(createLanes(short, alone, someEndpoints, time.timers), RangeError);
});

test('leases nothing before there is an endpoint, and then does', async () => {
  const { time } = scene();
  const endpoints: KnownEndpoint[] = [];
  let tell = (): void => undefined;
  const shared = { ...store, shared: true };
  const before = await shared.version(lanesTable);
  const directory = {
    all: () => endpoints,
    onChange: (listener: () => void) => {
      tell = listener;
      return () => undefined;
    },
  };
  const lanes = await createLanes(services(shared, time), alone, directory, time.timers);
  assert.equal(await shared.version(lanesTable), before);
  assert.equal(lanes.owns('ep_a'), false);
  const come = new Promise<void>((resolve) => lanes.onChange(resolve));
  endpoints.push({} as KnownEndpoint);
  tell();
  await come;
  assert.equal(lanes.owns('ep_a'), true);
  await lanes.close();
});

test('every endpoint has one lane, and lanes are about equally full', () => {
  const counts = new Array<number>(laneCount).fill(0);
  for (let at = 0; at < 6400; at += 1) {
    const lane = laneOf(`ep_${at.toString(32).padStart(26, '0')}`);
    counts[lane] = (counts[lane] ?? 0) + 1;
  }
  assert.equal(laneOf('ep_01h455vb4pex5vsknk084sn02q'), laneOf('ep_01h455vb4pex5vsknk084sn02q'));
  assert.ok(Math.min(...counts) > 60 && Math.max(...counts) < 145, counts.join(' '));
});

test('however processes take turns, the lanes end with all, each at most its share', () => {
  const processes = ['a', 'b', 'c', 'd', 'e'];
  const initial = fc.array(fc.constantFrom(...processes, null, 'dead'), { minLength: 64, maxLength: 64 });
  fc.assert(
    fc.property(initial, fc.integer({ min: 1, max: 5 }), (lanes, count) => {
      const live = new Set(processes.slice(0, count));
      const giving = new Map(processes.map((name) => [name, new Set<number>() as ReadonlySet<number>]));
      let now: readonly (string | null)[] = lanes;
      for (let round = 0; round < 4; round += 1) {
        for (const me of live) {
          const facts = { lanes: now, me, live, giving: giving.get(me) ?? new Set(), isBusy: () => false };
          const next = divide(facts);
          for (const [lane, owner] of now.entries()) {
            const taken = next.lanes[lane] !== owner && owner !== me && owner !== null;
            assert.ok(!taken || !live.has(owner ?? ''), 'took a lane of a process that lives');
          }
          giving.set(me, next.giving);
          now = next.lanes;
        }
      }
      for (const name of live) {
        const own = now.filter((owner) => owner === name).length;
        assert.ok(own <= Math.ceil(64 / count));
      }
      assert.ok(now.every((owner) => owner !== null && live.has(owner)));
    }),
    { numRuns: 50 },
  );
});
