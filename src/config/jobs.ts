/** Jobs: functions of an application that run at scheduled times, once across all processes. */
import { Cron } from 'croner';
import type { Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';
import { localClock } from '../model/period.ts';
import type { Source } from './senders.ts';

/** The argument of a job, which acts as an administrator. */
export type JobRun<R = Resources> = Logic<R> & {
  /** The time that the run is for; `now` is later if the program was down or busy. */
  readonly scheduledAt: Date;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Aborted when the time for this attempt is over; pass it on to long operations. */
  readonly signal: AbortSignal;
};

/** @template R the calls on the collections; never: not known */
export type JobDeclaration<R = never> = {
  readonly description?: string;
  /** Five fields: minute, hour, day of the month, month, day of the week. `0 3 * * *` is daily at 03:00. Either `cron` or `every`. */
  readonly cron?: string;
  /** IANA name of the time zone of `cron`. Default `UTC`. */
  readonly timeZone?: string;
  /** Seconds, or a text such as `15m`, `1h`, `7d`. The times are the multiples of it since 1970-01-01T00:00Z. */
  readonly every?: string | number;
  /** A time that passed while no process ran: `run` runs the job once at the start, for the last of them. Default `run`. */
  readonly ifMissed?: 'run' | 'skip';
  /** Time for one attempt. Default: that of handlers. */
  readonly timeoutMs?: number;
  /** Seconds from each failed attempt to the next. The next due time replaces an attempt that waits. */
  readonly schedule?: readonly number[];
  run(run: JobRun<R>): void | Promise<void>;
};

export type JobTiming =
  | { readonly cron: string; readonly timeZone: string }
  /** Milliseconds. */
  | { readonly everyMs: number };

export type DeclaredJob = {
  readonly name: string;
  readonly description: string;
  readonly timing: JobTiming;
  readonly ifMissed: 'run' | 'skip';
  readonly source: Source;
};

/** The times of a job, in milliseconds since the epoch. */
export type JobTimes = {
  /** The first time after the given one; undefined: it never comes. */
  after(ms: number): number | undefined;
  /** The last time that is not after the given one. */
  lastUntil(ms: number): number | undefined;
};

/**
 * The times of a declaration. The rule for expressions, in zones whose clocks change (the guide "Jobs"):
 *
 * - An expression that names hours has each of its local times once: at the first moment with that local time, or at the moment of the
 *   change if a clock that is set forward leaves it out.
 * - An expression of every hour follows the hours that pass: both of a repeated one, none of one that is left out. Croner does that.
 *
 * @throws Error for an expression or a time zone that Croner refuses
 */
export function jobTimes(timing: JobTiming): JobTimes {
  if ('everyMs' in timing) {
    const { everyMs } = timing;
    const lastUntil = (ms: number) => Math.floor(ms / everyMs) * everyMs;
    return { after: (ms) => lastUntil(ms) + everyMs, lastUntil };
  }
  const inZone = cronTimes(timing.cron, timing.timeZone);
  return isOfEveryHour(timing.cron) ? inZone : timesByName(cronTimes(timing.cron, 'UTC'), timing.timeZone);
}

function cronTimes(pattern: string, timezone: string): JobTimes {
  const cron = new Cron(pattern, { mode: '5-part', timezone, paused: true });
  return {
    after: (ms) => cron.nextRun(new Date(ms))?.getTime(),
    // Croner looks before the second of the given time.
    lastUntil: (ms) => cron.previousRuns(1, new Date(Math.floor(ms / 1000) * 1000 + 1000))[0]?.getTime(),
  };
}

function isOfEveryHour(pattern: string): boolean {
  const [first = '', hours = '*'] = pattern.trim().split(spaces);
  if (first.startsWith('@')) return first.toLowerCase() === '@hourly';
  const { after } = cronTimes(`0 ${hours} * * *`, 'UTC');
  for (let hour = 0; hour < 24; hour += 1) {
    if (after(hour * hourMs - 1) !== hour * hourMs) return false;
  }
  return true;
}

const spaces = /\s+/;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** @param names the local times, written as times of UTC */
function timesByName(names: JobTimes, timeZone: string): JobTimes {
  const { offsetAt, instantOf } = localClock(timeZone);
  return {
    after(ms) {
      let name = names.after(ms + offsetAt(ms));
      while (name !== undefined && instantOf(name) <= ms) name = names.after(name);
      return name === undefined ? undefined : instantOf(name);
    },
    lastUntil(ms) {
      // In an hour that a clock repeats, the names before it go further than its own.
      let name = names.lastUntil(ms + Math.max(offsetAt(ms), offsetAt(ms - dayMs)));
      while (name !== undefined && instantOf(name) > ms) name = names.lastUntil(name - 1000);
      return name === undefined ? undefined : instantOf(name);
    },
  };
}
