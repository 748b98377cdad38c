/**
 * Looks at a table for what is due in it: after each change of the table, and every so often for what comes due by time. A look that
 * fails is made again soon.
 */
import { oneAtATime } from './one-at-a-time.ts';
import type { Store } from './store.ts';

export type TableLooksOptions = {
  readonly store: Pick<Store, 'onChange'>;
  readonly table: string;
  /** Between two looks that no change asked for. Milliseconds. */
  readonly everyMs: number;
  /** Does all there is to do. */
  readonly work: () => Promise<void>;
  /** Of a look that nobody waited for. */
  readonly onFailed: (error: unknown) => void;
};

export type TableLooks = {
  /** One look at a time; who asks meanwhile gets the one after it. Rejects as the work does. */
  look(): Promise<void>;
  /** Looks by itself from now on. */
  follow(): void;
  /** Stops, and waits for the look under way. */
  close(): Promise<void>;
};

const againMs = 1000;

export function createTableLooks({ store, table, everyMs, work, onFailed }: TableLooksOptions): TableLooks {
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let forget: (() => void) | undefined;
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
      forget = store.onChange(table, () => lookSoon(0));
      lookSoon(everyMs);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      forget?.();
      await look.idle();
    },
  };
}
