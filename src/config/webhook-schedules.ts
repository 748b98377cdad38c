/**
 * Retry schedules of deliveries by scheme and mode (§6): the defaults, and what a configuration replaces. Each entry is the time in seconds
 * from a failed attempt to the next; a schedule of n entries makes n + 1 attempts.
 */
import { type TArray, type TInteger, Type } from 'typebox';
import { inspectShape, type Reporter } from './shape.ts';

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

const entry = Type.Integer({ minimum: 1, maximum: entrySecondsMax });

const must = `must be a list of at most ${entriesMax} whole numbers of seconds from 1 to ${entrySecondsMax}`;

export const scheduleShape: TArray<TInteger> = Type.Array(entry, { maxItems: entriesMax, must });
export const fullScheduleShape: TArray<TInteger> = Type.Array(entry, {
  ...{ minItems: 1, maxItems: entriesMax },
  must: `${must}, and not be empty`,
});

const schedule = Type.Optional(scheduleShape);
const webhooksShape = Type.Object(
  {
    schedules: Type.Optional(
      Type.Object(
        { live: schedule, sandbox: schedule, plain: schedule, standard: schedule },
        { calls: 'schedule' },
      ),
    ),
  },
  { calls: 'member of the configuration' },
);

/** @param written the member `webhooks` of a configuration; each schedule replaces its default */
export function inspectWebhooks(written: unknown, report: Reporter): WebhookSchedules {
  if (written === undefined) return schedulesDefault;
  const schedules = inspectShape(webhooksShape, written, 'webhooks', report)?.schedules;
  return { ...schedulesDefault, ...(schedules as Partial<WebhookSchedules>) };
}
