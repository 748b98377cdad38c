/**
 * Ends a statement at its deadline, or when its store closes. node:sqlite offers no interrupt, and terminating a thread does not stop C
 * code; but a function called from SQL may throw. So statements check the clock as they work: `comity_tick()` for one row in 16 and for
 * every long row (`tickSql`), and `comity_like` and `comity_holds`, which search long texts in JavaScript. SQLite's own GLOB and instr run
 * only on short texts and patterns (compile/filter.ts).
 * `comity_sum` adds exactly (aggregate.ts), and `comity_period` is the first day of a period (model/period.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import { memoryBounds } from '../../../memory/bounds.ts';
import { OctetCache } from '../../../memory/octet-cache.ts';
import { createLikeMatcher, holds, type LikeMatcher } from '../../../model/matches.ts';
import { type PeriodUnit, periodOf, type ZoneOffsets } from '../../../model/period.ts';
import { DecimalSum, octetsOfZone, zoneNow } from '../../aggregate.ts';

export type Deadline = {
  /** Starts the time of the next statement. */
  start(): void;
  /** True if the last statement reached its deadline. */
  readonly passed: boolean;
};

/** A compiled pattern holds texts of its own length, and some octets per wildcard. */
const octetsPerCharacter = 48;

/** @param cancelled one cell, shared with the calling thread: any value but 0 ends the current statement */
export function installDeadline(database: DatabaseSync, timeoutMs: number, cancelled: Int32Array): Deadline {
  let endsAt = Number.POSITIVE_INFINITY;
  let passed = false;
  const matchers = new OctetCache<LikeMatcher>({
    octetsMax: memoryBounds.likeMatchers.octets,
    octetsOf: (_, pattern) => octetsPerCharacter * pattern.length,
  });
  const zones = new OctetCache<ZoneOffsets>({
    octetsMax: memoryBounds.readerZones.octets,
    octetsOf: octetsOfZone,
  });
  let lastPattern: string | undefined;
  let lastMatcher: LikeMatcher | undefined;

  function check(): void {
    if (performance.now() <= endsAt && Atomics.load(cancelled, 0) === 0) return;
    passed = true;
    throw new Error('the statement timed out');
  }

  function matcherOf(pattern: string): LikeMatcher {
    // Covers a pattern too long for the cache, which SQLite passes again for each row.
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

  function zoneOf(timeZone: string): ZoneOffsets {
    return zoneNow(zones, timeZone);
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
  database.function('comity_period', { deterministic: true }, (time, unit, timeZone) => {
    const seconds = secondsOf(time);
    return seconds === undefined ? null : periodOf(seconds, unit as PeriodUnit, zoneOf(String(timeZone)));
  });
  installSum(database);
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

const instantStart = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/** @param time milliseconds of a column, or the key of an instant; undefined for what is none, as in documents of an earlier version */
function secondsOf(time: unknown): number | undefined {
  const text = typeof time === 'string' ? instantStart.exec(time)?.[0] : undefined;
  const ms = typeof time === 'number' ? time : text === undefined ? Number.NaN : Date.parse(`${text}Z`);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

function installSum(database: DatabaseSync): void {
  database.aggregate('comity_sum', {
    start: () => null,
    step: (sum: DecimalSum | null, value: unknown): DecimalSum | null => {
      if (typeof value !== 'number') return sum;
      const kept = sum ?? new DecimalSum();
      kept.add(value);
      return kept;
    },
    result: (sum: DecimalSum | null) => sum?.toText() ?? null,
  } as never);
}
