/** Numbers of the server now, for callers who may read its metrics. */
import type { JSX } from 'preact';
import { totalOf } from '../metrics.ts';
import { useMetrics } from '../use-metrics.ts';

type GaugesProps = { readonly names: readonly (readonly [metric: string, title: string])[] };

export function Gauges({ names }: GaugesProps): JSX.Element | null {
  const [now] = useMetrics(1);
  if (now === undefined) return null;
  return (
    <dl class="gauges">
      {names.map(([metric, title]) => (
        <div key={metric}>
          <dt>{title}</dt>
          <dd>{totalOf(now.samples, metric).toLocaleString('en')}</dd>
        </div>
      ))}
    </dl>
  );
}
