/** Changes of tables: the listeners of a store (`onChange`, `onAppend` of the contract), and looks at a table for due work. */
import type { Store } from './store.ts';

/** Apart from the store, because they exist before it. */
export class ChangeListeners {
  readonly #byTable = new Map<string, Set<() => void>>();

  /** @returns a function that removes the listener */
  add(table: string, listener: () => void): () => void {
    // Wrapped, so that a listener added twice is called twice and removed once.
    const call = (): void => listener();
    let listeners = this.#byTable.get(table);
    if (listeners === undefined) {
      listeners = new Set();
      this.#byTable.set(table, listeners);
    }
    listeners.add(call);
    return () => {
      this.#byTable.get(table)?.delete(call);
    };
  }

  call(tables: Iterable<string>): void {
    for (const table of tables) {
      for (const listener of this.#byTable.get(table) ?? []) listener();
    }
  }
}

type TableLooksOptions = {
  readonly store: Pick<Store, 'onChange'>;
  readonly table: string;
  /** Milliseconds between two checks without a change. */
  readonly everyMs: number;
  readonly work: () => Promise<void>;
  /** Receives the error of a check that has no caller. */
  readonly onFailed: (error: unknown) => void;
};

export type TableLooks = {
  /** Checks now, one check at a time; a call during a check shares the next one. Rejects as the work does. */
  look(): Promise<void>;
  follow(): void;
  close(): Promise<void>;
};

const againMs = 1000;

/** Checks a table for due work: after each change, and periodically for what becomes due by time. Retries failures soon. */
export function createTableLooks({ store, table, everyMs, work, onFailed }: TableLooksOptions): TableLooks {
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let stopListening: (() => void) | undefined;
  const look = oneAtATime(async () => {
    if (!closed) await work();
  });

  function lookSoon(afterMs: number): void {
    clearTimeout(timer);
    if (closed) return;
    timer = setTimeout(() => {
      look().then(
        () => lookSoon(everyMs),
        (error) => {
          onFailed(error);
          lookSoon(againMs);
        },
      );
    }, afterMs).unref();
  }

  return {
    look,
    follow() {
      stopListening = store.onChange(table, () => lookSoon(0));
      lookSoon(everyMs);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      stopListening?.();
      await look.idle();
    },
  };
}

/** Runs work that handles everything pending, one run at a time; all calls during a run share the next one. */
type OneAtATime = {
  (): Promise<void>;
  /** Resolves when no run is active or pending, whatever their outcome. */
  idle(): Promise<void>;
};

export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    const run = work().finally(() => {
      if (running === run) running = undefined;
    });
    running = run;
    return run;
  }

  function ask(): Promise<void> {
    if (running === undefined) return start();
    next ??= running.then(runNext, runNext);
    return next;
  }

  /** Runs in the same turn as the end of the run before, so that nothing comes in between. */
  function runNext(): Promise<void> {
    next = undefined;
    return start();
  }

  return Object.assign(ask, {
    async idle() {
      while (running !== undefined || next !== undefined) await (next ?? running)?.catch(() => undefined);
    },
  });
}
