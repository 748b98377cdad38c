/** The activity of the process: requests, errors, writes and deliveries of the last hour or day as lines, with the same numbers as a table. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Activity, Program } from '../api-types.ts';
import { base } from '../description.ts';
import { timeText } from '../presentation.ts';
import { send } from '../send.ts';
import { PlainTable } from './plain-table.tsx';
import { type Series, SeriesChart } from './series-chart.tsx';
import { Time } from './value.tsx';

const everyMs = 15_000;

const charts = [
  { title: 'Requests', series: [['requests', 'requests', 'plain']] },
  {
    title: 'Errors',
    series: [
      ['clientErrors', '4xx', 'warn'],
      ['serverErrors', '5xx', 'bad'],
    ],
  },
  { title: 'Writes', series: [['writes', 'committed', 'plain']] },
  {
    title: 'Deliveries',
    series: [
      ['delivered', 'delivered', 'good'],
      ['undelivered', 'failed', 'bad'],
    ],
  },
] as const;

type Period = keyof Activity;

const periods: readonly (readonly [Period, string])[] = [
  ['hour', 'Last hour'],
  ['day', 'Last day'],
];

export function ActivityCharts(): JSX.Element | null {
  const { activity, startedAt } = useActivity();
  const [period, setPeriod] = useState<Period>('hour');
  if (activity === undefined) return null;
  const shown = activity[period];
  const times = shown.requests.map((_, at) => Date.parse(shown.from) + at * shown.stepSeconds * 1000);
  /** Before the start, nothing was counted. */
  const known = (values: readonly number[]) =>
    values.map((value, at) =>
      (times[at] ?? 0) + shown.stepSeconds * 1000 > Date.parse(startedAt ?? '') ? value : undefined,
    );
  return (
    <section aria-labelledby="activity-title">
      <div class="line">
        <h2 id="activity-title">How things go</h2>
        <fieldset class="choice">
          <legend class="hidden">Period</legend>
          {periods.map(([name, text]) => (
            <label class="inline" key={name}>
              <input
                type="radio"
                name="activity-period"
                checked={period === name}
                onChange={() => setPeriod(name)}
              />{' '}
              {text}
            </label>
          ))}
        </fieldset>
      </div>
      <div class="charts activity">
        {charts.map(({ title, series }) => (
          <SeriesChart
            key={title}
            title={title}
            unit={period === 'hour' ? 'a minute' : 'in 15 minutes'}
            isSummed
            from={timeText(new Date(times[0] ?? 0).toISOString(), true)}
            series={series.map(
              ([name, text, tone]): Series => ({ name: text, tone, values: known(shown[name]) }),
            )}
          />
        ))}
      </div>
      <p class="quiet">
        Counted by the process that answers
        {startedAt === undefined ? '' : ', since its start '}
        {startedAt === undefined ? null : <Time value={startedAt} />}.
      </p>
      <details>
        <summary>As a table</summary>
        <PlainTable label="Activity as a table" rows={rowsOf(shown, times)} />
      </details>
    </section>
  );
}

/** The newest first; periods in which nothing happened are left out. */
function rowsOf(shown: Activity[Period], times: readonly number[]): readonly Record<string, unknown>[] {
  return times
    .map((ms, at) => ({
      Time: new Date(ms).toISOString(),
      ...Object.fromEntries(
        charts.flatMap(({ title, series }) =>
          series.map(([name, text]) => [
            series.length > 1 ? `${title}, ${text}` : title,
            shown[name][at] ?? 0,
          ]),
        ),
      ),
    }))
    .filter((row) => Object.values(row).some((value) => typeof value === 'number' && value > 0))
    .toReversed();
}

function useActivity() {
  const [activity, setActivity] = useState<Activity | undefined>(undefined);
  const [startedAt, setStartedAt] = useState<string | undefined>(undefined);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const [counts, program] = await Promise.all([
        send('GET', `${base.value}/meta/activity`).catch(() => undefined),
        send('GET', `${base.value}/meta`).catch(() => undefined),
      ]);
      if (!isShown) return;
      if (counts?.status === 200) setActivity(counts.json as Activity);
      if (program?.status === 200) setStartedAt((program.json as Program).startedAt);
      timer = window.setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, []);
  return { activity, startedAt };
}
