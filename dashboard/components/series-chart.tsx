/** Several lines over the last readings, with a legend that names the newest value of each, so that colour alone identifies no line. */
import type { JSX } from 'preact';

export type Series = {
  readonly name: string;
  /** `good`, `warn`, `bad` or `plain`: which of the colours of the page. */
  readonly tone: 'plain' | 'good' | 'warn' | 'bad';
  /** Oldest first. Undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[];
};

type SeriesChartProps = { readonly title: string; readonly unit: string; readonly series: readonly Series[] };

const [width, height, top] = [320, 96, 8];

export function SeriesChart({ title, unit, series }: SeriesChartProps): JSX.Element {
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
      <ul class="legend">
        {series.map(({ name, tone, values }) => (
          <li key={name}>
            <span class={`key ${tone}`} /> {name} <strong>{shown(values.at(-1))}</strong>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function pointsOf(values: readonly (number | undefined)[], most: number): string {
  const step = values.length > 1 ? width / (values.length - 1) : width;
  return values
    .flatMap((value, index) => {
      if (value === undefined) return [];
      const share = most === 0 ? 0 : value / most;
      return [`${index * step},${height - 1 - share * (height - top)}`];
    })
    .join(' ');
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : value.toLocaleString('en', { maximumSignificantDigits: 3 });
}
