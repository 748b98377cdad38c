/**
 * Retry schedules of deliveries by scheme and mode (§6): the defaults, and what a configuration replaces. Each entry is the time in seconds
 * from a failed attempt to the next; a schedule of n entries makes n + 1 attempts.
 */
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

const minuteS = 60;
const hourS = 3600;

export type ScheduleName = 'live' | 'sandbox' | 'plain' | 'standard';

export type WebhookSchedules = { readonly [N in ScheduleName]: readonly number[] };

export const schedulesDefault: WebhookSchedules = {
  // Exponential for up to 3 days: 71 h 42 min 35 s.
  live: [
    ...[5, 30, 2 * minuteS, 10 * minuteS, 30 * minuteS],
    ...[hourS, 2 * hourS, 4 * hourS, 8 * hourS, 16 * hourS, 20 * hourS, 20 * hourS],
  ],
  // Three retries over a few hours.
  sandbox: [10 * minuteS, hourS, 3 * hourS],
  // None: failed deliveries are sent again by hand.
  plain: [],
  // The example schedule of the Standard Webhooks specification: 75 h 35 min 5 s.
  standard: [
    ...[5, 5 * minuteS, 30 * minuteS, 2 * hourS, 5 * hourS, 10 * hourS],
    ...[14 * hourS, 20 * hourS, 24 * hourS],
  ],
};

const entriesMax = 100;
const entrySecondsMax = 30 * 24 * hourS;

/** @param written the member `webhooks.schedules`; each name replaces its default */
export function inspectSchedules(written: unknown, mistakes: string[]): WebhookSchedules {
  if (written === undefined) return schedulesDefault;
  if (!isRecord(written)) {
    mistakes.push(`webhooks.schedules must be an object, not ${kindOf(written)}`);
    return schedulesDefault;
  }
  for (const [name, schedule] of Object.entries(written)) {
    if (!Object.hasOwn(schedulesDefault, name)) {
      const known = new Set(Object.keys(schedulesDefault));
      mistakes.push(`webhooks.schedules.${name} is not a schedule${suggestion(name, known)}`);
    } else if (!isSchedule(schedule)) {
      mistakes.push(`webhooks.schedules.${name} ${scheduleRule}`);
    }
  }
  return { ...schedulesDefault, ...written };
}

/** Requirement for a schedule, as the predicate of a sentence. */
export const scheduleRule = `must be a list of at most ${entriesMax} whole numbers of seconds from 1 to ${entrySecondsMax}`;

export function isSchedule(value: unknown): value is readonly number[] {
  if (!Array.isArray(value) || value.length > entriesMax) return false;
  return value.every((entry) => Number.isInteger(entry) && entry >= 1 && entry <= entrySecondsMax);
}
