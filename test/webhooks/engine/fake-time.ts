/** Time that passes when a test says so: a clock, and timers that ring on it in order. */
import type { Store } from '../../../src/store/store.ts';
import type { Timers } from '../../../src/work/timers.ts';

export type FakeTime = {
  readonly clock: () => number;
  readonly timers: Timers;
  /** When the next timer rings; undefined: none is set. */
  next(): number | undefined;
  /** Lets time pass up to the moment, ringing what is due on the way, each at its own time. Waits for what each sets off. */
  passTo(time: number): Promise<void>;
};

type Timer = { readonly at: number; readonly call: () => void };

/** @param rest resolves when everything that a ring set off has come to rest */
export function fakeTime(start: number, rest: () => Promise<void> = turnOver): FakeTime {
  let now = start;
  let made = 0;
  const set = new Map<number, Timer>();

  function first(): readonly [id: number, timer: Timer] | undefined {
    let found: readonly [id: number, timer: Timer] | undefined;
    for (const entry of set) if (found === undefined || entry[1].at < found[1].at) found = entry;
    return found;
  }

  return {
    clock: () => now,
    timers: {
      after(delayMs, call) {
        made += 1;
        const id = made;
        set.set(id, { at: now + Math.max(0, Math.ceil(delayMs)), call });
        return () => set.delete(id);
      },
      monotonic: () => now,
    },
    next: () => first()?.[1].at,
    async passTo(time) {
      await rest();
      for (let due = first(); due !== undefined && due[1].at <= time; due = first()) {
        now = Math.max(now, due[1].at);
        // What rings at one time rings together: storage takes all of it at once, as it would.
        for (const [id, { at, call }] of [...set]) {
          if (at > now || !set.delete(id)) continue;
          call();
        }
        await rest();
      }
      now = Math.max(now, time);
    },
  };
}

/** Lets everything run that waits for nothing outside. */
export async function turnOver(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

export type Watched<S> = {
  readonly store: S;
  /** Resolves when nothing has been asked of the store for some turns of the event loop. */
  readonly rest: () => Promise<void>;
};

/** A handle that knows when it is being waited for: storage takes true time, whatever the clock of a test says. */
export function watchedStore<S extends Store>(store: S): Watched<S> {
  let pending = 0;
  let asked = 0;
  let restedAt = 0;
  function watch<T>(answer: T): T {
    asked += 1;
    if (answer instanceof Promise) {
      pending += 1;
      const over = () => {
        pending -= 1;
      };
      answer.then(over, over);
    }
    return answer;
  }
  return {
    store: {
      ...store,
      commit: (unit) => watch(store.commit(unit)),
      read: (table, id) => watch(store.read(table, id)),
      plan(query) {
        const plan = store.plan(query);
        return { ...plan, rows: (position, limit) => watch(plan.rows(position, limit)) };
      },
    },
    async rest() {
      await turnOver();
      // Attempts that end are settled a turn later.
      await turnOver();
      // Most rings of a long time set nothing off.
      if (pending === 0 && asked === restedAt) return;
      for (let quiet = 0, before = asked; quiet < 3; quiet += 1) {
        await turnOver();
        if (pending > 0 || asked !== before) quiet = -1;
        before = asked;
      }
      restedAt = asked;
    },
  };
}
