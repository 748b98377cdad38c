/** Jobs: functions of an application that run at scheduled times, once across all processes. */
import { Cron } from 'croner';
import type { Resources } from '../model/logic/collection-calls.ts';
import type { Logic } from '../model/logic/logic.ts';
import type { Source } from './sources.ts';

/** What a job gets. It acts as an administrator. */
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
 * Where a clock is set forward, a time that does not exist is replaced by the moment of the change; where it is set back, a time that
 * exists twice counts once.
 * @throws Error for an expression or a time zone that Croner refuses
 */
export function jobTimes(timing: JobTiming): JobTimes {
  if ('everyMs' in timing) {
    const { everyMs } = timing;
    const lastUntil = (ms: number) => Math.floor(ms / everyMs) * everyMs;
    return { after: (ms) => lastUntil(ms) + everyMs, lastUntil };
  }
  const cron = new Cron(timing.cron, { mode: '5-part', timezone: timing.timeZone, paused: true });
  return {
    after: (ms) => cron.nextRun(new Date(ms))?.getTime(),
    // Croner looks before the second of the given time.
    lastUntil: (ms) => cron.previousRuns(1, new Date(Math.floor(ms / 1000) * 1000 + 1000))[0]?.getTime(),
  };
}
