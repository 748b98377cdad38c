/**
 * Days, weeks, months and years of a time zone: aggregates group instants by them (§4.18.6), and filters name times relative to the present
 * with them (§4.2.10). The offsets are those of Node (Intl), for the stores as a table that is read once: the answer depends neither on the
 * database's own zones nor on its version.
 */
import { formatTimestamp } from './timestamp.ts';

export const periodUnits = ['day', 'week', 'month', 'year'] as const;

export type PeriodUnit = (typeof periodUnits)[number];

export type Period = { readonly unit: PeriodUnit; readonly timeZone: string };

const hourS = 3600;
const dayS = 24 * hourS;
/** Years whose changes the table has. Before and after them the first and the last offset hold. */
const firstS = Date.UTC(1900) / 1000;
const lastS = Date.UTC(2100) / 1000;
/** No zone of the database changes its offset to another and back within six days. */
const stepS = 6 * dayS;
/** The years of instants, 0001 to 9999. */
export const localSecondsMin = -62_135_596_800;
export const localSecondsMax = 253_402_300_799;

const names = /^[A-Za-z][A-Za-z0-9_+/-]*$/;

/** True for a name of the IANA database, in any case. */
export function isTimeZone(name: string): boolean {
  if (!names.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    // RangeError: there is no such zone.
    return false;
  }
}

/** The offsets of a zone in seconds: `offsets[n]` holds until `changes[n]`, in seconds since 1970. */
export type ZoneOffsets = { readonly changes: readonly number[]; readonly offsets: readonly number[] };

/** Reads the table of a zone step by step: it takes 30 to 60 ms, some microseconds a step. @throws RangeError for an unknown zone */
export function* readZone(timeZone: string): Generator<undefined, ZoneOffsets> {
  const clock = localClock(timeZone);
  const offsetAt = (seconds: number) => clock.offsetAt(seconds * 1000) / 1000;
  const changes: number[] = [];
  let before = offsetAt(firstS);
  const offsets = [before];
  for (let from = firstS; from < lastS; from += stepS) {
    yield;
    const after = offsetAt(from + stepS);
    if (after === before) continue;
    // Nearly all changes are at a full hour of UTC.
    const hour = firstAfter(from, from + stepS, hourS, (at) => offsetAt(at) !== before);
    changes.push(
      offsetAt(hour - 1) === before
        ? hour
        : firstAfter(hour - hourS, hour, 1, (at) => offsetAt(at) !== before),
    );
    offsets.push(after);
    before = after;
  }
  return { changes, offsets };
}

/** The first multiple of the step after `low` that holds, of which those after it hold too; `high` does. */
function firstAfter(low: number, high: number, step: number, holds: (at: number) => boolean): number {
  let [from, to] = [low, high];
  while (to - from > step) {
    const middle = from + Math.floor((to - from) / step / 2) * step;
    if (holds(middle)) to = middle;
    else from = middle;
  }
  return to;
}

/** The first day of the period that has the instant, such as `2026-03-30`. Weeks begin on Monday (ISO 8601). */
export function periodOf(seconds: number, unit: PeriodUnit, { changes, offsets }: ZoneOffsets): string {
  let [low, high] = [0, changes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((changes[middle] ?? 0) <= seconds) low = middle + 1;
    else high = middle;
  }
  const local = Math.min(Math.max(seconds + (offsets[low] ?? 0), localSecondsMin), localSecondsMax);
  const days = Math.floor(local / dayS);
  // 1970-01-01 was a Thursday.
  const first = unit === 'week' ? days - ((((days + 3) % 7) + 7) % 7) : days;
  const day = new Date(first * dayS * 1000).toISOString().slice(0, 10);
  if (unit === 'month') return `${day.slice(0, 8)}01`;
  return unit === 'year' ? `${day.slice(0, 5)}01-01` : day;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset', hour: 'numeric' });
}

const written = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;
/** Longer than any offset from UTC. No zone changes twice within two of them. */
const offsetMsMax = dayS * 1000;

/** The clock of a time zone. All numbers are milliseconds. A local time is written as the time of UTC with the same digits. */
export type LocalClock = {
  /** Ahead of UTC. */
  offsetAt(ms: number): number;
  /** The first instant with the local time. A time that a clock set forward leaves out is the moment of the change. */
  instantOf(localMs: number): number;
};

/** @throws RangeError for an unknown zone */
export function localClock(timeZone: string): LocalClock {
  const format = formatOf(timeZone);

  function offsetAt(ms: number): number {
    const [, sign, hours = '0', minutes = '0', rest = '0'] = written.exec(format.format(ms)) ?? [];
    const seconds = Number(hours) * hourS + Number(minutes) * 60 + Number(rest);
    return 1000 * (sign === '-' ? -seconds : seconds);
  }

  function instantOf(localMs: number): number {
    const before = offsetAt(localMs - offsetMsMax);
    const after = offsetAt(localMs + offsetMsMax);
    if (offsetAt(localMs - before) === before) return localMs - before;
    if (offsetAt(localMs - after) === after) return localMs - after;
    // The change lies between the two.
    let [early, late] = [localMs - after, localMs - before];
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2);
      if (offsetAt(middle) === before) early = middle;
      else late = middle;
    }
    return late;
  }

  return { offsetAt, instantOf };
}

// Times relative to the present, as values of filters: `today`, `now-P7D`, `thisMonth-P1Y[Europe/Berlin]`. The duration is one of ISO 8601,
// whose years to days are counted on the calendar and the clock of the zone, and whose hours to seconds as they pass. The zone is written
// as in RFC 9557, and is UTC if there is none.

/** Where a relative time begins: the present, or the first moment of a period that has it. */
const beginnings: ReadonlyMap<string, PeriodUnit | undefined> = new Map([
  ['now', undefined],
  ['today', 'day'],
  ['thisWeek', 'week'],
  ['thisMonth', 'month'],
  ['thisYear', 'year'],
]);

const count = String.raw`(\d{1,6})`;
const duration = String.raw`P(?=\d|T\d)(?:${count}Y)?(?:${count}M)?(?:${count}W)?(?:${count}D)?(?:T(?=\d)(?:${count}H)?(?:${count}M)?(?:${count}S)?)?`;
const relativeGrammar = new RegExp(
  String.raw`^(${[...beginnings.keys()].join('|')})(?:([+-])${duration})?(?:\[([^\]]{1,64})\])?$`,
);

export const relativeWords =
  'a time relative to the present, such as today, now-P7D or thisMonth[Europe/Berlin]';

/** The text has the form of a relative time. Its time zone may be unknown. */
export function isRelativeTime(text: string): boolean {
  return relativeGrammar.test(text);
}

/** The time zone that a relative time names, if there is none of that name. */
export function unknownZoneIn(text: string): string | undefined {
  const timeZone = relativeGrammar.exec(text)?.at(-1);
  return timeZone === undefined || isTimeZone(timeZone) ? undefined : timeZone;
}

/**
 * A relative time at a moment, as an instant in its kept spelling, and as the day that it is in its zone. Outside of the years 0001 to 9999
 * it is the first or the last moment of them.
 * @throws RangeError for a text that is no relative time, or an unknown zone
 */
export function relativeTimeAt(
  text: string,
  nowMs: number,
): { readonly instant: string; readonly day: string } {
  const parts = relativeGrammar.exec(text);
  if (parts === null) throw new RangeError(`${text} is no relative time`);
  const [, beginning = '', sign, ...rest] = parts;
  const counts = rest.slice(0, 7).map((digits) => (sign === '-' ? -1 : 1) * Number(digits ?? 0));
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = counts;
  const clock = localClock(rest[7] ?? 'UTC');
  const local = nowMs + clock.offsetAt(nowMs);
  const unit = beginnings.get(beginning);
  const from = unit === undefined ? local : Date.parse(periodOf(Math.floor(local / 1000), unit, noOffset));
  const moved = withinYears(monthsAfter(from, 12 * years + months) + (7 * weeks + days) * dayS * 1000);
  // An hour that a clock repeats would otherwise end with its first time.
  const calendar = moved === local ? nowMs : clock.instantOf(moved);
  const instant = withinYears(calendar + (hours * hourS + minutes * 60 + seconds) * 1000);
  const day = formatTimestamp(withinYears(instant + clock.offsetAt(instant))).slice(0, 10);
  return { instant: formatTimestamp(instant), day };
}

const noOffset: ZoneOffsets = { changes: [], offsets: [0] };

function withinYears(ms: number): number {
  return Math.min(Math.max(ms, localSecondsMin * 1000), localSecondsMax * 1000);
}

/** The same day of a later month, or its last day if it is shorter. */
function monthsAfter(localMs: number, months: number): number {
  if (months === 0) return localMs;
  const date = new Date(localMs);
  const month = 12 * date.getUTCFullYear() + date.getUTCMonth() + months;
  const [year, inYear] = [Math.floor(month / 12), month - 12 * Math.floor(month / 12)];
  if (year < 1) return localSecondsMin * 1000;
  if (year > 9999) return localSecondsMax * 1000;
  const last = new Date(0);
  last.setUTCFullYear(year, inYear + 1, 0);
  date.setUTCFullYear(year, inYear, Math.min(date.getUTCDate(), last.getUTCDate()));
  return date.getTime();
}
