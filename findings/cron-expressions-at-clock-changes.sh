#!/usr/bin/env bash
# One cron expression, three schedulers, three lists of runs on the days on which clocks change.
#
# Guess: schedulers that take five fields and a time zone agree about a local time that exists twice or not at all.
# Seen (croner 11.0.1, cron-parser 5.10.6, cron 4.4.0; Europe/Berlin in 2026; times in UTC):
# - `0 2,14 * * *`, 29 March: croner leaves out the run of 02:00, the other two run at the moment of the change.
#   25 October: croner runs at both 02:00, the other two at the first.
# - `*/15 2 * * *`, 29 March: croner has no run, cron one, cron-parser four, in the hour after the change.
# - `30 2 * * *`, 29 March: croner and cron run at the moment of the change, cron-parser half an hour later.
# Croner's README says why: only an expression with one minute and one hour is a fixed time, every other is an interval.
#
# Needs node, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund croner@11.0.1 cron-parser@5.10.6 cron@4.4.0
cat >look.mjs <<'JS'
import { CronTime } from 'cron';
import { CronExpressionParser } from 'cron-parser';
import { Cron } from 'croner';

const tz = 'Europe/Berlin';
/** Each gives one run after the other, as the library's own iteration does. */
const next = {
  croner: (text, at) => {
    const cron = new Cron(text, { timezone: tz, paused: true });
    return () => (at = cron.nextRun(at));
  },
  'cron-parser': (text, currentDate) => {
    const times = CronExpressionParser.parse(text, { tz, currentDate });
    return () => times.next().toDate();
  },
  cron: (text, at) => {
    const time = new CronTime(text, tz);
    return () => (at = time.getNextDateFrom(at, tz).toJSDate());
  },
};
const days = [
  ['2026-03-28T23:30:00Z', '2026-03-29T13:00:00Z'],
  ['2026-10-24T22:30:00Z', '2026-10-25T13:30:00Z'],
];
for (const text of ['0 2,14 * * *', '*/15 2 * * *', '30 2 * * *']) {
  for (const [from, to] of days) {
    for (const [name, schedule] of Object.entries(next)) {
      const runs = [];
      const run = schedule(text, new Date(from));
      for (let at = run(); at !== null && at < new Date(to); at = run()) runs.push(at.toISOString().slice(11, 16));
      console.log(`${from.slice(0, 7)}  ${text}  ${name}: ${runs.join(' ') || 'none'}`);
    }
  }
}
JS
node look.mjs >seen
cat >expected <<'TEXT'
2026-03  0 2,14 * * *  croner: 12:00
2026-03  0 2,14 * * *  cron-parser: 01:00 12:00
2026-03  0 2,14 * * *  cron: 01:00 12:00
2026-10  0 2,14 * * *  croner: 00:00 01:00 13:00
2026-10  0 2,14 * * *  cron-parser: 00:00 13:00
2026-10  0 2,14 * * *  cron: 00:00 13:00
2026-03  */15 2 * * *  croner: none
2026-03  */15 2 * * *  cron-parser: 01:00 01:15 01:30 01:45
2026-03  */15 2 * * *  cron: 01:00
2026-10  */15 2 * * *  croner: 00:00 00:15 00:30 00:45 01:00 01:15 01:30 01:45
2026-10  */15 2 * * *  cron-parser: 00:00 00:15 00:30 00:45
2026-10  */15 2 * * *  cron: 00:00 00:15 00:30 00:45
2026-03  30 2 * * *  croner: 01:00
2026-03  30 2 * * *  cron-parser: 01:30
2026-03  30 2 * * *  cron: 01:00
2026-10  30 2 * * *  croner: 00:30
2026-10  30 2 * * *  cron-parser: 00:30
2026-10  30 2 * * *  cron: 00:30
TEXT
cat seen
diff expected seen
