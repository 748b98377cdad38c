/** Several lines over time, with a legend that names the newest value or the sum of each, so that colour alone identifies no line. */
import type { JSX } from 'preact';

export type Series = {
  readonly name: string;
  /** `good`, `warn`, `bad` or `plain`: which of the colours of the page. */
  readonly tone: 'plain' | 'good' | 'warn' | 'bad';
  /** Oldest first. Undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[];
};

type SeriesChartProps = {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
  /** The legend has sums in place of the newest values. */
  readonly isSummed?: boolean;
  /** When the lines begin; they end now. */
  readonly from?: string;
};

const [width, height, top] = [320, 96, 8];

export function SeriesChart(props: SeriesChartProps): JSX.Element {
  const { title, unit, series, isSummed = false, from } = props;
  const known = series.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const most = Math.max(...known, 0);
  return (
    <figure class="chart series">
      <figcaption>
        <strong>{title}</strong> <span class="quiet">{`${unit}, at most ${shown(most)}`}</span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {[0.25, 0.5, 0.75].map((share) => (
          <line key={share} class="grid" x1="0" x2={width} y1={height * share} y2={height * share} />
        ))}
        {series.map(({ name, tone, values }) => (
          <polyline key={name} class={tone} points={pointsOf(values, most)} fill="none" />
        ))}
      </svg>
      {from === undefined ? null : (
        <p class="axis quiet">
          <span>{from}</span> <span>now</span>
        </p>
      )}
      <ul class="legend">
        {series.map(({ name, tone, values }) => (
          <li key={name}>
            <span class={`key ${tone}`} /> {name}{' '}
            <strong>{isSummed ? sumOf(values) : shown(values.at(-1))}</strong>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function sumOf(values: Series['values']): string {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0).toLocaleString('en');
}

function pointsOf(values: readonly (number | undefined)[], most: number): string {
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.flatMap((value, index) => {
    if (value === undefined) return [];
    const share = most === 0 ? 0 : value / most;
    return [[index * step, height - 1 - share * (height - top)] as const];
  });
  const [[x, y] = [0, 0]] = points;
  // A line of one point would not be seen.
  const shown = points.length === 1 ? [[x - step, y] as const, ...points] : points;
  return shown.map((point) => point.join(',')).join(' ');
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : value.toLocaleString('en', { maximumSignificantDigits: 3 });
}
