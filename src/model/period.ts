/**
 * Days, weeks, months and years of a time zone, in which aggregates group instants (§4.18.6). The offsets of a zone are a table, read once from
 * the time zones of Node (Intl), which both stores use: the answer depends neither on the database's own zones nor on its version.
 */

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
  const offsetAt = offsetReader(timeZone);
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

function offsetReader(timeZone: string): (seconds: number) => number {
  const format = formatOf(timeZone);
  return (seconds) => {
    const [, sign, hours = '0', minutes = '0', rest = '0'] =
      written.exec(format.format(seconds * 1000)) ?? [];
    const offset = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
    return sign === '-' ? -offset : offset;
  };
}
