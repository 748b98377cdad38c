/** Checks a table for due work: after each change, and periodically for what becomes due by time. Retries failures soon. */
import type { Store } from './store.ts';

export type TableLooksOptions = {
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
