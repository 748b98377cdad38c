/** A small line chart of the last readings, with its newest value as text: the line alone would say nothing to a screen reader. */
import type { JSX } from 'preact';

type ChartProps = {
  readonly title: string;
  readonly unit: string;
  /** Oldest first. Undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[];
};

const [width, height] = [220, 48];

export function Chart({ title, unit, values }: ChartProps): JSX.Element {
  const known = values.filter((value) => value !== undefined);
  const most = Math.max(...known, 0);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.flatMap((value, index) =>
    value === undefined
      ? []
      : [`${index * step},${height - 2 - (most === 0 ? 0 : (value / most) * (height - 6))}`],
  );
  return (
    <figure class="chart">
      <figcaption>
        {title} <strong>{`${shown(values.at(-1))} ${unit}`}</strong>
        <span class="quiet">{` at most ${shown(most)}`}</span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <polyline points={points.join(' ')} fill="none" stroke="currentColor" stroke-width="1.5" />
      </svg>
    </figure>
  );
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : value.toLocaleString('en', { maximumSignificantDigits: 3 });
}
