import type { Source } from '../../../src/config/senders.ts';
import type { HandedOn } from '../../../src/logic/threads/handler-protocol.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import type { Claimed, HandOn } from '../../../src/webhooks/receiving/hand-on.ts';
import { HandingOn, type HandingOnSettings } from '../../../src/webhooks/receiving/handing-on-engine.ts';
import type { DueWork } from '../../../src/work/work-engine.ts';
import { dueWork, everyLane } from '../../harness/due-work.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { type Failing, failing, openEmbedded } from '../../harness/stores.ts';
import { type FakeTime, fakeTime, watchedStore } from '../engine/fake-time.ts';
import { clear, done, message, put, sender } from './fixture.ts';

export const start = Date.UTC(2026, 2, 2);
let scenes = 0;

const settings: HandingOnSettings = {
  handOnInFlightMax: 64,
  senderInFlightDefault: 8,
  webhookBreakerFailuresMax: 10,
  webhookBreakerSeconds: 30,
  webhookBreakerSecondsMax: 600,
};

export type Begun = { readonly id: string; readonly at: number; readonly attempt: number };

export type Scene = {
  readonly store: Failing;
  readonly time: FakeTime;
  readonly engine: HandingOn;
  /** In the order in which they began. */
  readonly begun: Begun[];
  readonly observed: Observation[];
  /** Reads of what is due. */
  readonly looks: () => number;
  /** So many of them fail from now on. */
  readonly loseReads: (count: number) => void;
  /** Milliseconds from now. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
};

export type SceneOptions = {
  readonly senders?: readonly Source[];
  readonly settings?: Partial<HandingOnSettings>;
  readonly lanes?: DueWork['lanes'];
  /** Begins with the messages of the one before, and at its time. */
  readonly keep?: boolean;
};

export const embedded = await openEmbedded();

/** All scenes share a store: each begins with the messages of the others gone, on a later day. */
export async function scene(
  handOn: (claimed: Claimed, time: FakeTime, signal: AbortSignal) => Promise<HandedOn>,
  options: SceneOptions = {},
): Promise<Scene> {
  if (options.keep !== true) {
    await clear(embedded);
    scenes += 1;
  }
  const { store: watched, rest } = watchedStore(embedded);
  let looks = 0;
  let lostReads = 0;
  const counted: Store = {
    ...watched,
    plan(query) {
      const plan = watched.plan(query);
      const rows: typeof plan.rows = (position, limit) => {
        looks += 1;
        lostReads -= 1;
        if (lostReads >= 0) throw new StoreUnavailable('a read of the test', { retryAfterSeconds: 1 });
        return plan.rows(position, limit);
      };
      return { ...plan, rows };
    },
  };
  const store = failing(counted);
  const time = fakeTime(start + scenes * 86_400_000, rest);
  const begun: Begun[] = [];
  const observed: Observation[] = [];
  const handed: HandOn = (claimed, signal) => {
    begun.push({ id: claimed.received.id, at: time.clock(), attempt: claimed.attempt });
    return handOn(claimed, time, signal);
  };
  const senders = options.senders ?? [sender('billing')];
  const services = servicesOver(store, {
    clock: time.clock,
    settings: { ...settings, ...options.settings },
    observe: (observation) => void observed.push(observation),
  });
  const work = dueWork({ timers: time.timers, lanes: options.lanes ?? everyLane });
  const engine = new HandingOn(services, work, senders, ({ handOn: { kind } }) =>
    kind === 'inbox' ? undefined : handed,
  );
  return {
    ...{ store, time, engine, begun, observed },
    looks: () => looks,
    loseReads: (count) => {
      lostReads = count;
    },
    pass: (ms) => time.passTo(time.clock() + ms),
    async close() {
      const closing = engine.close();
      await time.passTo(time.clock() + 10_000);
      await closing;
    },
  };
}

function passed(time: FakeTime, ms: number): Promise<void> {
  return new Promise((resolve) => void time.timers.after(ms, resolve));
}

/** Answers after so long. */
export function after(ms: number, handedOn: (claimed: Claimed) => HandedOn = () => done) {
  return async (claimed: Claimed, time: FakeTime): Promise<HandedOn> => {
    await passed(time, ms);
    return handedOn(claimed);
  };
}

/** Ends when the program gives it up, and never before. */
export function stuck(_claimed: Claimed, _time: FakeTime, signal: AbortSignal): Promise<HandedOn> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ outcome: 'aborted' }));
  });
}

export async function arrive(
  scene: Scene,
  count: number,
  name = 'billing',
  prefix = `rec_${name}`,
): Promise<void> {
  const at = scene.time.clock();
  const ids = Array.from({ length: count }, (_, index) => `${prefix}_${String(index).padStart(5, '0')}`);
  for (let from = 0; from < count; from += 1000) {
    const some = ids.slice(from, from + 1000).map((id) => message(id, at, { sender: name }));
    await put(scene.store, ...some);
  }
}

export function statusIs(value: string) {
  const field = { name: 'status', path: ['status'], type: 'string' } as const;
  return { op: 'eq', field, value } as const;
}
