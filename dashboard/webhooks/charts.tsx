/** The deliveries of an endpoint over time: how many succeeded, and how fast it answered; drawn, and told in words for a screen reader. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Delivery } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { type Page, queryOf, useRead } from './api.ts';

const periods = [
  ['hour', 3_600_000],
  ['day', 86_400_000],
  ['week', 604_800_000],
] as const;
/** The API gives that many at most in one page: a busier period shows its newest. */
const deliveriesMax = 1000;
const bucketsMax = 24;

export function Performance({ id }: { readonly id: string }): JSX.Element {
  const [period, setPeriod] = useState<(typeof periods)[number][0]>('day');
  const lengthMs = periods.find(([name]) => name === period)?.[1] ?? 0;
  // To the minute, so that the path stays the same between two renderings.
  const until = Math.ceil(Date.now() / 60_000) * 60_000;
  const query = queryOf({
    endpointId: id,
    'updatedAt[gte]': new Date(until - lengthMs).toISOString(),
    sort: '-updatedAt',
    limit: deliveriesMax,
    fields: 'id,status,updatedAt,lastLatencyMs,attemptCount',
  });
  const { value, problem } = useRead<Page<Sample>>(`/deliveries${query}`, { everyMs: 10_000 });
  const samples = value?.items.filter(({ attemptCount }) => attemptCount > 0) ?? [];
  const buckets = bucketsOf(samples, until - lengthMs, lengthMs);
  return (
    <section class="performance" aria-labelledby="performance-title">
      <div class="line">
        <h2 id="performance-title">Performance</h2>
        <fieldset class="choice">
          <legend class="hidden">Period</legend>
          {periods.map(([name]) => (
            <label class="inline" key={name}>
              <input type="radio" name="period" checked={period === name} onChange={() => setPeriod(name)} />{' '}
              {name}
            </label>
          ))}
        </fieldset>
      </div>
      <ProblemNote problem={problem} />
      <div class="charts">
        <SuccessChart samples={samples} buckets={buckets} />
        <LatencyChart samples={samples} buckets={buckets} />
      </div>
      {value?.nextCursor == null ? null : (
        <p class="hint">{`The newest ${deliveriesMax.toLocaleString('en')} deliveries of this period.`}</p>
      )}
    </section>
  );
}

type Sample = Pick<Delivery, 'id' | 'status' | 'updatedAt' | 'lastLatencyMs' | 'attemptCount'>;
type Bucket = { readonly good: number; readonly bad: number; readonly latencies: readonly number[] };
type ChartProps = { readonly samples: readonly Sample[]; readonly buckets: readonly Bucket[] };

function bucketsOf(samples: readonly Sample[], from: number, lengthMs: number): readonly Bucket[] {
  const groups = Array.from({ length: bucketsMax }, (): Sample[] => []);
  for (const sample of samples) {
    const at = Math.floor(((Date.parse(sample.updatedAt) - from) / lengthMs) * bucketsMax);
    groups[Math.min(Math.max(at, 0), bucketsMax - 1)]?.push(sample);
  }
  return groups.map((group) => ({
    good: group.filter(({ status }) => status === 'delivered').length,
    bad: group.filter(({ status }) => status === 'not_delivered').length,
    latencies: group.flatMap(({ lastLatencyMs }) => lastLatencyMs ?? []),
  }));
}

const [width, height] = [240, 56];
const step = width / bucketsMax;

function SuccessChart({ samples, buckets }: ChartProps): JSX.Element {
  const good = samples.filter(({ status }) => status === 'delivered').length;
  const ended = good + samples.filter(({ status }) => status === 'not_delivered').length;
  const most = Math.max(...buckets.map((bucket) => bucket.good + bucket.bad), 1);
  const tall = (count: number) => (count / most) * (height - 4);
  return (
    <figure class="chart">
      <figcaption>
        Success rate <strong>{ended === 0 ? '–' : `${shown((good / ended) * 100)} %`}</strong>
        <span class="quiet">{` ${good} of ${ended} deliveries`}</span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {buckets.map((bucket, at) => (
          <g key={at}>
            <rect
              class="bad"
              x={at * step + 1}
              width={step - 2}
              y={height - tall(bucket.bad)}
              height={tall(bucket.bad)}
            />
            <rect
              class="good"
              x={at * step + 1}
              width={step - 2}
              y={height - tall(bucket.bad) - tall(bucket.good)}
              height={tall(bucket.good)}
            />
          </g>
        ))}
      </svg>
    </figure>
  );
}

function LatencyChart({ samples, buckets }: ChartProps): JSX.Element {
  const all = samples.flatMap(({ lastLatencyMs }) => lastLatencyMs ?? []);
  const medians = buckets.map(({ latencies }) => quantile(latencies, 0.5));
  const slow = buckets.map(({ latencies }) => quantile(latencies, 0.95));
  const most = Math.max(...slow.map((value) => value ?? 0), 1);
  return (
    <figure class="chart">
      <figcaption>
        Latency <strong>{all.length === 0 ? '–' : `${shown(quantile(all, 0.5))} ms`}</strong>
        <span class="quiet">
          {all.length === 0 ? '' : ` half of them; 95 %: ${shown(quantile(all, 0.95))} ms`}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {buckets.map((_, at) => (
          <g key={at}>
            <Dot class="slow" at={at} value={slow[at]} most={most} />
            <Dot class="median" at={at} value={medians[at]} most={most} />
          </g>
        ))}
      </svg>
    </figure>
  );
}

type DotProps = {
  readonly class: string;
  readonly at: number;
  readonly value: number | undefined;
  readonly most: number;
};

function Dot({ class: name, at, value, most }: DotProps): JSX.Element | null {
  if (value === undefined) return null;
  return (
    <circle class={name} cx={(at + 0.5) * step} cy={height - 4 - (value / most) * (height - 8)} r="2.5" />
  );
}

function quantile(values: readonly number[], part: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : value.toLocaleString('en', { maximumFractionDigits: 1 });
}
