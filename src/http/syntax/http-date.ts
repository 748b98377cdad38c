/**
 * HTTP dates (RFC 9110 §5.6.7): reads all three forms and writes IMF-fixdate. Case-sensitive. A date with the wrong weekday, or that does not
 * exist, is refused: RFC 9110 §13.1.3 lets a recipient ignore an invalid date, and a guess could turn a 412 into an overwrite.
 */

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const DAYS_LONG = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAY_MS = 86_400_000;

/** The last millisecond of an HTTP-date: the end of the year 9999. */
export const httpDateMsMax = 253_402_300_799_999;
/** The first millisecond of an HTTP-date: the start of the year 0. */
export const httpDateMsMin = -62_167_219_200_000;

/**
 * Milliseconds since the epoch, or undefined if it is not an HTTP-date. `nowMs` places the two-digit year of the rfc850 form: the latest year
 * with these digits that is not more than 50 years ahead.
 */
export function parseHttpDate(value: string, nowMs: number): number | undefined {
  if (value.length === 29 && value.charCodeAt(3) === 0x2c) return parseFixdate(value);
  if (value.length === 24 && value.charCodeAt(3) === 0x20) return parseAsctime(value);
  return parseRfc850(value, nowMs);
}

/** Writes IMF-fixdate, rounded down to the second; a time outside the years 0 to 9999 is moved to its edge. */
export function formatHttpDate(ms: number): string {
  const held = ms >= httpDateMsMin ? Math.min(ms, httpDateMsMax) : httpDateMsMin;
  // ECMA-262 fixes toUTCString to exactly this form, without Intl.
  return new Date(held).toUTCString();
}

/** Creates a formatter that caches the last `sizeMax` distinct seconds, for `Date` and `Last-Modified`. The oldest entry is evicted first. */
export function createHttpDateCache(sizeMax: number): (ms: number) => string {
  const texts = new Map<number, string>();
  let lastSecond = Number.NaN;
  let lastText = '';
  return function formatCached(ms) {
    const second = Math.floor(ms / 1000);
    if (second === lastSecond) return lastText;
    let text = texts.get(second);
    if (text === undefined) {
      text = formatHttpDate(ms);
      if (texts.size >= sizeMax) {
        for (const oldest of texts.keys()) {
          texts.delete(oldest);
          break;
        }
      }
      if (sizeMax > 0) texts.set(second, text);
    }
    lastSecond = second;
    lastText = text;
    return text;
  };
}

/** `Sun, 06 Nov 1994 08:49:37 GMT` */
function parseFixdate(value: string): number | undefined {
  if (value.slice(3, 5) !== ', ' || value[7] !== ' ' || value[11] !== ' ' || value[16] !== ' ')
    return undefined;
  if (value.slice(25) !== ' GMT') return undefined;
  const dayMs = dateMs(digits(value, 12, 16), MONTHS.indexOf(value.slice(8, 11)), digits(value, 5, 7));
  return withWeekday(dayMs, timeMs(value, 17), DAYS.indexOf(value.slice(0, 3)));
}

/** `Sun Nov  6 08:49:37 1994` */
function parseAsctime(value: string): number | undefined {
  if (value[7] !== ' ' || value[10] !== ' ' || value[19] !== ' ') return undefined;
  const day = value[8] === ' ' ? digits(value, 9, 10) : digits(value, 8, 10);
  const dayMs = dateMs(digits(value, 20, 24), MONTHS.indexOf(value.slice(4, 7)), day);
  return withWeekday(dayMs, timeMs(value, 11), DAYS.indexOf(value.slice(0, 3)));
}

/** `Sunday, 06-Nov-94 08:49:37 GMT` */
function parseRfc850(value: string, nowMs: number): number | undefined {
  const comma = value.length > 33 ? -1 : value.indexOf(',');
  const at = comma + 2;
  if (comma < 6 || value.length !== at + 22) return undefined;
  if (value[comma + 1] !== ' ' || value[at + 2] !== '-' || value[at + 6] !== '-') return undefined;
  if (value[at + 9] !== ' ' || value.slice(at + 18) !== ' GMT') return undefined;
  const day = digits(value, at, at + 2);
  const month = MONTHS.indexOf(value.slice(at + 3, at + 6));
  const inDay = timeMs(value, at + 10);
  const yearOfCentury = digits(value, at + 7, at + 9);
  const now = new Date(nowMs);
  const latestMs = new Date(nowMs).setUTCFullYear(now.getUTCFullYear() + 50);
  if (Number.isNaN(yearOfCentury) || Number.isNaN(latestMs)) return undefined;
  const latestYear = now.getUTCFullYear() + 50;
  let year = latestYear - ((((latestYear - yearOfCentury) % 100) + 100) % 100);
  if (dateMs(year, month, day) + inDay > latestMs) year -= 100;
  return withWeekday(dateMs(year, month, day), inDay, DAYS_LONG.indexOf(value.slice(0, comma)));
}

/** Adds day and time; undefined unless both exist and the weekday is right. */
function withWeekday(dayMs: number, inDayMs: number, weekday: number): number | undefined {
  const ms = dayMs + inDayMs;
  // 1 January 1970 was a Thursday, and JavaScript's remainder keeps the sign.
  const actual = (((dayMs / DAY_MS + 4) % 7) + 7) % 7;
  return Number.isNaN(ms) || actual !== weekday ? undefined : ms;
}

/** The start of a day of the Gregorian calendar; NaN if there is no such day. */
function dateMs(year: number, month: number, day: number): number {
  if (Number.isNaN(year) || month < 0) return Number.NaN;
  const date = new Date(0);
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  const ms = date.setUTCFullYear(year, month, day);
  return date.getUTCMonth() === month && date.getUTCDate() === day ? ms : Number.NaN;
}

/** `08:49:37` at `at`, in ms; NaN if it is not a time. Second 60 exists only as a leap second, at 23:59. */
function timeMs(value: string, at: number): number {
  if (value[at + 2] !== ':' || value[at + 5] !== ':') return Number.NaN;
  const hour = digits(value, at, at + 2);
  const minute = digits(value, at + 3, at + 5);
  const second = digits(value, at + 6, at + 8);
  if (hour > 23 || minute > 59 || second > 60) return Number.NaN;
  if (second === 60 && (hour !== 23 || minute !== 59)) return Number.NaN;
  return ((hour * 60 + minute) * 60 + second) * 1000;
}

/** The decimal number from `start` to `end`; NaN if it has another character than a digit. */
function digits(value: string, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const digit = value.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}
