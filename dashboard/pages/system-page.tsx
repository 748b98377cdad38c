/** The server: health, rates and times of requests, the store and the memory, as charts of the last minutes, and requests by route. */
import type { JSX } from 'preact';
import { Chart } from '../components/chart.tsx';
import { Gauges } from '../components/gauges.tsx';
import { quantileOf, type Sample, totalOf } from '../metrics.ts';
import { type Reading, useMetrics } from '../use-metrics.ts';

/** Two minutes. */
const readingsKept = 60;
const bytesPerMebibyte = 1024 * 1024;

const gauges = [
  ['comity_connections', 'connections'],
  ['comity_units_waiting', 'writes waiting'],
  ['comity_changes_waiting', 'changes waiting for a row'],
  ['comity_audit_waiting', 'audit entries waiting'],
  ['comity_senders_paused', 'senders paused'],
  ['comity_webhook_endpoints', 'endpoints'],
] as const;

export function SystemPage(): JSX.Element {
  const readings = useMetrics(readingsKept);
  const [now] = readings;
  return (
    <section aria-labelledby="system-title">
      <h1 id="system-title">System</h1>
      {now === undefined ? (
        <p class="quiet">Administrators see the metrics of the server here.</p>
      ) : (
        <Measured now={now} readings={readings} />
      )}
    </section>
  );
}

function Measured({
  now,
  readings,
}: {
  readonly now: Reading;
  readonly readings: readonly Reading[];
}): JSX.Element {
  const pairs = readings.slice(0, -1).map((each, index) => [each, readings[index + 1] ?? each] as const);
  const rates = (name: string) => pairs.map(([later, earlier]) => rateOf(later, earlier, name)).toReversed();
  const quantiles = (name: string, quantile: number) =>
    pairs
      .map(([later, earlier]) => quantileOf(later.samples, { name, quantile, earlier: earlier.samples }))
      .map((seconds) => (seconds === undefined ? undefined : seconds * 1000))
      .toReversed();
  const memory = readings.map(
    ({ samples }) => totalOf(samples, 'process_resident_memory_bytes') / bytesPerMebibyte,
  );
  return (
    <>
      <Gauges names={gauges} />
      <div class="charts">
        <Chart title="Requests" unit="a second" values={rates('comity_requests_total')} />
        <Chart title="Request, p50" unit="ms" values={quantiles('comity_request_duration_seconds', 0.5)} />
        <Chart title="Request, p99" unit="ms" values={quantiles('comity_request_duration_seconds', 0.99)} />
        <Chart title="Commits" unit="a second" values={rates('comity_commits_total')} />
        <Chart title="Commit, p99" unit="ms" values={quantiles('comity_commit_duration_seconds', 0.99)} />
        <Chart title="Webhook attempts" unit="a second" values={rates('comity_delivery_attempts_total')} />
        <Chart
          title="Event loop, p99"
          unit="ms"
          values={quantiles('comity_event_loop_delay_seconds', 0.99)}
        />
        <Chart title="Memory" unit="MiB" values={memory.toReversed()} />
      </div>
      <h2>Requests by route</h2>
      <Routes samples={now.samples} />
    </>
  );
}

function rateOf(later: Reading, earlier: Reading, name: string): number {
  const seconds = (later.atMs - earlier.atMs) / 1000;
  return seconds <= 0
    ? 0
    : Math.max(0, totalOf(later.samples, name) - totalOf(earlier.samples, name)) / seconds;
}

function Routes({ samples }: { readonly samples: readonly Sample[] }): JSX.Element {
  const rows = new Map<string, Map<string, number>>();
  for (const { name, labels, value } of samples) {
    if (name !== 'comity_requests_total') continue;
    const route = `${labels.method ?? ''} ${labels.route ?? ''}`;
    const row = rows.get(route) ?? new Map<string, number>();
    row.set(labels.status ?? '', value);
    rows.set(route, row);
  }
  const totals = [...rows].map(([route, row]) => ({
    route,
    row,
    total: [...row.values()].reduce((a, b) => a + b, 0),
  }));
  return (
    <section class="scroll" tabIndex={0} aria-label="Requests by route">
      <table>
        <thead>
          <tr>
            <th>Route</th>
            <th>Requests</th>
            <th>By status</th>
          </tr>
        </thead>
        <tbody>
          {totals
            .toSorted((one, other) => other.total - one.total)
            .map(({ route, row, total }) => (
              <tr key={route}>
                <td>{route}</td>
                <td class="number">{total}</td>
                <td>{[...row].map(([status, count]) => `${status}: ${count}`).join(', ')}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </section>
  );
}
