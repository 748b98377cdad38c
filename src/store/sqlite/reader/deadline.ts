/**
 * Ends a statement whose time is over, or whose store closes. node:sqlite offers no interrupt, and terminating a thread does not stop
 * the C code it is in; but a function called from SQL may throw. So the clock is read within the statement, by work done:
 * `comity_tick()` for one row in 16 and for every long row (`tickSql`), and within a search of a long text, which `comity_like` and
 * `comity_holds` do in JavaScript. SQLite's own GLOB and instr run only where text and pattern are short (compile/filter.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import { memoryBounds } from '../../../memory/bounds.ts';
import { OctetCache } from '../../../memory/octet-cache.ts';
import { createLikeMatcher, holds, type LikeMatcher } from '../../../model/like.ts';

export type Deadline = {
  /** Starts the time of the next statement. */
  start(): void;
  /** Whether the last statement was ended for its time. */
  readonly passed: boolean;
};

/** A pattern compiles to texts of its own length, and some octets for each of its signs. */
const octetsPerCharacter = 48;

/** @param cancelled one cell, shared with the thread that asks: any value but 0 ends the statement under way */
export function installDeadline(database: DatabaseSync, timeoutMs: number, cancelled: Int32Array): Deadline {
  let endsAt = Number.POSITIVE_INFINITY;
  let passed = false;
  const matchers = new OctetCache<LikeMatcher>({
    octetsMax: memoryBounds.likeMatchers.octets,
    octetsOf: (_, pattern) => octetsPerCharacter * pattern.length,
  });
  let lastPattern: string | undefined;
  let lastMatcher: LikeMatcher | undefined;

  function check(): void {
    if (performance.now() <= endsAt && Atomics.load(cancelled, 0) === 0) return;
    passed = true;
    throw new Error('the time of the statement is over');
  }

  function matcherOf(pattern: string): LikeMatcher {
    // Also the one that is too long to be kept besides others: it is asked for again for each row.
    if (lastMatcher !== undefined && pattern === lastPattern) return lastMatcher;
    let matcher = matchers.get(pattern);
    if (matcher === undefined) {
      matcher = createLikeMatcher(pattern, check);
      matchers.set(pattern, matcher);
    }
    lastPattern = pattern;
    lastMatcher = matcher;
    return matcher;
  }

  database.function('comity_tick', () => {
    check();
    return 1;
  });
  database.function('comity_like', { deterministic: true }, (text, pattern) => {
    check();
    return typeof text === 'string' ? Number(matcherOf(String(pattern))(text)) : null;
  });
  database.function('comity_holds', { deterministic: true }, (text, term) => {
    check();
    return typeof text === 'string' ? Number(holds(text, String(term), check)) : null;
  });
  return {
    start() {
      endsAt = performance.now() + timeoutMs;
      passed = false;
      matchers.clear();
    },
    get passed() {
      return passed;
    },
  };
}
