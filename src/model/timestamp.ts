/** Times as ISO 8601 texts, as representations and the log of attempts contain them (§2.1). */

const dayMs = 86_400_000;
/** 9999-12-31T23:59:59.999Z; later years have more digits. */
const lastMs = 253_402_300_799_999;

/**
 * Formats milliseconds since the epoch as `2026-11-21T08:56:03.000Z` (§2.1), like Date's `toISOString` but in 0.28 µs
 * instead of 0.62, which would be half the cost of a representation.
 * @throws RangeError where Date does: for a number that is not a time
 */
export function formatTimestamp(ms: number): string {
  if (!(ms >= 0 && ms <= lastMs) || !Number.isInteger(ms)) return new Date(ms).toISOString();
  const days = Math.floor(ms / dayMs);
  const rest = ms - days * dayMs;
  const seconds = Math.floor(rest / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const time = `${two(hours)}:${two(minutes % 60)}:${two(seconds % 60)}.${three(rest % 1000)}`;
  return `${formatDay(days)}T${time}Z`;
}

/**
 * Converts a day number to a Gregorian date, in years that begin in March, so that the leap day is the last (Howard
 * Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
 */
function formatDay(days: number): string {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1;
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${year}-${two(month)}-${two(day)}`;
}

function two(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

function three(value: number): string {
  if (value < 10) return `00${value}`;
  return value < 100 ? `0${value}` : `${value}`;
}
