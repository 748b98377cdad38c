/** Deletes rows older than their retention rule, in small steps, so that no step delays a commit for long. */
import type { Observe } from '../observe/observation.ts';
import type { Store } from './store.ts';

export type RetentionRule = { readonly table: string; readonly seconds: number };

/** Interval of the rounds; rows live at most this much longer than their rule. */
const roundMs = 60_000;
/** Rows deleted by one commit: about 10 ms of the writer's time. */
const rowsPerStepMax = 1000;

/** @returns a function that stops and waits for the step under way */
export function startRetention(
  store: Store,
  rules: readonly RetentionRule[],
  clock: () => number,
  observe: Observe,
): () => Promise<void> {
  let stopped = false;
  let round: Promise<void> = Promise.resolve();

  async function sweep(): Promise<void> {
    for (const { table, seconds } of rules) {
      let removed = rowsPerStepMax;
      let rows = 0;
      while (removed === rowsPerStepMax && !stopped) {
        removed = await store.purge(table, clock() - seconds * 1000, rowsPerStepMax);
        rows += removed;
      }
      if (rows > 0) observe({ kind: 'rows-purged', table, rows });
    }
  }

  const timer = setInterval(() => {
    round = round.then(sweep).catch((error) => observe({ kind: 'store-failed', what: 'retention', error }));
  }, roundMs);
  timer.unref();

  return async () => {
    stopped = true;
    clearInterval(timer);
    await round;
  };
}
