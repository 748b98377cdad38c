/**
 * Ends a statement whose time is over. node:sqlite offers no interrupt, and terminating a thread does not stop the C code it
 * is in; but a function called from SQL may throw. `comity_tick()` is called for one row in 1024 (`tickSql`), too seldom
 * to cost anything.
 */
import type { DatabaseSync } from 'node:sqlite';

export type Deadline = {
  /** Starts the time of the next statement. */
  start(): void;
  /** Whether the last statement was ended for its time. */
  readonly passed: boolean;
};

export function installDeadline(database: DatabaseSync, timeoutMs: number): Deadline {
  let endsAt = 0;
  let passed = false;
  database.function('comity_tick', () => {
    if (performance.now() <= endsAt) return 1;
    passed = true;
    throw new Error('the time of the statement is over');
  });
  return {
    start() {
      endsAt = performance.now() + timeoutMs;
      passed = false;
    },
    get passed() {
      return passed;
    },
  };
}
