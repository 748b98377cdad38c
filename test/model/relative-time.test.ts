/** Times relative to the present, in zones whose clocks change (§4.2.10). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRelativeTime, localClock, relativeTimeAt, unknownZoneIn } from '../../src/model/period.ts';

/** 00:30 of Monday, 2026-03-30, in Berlin, a day after its clocks went from 02:00 to 03:00; still 2026-03-29 in UTC. */
const now = '2026-03-29T22:30:15.250Z';

const cases: readonly (readonly [text: string, instant: string, day: string, now?: string])[] = [
  ['now', '2026-03-29T22:30:15.250Z', '2026-03-29'],
  ['now[Europe/Berlin]', '2026-03-29T22:30:15.250Z', '2026-03-30'],
  ['now-PT90M', '2026-03-29T21:00:15.250Z', '2026-03-29'],
  ['now+PT1H30M', '2026-03-30T00:00:15.250Z', '2026-03-30'],
  ['today', '2026-03-29T00:00:00.000Z', '2026-03-29'],
  ['today[Europe/Berlin]', '2026-03-29T22:00:00.000Z', '2026-03-30'],
  ['today-P1D[Europe/Berlin]', '2026-03-28T23:00:00.000Z', '2026-03-29'],
  ['today+P1D[europe/berlin]', '2026-03-30T22:00:00.000Z', '2026-03-31'],
  ['thisWeek', '2026-03-23T00:00:00.000Z', '2026-03-23'],
  ['thisWeek[Europe/Berlin]', '2026-03-29T22:00:00.000Z', '2026-03-30'],
  ['thisMonth[Europe/Berlin]', '2026-02-28T23:00:00.000Z', '2026-03-01'],
  ['thisMonth+P1M[Europe/Berlin]', '2026-03-31T22:00:00.000Z', '2026-04-01'],
  ['thisYear-P1Y', '2025-01-01T00:00:00.000Z', '2025-01-01'],
  // A day of 23 hours is one day on the calendar, and 24 hours go further.
  ['now-P1D[Europe/Berlin]', '2026-03-28T23:30:15.250Z', '2026-03-29'],
  ['now-PT24H[Europe/Berlin]', '2026-03-28T22:30:15.250Z', '2026-03-28'],
  ['now-P1Y2M3W4DT5H6M7S', '2024-12-31T17:24:08.250Z', '2024-12-31', '2026-03-25T22:30:15.250Z'],
  // The last day of a shorter month.
  ['today+P1M', '2026-02-28T00:00:00.000Z', '2026-02-28', '2026-01-31T10:00:00Z'],
  ['today-P1M', '2024-02-29T00:00:00.000Z', '2024-02-29', '2024-03-31T10:00:00Z'],
  ['today-P13M', '2024-12-15T00:00:00.000Z', '2024-12-15', '2026-01-15T10:00:00Z'],
  // 02:30 does not exist on the day before: the moment of the change.
  ['now-P1D[Europe/Berlin]', '2026-03-29T01:00:00.000Z', '2026-03-29', '2026-03-30T00:30:00Z'],
  // 02:30 exists twice, and now is the second.
  ['now-PT0S[Europe/Berlin]', '2026-10-25T01:30:00.000Z', '2026-10-25', '2026-10-25T01:30:00Z'],
  ['now-P1D[Europe/Berlin]', '2026-10-25T00:30:00.000Z', '2026-10-25', '2026-10-26T01:30:00Z'],
  // A day that begins at 01:00, because midnight is left out.
  ['today[Africa/Cairo]', '2026-04-23T22:00:00.000Z', '2026-04-24', '2026-04-24T10:00:00Z'],
  ['today[Asia/Kolkata]', '2026-03-29T18:30:00.000Z', '2026-03-30'],
  ['now-P9999Y', '0001-01-01T00:00:00.000Z', '0001-01-01'],
  ['now-P999999D', '0001-01-01T00:00:00.000Z', '0001-01-01', '1970-01-01T00:00:00Z'],
  ['today+P999999M', '9999-12-31T23:59:59.000Z', '9999-12-31'],
];

for (const [text, instant, day, at = now] of cases) {
  test(`${text} at ${at} is ${instant}`, () => {
    assert.ok(isRelativeTime(text));
    assert.deepEqual(relativeTimeAt(text, Date.parse(at)), { instant, day });
  });
}

test('takes counts of six digits, and no other spelling', () => {
  for (const text of ['now-PT999999S', 'today-P1Y1M1W1DT1H1M1S']) assert.ok(isRelativeTime(text), text);
  for (const text of [
    ...['', 'Now', 'today ', 'yesterday', 'now-', 'now-P', 'now-PT', 'now-P1', 'now-1D', 'now-7d', 'now-p1d'],
    ...[
      'now-P1DT',
      'now-P1H',
      'now-P1.5D',
      'now-P-1D',
      'now P1D',
      'now-P1D-P1D',
      'now[]',
      'now[UTC',
      'now-P1D1M',
    ],
    ...['now-PT1000000S', `now[${'x'.repeat(65)}]`],
  ])
    assert.ok(!isRelativeTime(text), text);
});

test('knows the zones of the IANA database', () => {
  assert.equal(unknownZoneIn('today[America/Argentina/Ushuaia]'), undefined);
  assert.equal(unknownZoneIn('today'), undefined);
  assert.equal(unknownZoneIn('today[Mars/Olympus]'), 'Mars/Olympus');
  assert.equal(unknownZoneIn('today[+02:00]'), '+02:00');
});

test('finds the first instant of every local hour of a year, through both changes', () => {
  const clock = localClock('America/New_York');
  for (let hour = 0; hour < 366 * 24; hour += 1) {
    const local = Date.UTC(2026, 0, 1, hour);
    const instant = clock.instantOf(local);
    const shown = instant + clock.offsetAt(instant);
    // 02:00 of 8 March does not exist; clocks show 03:00.
    assert.equal(shown, local === Date.UTC(2026, 2, 8, 2) ? local + 3_600_000 : local);
    const earlier = instant - 3_600_000;
    assert.notEqual(earlier + clock.offsetAt(earlier), local);
  }
});
