/** The server: what it is, its health, rates and times of requests as charts of the last minutes, requests by route, its store, and its settings. */
import type { JSX } from 'preact';
import { AboutServer } from '../components/about-server.tsx';
import { Backups } from '../components/backups.tsx';
import { Gauges } from '../components/gauges.tsx';
import { Hold } from '../components/hold.tsx';
import { PlainTable } from '../components/plain-table.tsx';
import { SeriesChart } from '../components/series-chart.tsx';
import { SettingsTable } from '../components/settings-table.tsx';
import { SlowLists } from '../components/slow-lists.tsx';
import { StoreReport } from '../components/store-report.tsx';
import { quantileOf, type Sample, totalOf } from '../metrics.ts';
import { isAdministrator } from '../session.ts';
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
      {isAdministrator() ? null : <p class="quiet">Administrators see the server here.</p>}
      <AboutServer />
      <Hold />
      {now === undefined ? null : <Measured now={now} readings={readings} />}
      {isAdministrator() ? (
        <>
          <StoreReport />
          <SlowLists />
          <Backups />
          <SettingsTable />
        </>
      ) : null}
    </section>
  );
}

type MeasuredProps = { readonly now: Reading; readonly readings: readonly Reading[] };

function Measured({ now, readings }: MeasuredProps): JSX.Element {
  return (
    <>
      <h2>Now</h2>
      <Gauges names={gauges} />
      <h2>The last two minutes</h2>
      <Charts readings={readings} />
      <h2>Requests by route</h2>
      <Routes samples={now.samples} />
    </>
  );
}

function Charts({ readings }: { readonly readings: readonly Reading[] }): JSX.Element {
  const pairs = readings
    .slice(0, -1)
    .map((each, index) => [each, readings[index + 1] ?? each] as const)
    .toReversed();
  const rates = (name: string, digit?: string) =>
    pairs.map(([later, earlier]) => rateOf(later, earlier, name, digit));
  const quantiles = (name: string, quantile: number) =>
    pairs
      .map(([later, earlier]) => quantileOf(later.samples, { name, quantile, earlier: earlier.samples }))
      .map((seconds) => (seconds === undefined ? undefined : seconds * 1000));
  const depths = (name: string) => readings.map(({ samples }) => totalOf(samples, name)).toReversed();
  const duration = 'comity_request_duration_seconds';
  const commit = 'comity_commit_duration_seconds';
  return (
    <div class="charts wide">
      <SeriesChart
        title="Requests by status"
        unit="a second"
        series={[
          { name: '2xx', tone: 'good', values: rates('comity_requests_total', '2') },
          { name: '3xx', tone: 'plain', values: rates('comity_requests_total', '3') },
          { name: '4xx', tone: 'warn', values: rates('comity_requests_total', '4') },
          { name: '5xx', tone: 'bad', values: rates('comity_requests_total', '5') },
        ]}
      />
      <SeriesChart
        title="Time of requests"
        unit="ms"
        series={[
          { name: 'p50', tone: 'plain', values: quantiles(duration, 0.5) },
          { name: 'p99', tone: 'warn', values: quantiles(duration, 0.99) },
        ]}
      />
      <SeriesChart
        title="Commits"
        unit="a second"
        series={[{ name: 'commits', tone: 'plain', values: rates('comity_commits_total') }]}
      />
      <SeriesChart
        title="Time of commits"
        unit="ms"
        series={[
          { name: 'p50', tone: 'plain', values: quantiles(commit, 0.5) },
          { name: 'p99', tone: 'warn', values: quantiles(commit, 0.99) },
        ]}
      />
      <SeriesChart
        title="Queues"
        unit="waiting"
        series={[
          { name: 'writes', tone: 'plain', values: depths('comity_units_waiting') },
          { name: 'due work', tone: 'warn', values: depths('comity_work_waiting') },
          { name: 'deliveries in flight', tone: 'good', values: depths('comity_deliveries_in_flight') },
        ]}
      />
      <SeriesChart
        title="Memory"
        unit="MiB"
        series={[
          {
            name: 'resident',
            tone: 'plain',
            values: depths('process_resident_memory_bytes').map((bytes) => bytes / bytesPerMebibyte),
          },
        ]}
      />
    </div>
  );
}

/** @param digit the first of the statuses to count; absent: all samples of the name */
function rateOf(later: Reading, earlier: Reading, name: string, digit?: string): number {
  const seconds = (later.atMs - earlier.atMs) / 1000;
  const total = ({ samples }: Reading) =>
    totalOf(
      digit === undefined ? samples : samples.filter(({ labels }) => labels.status?.startsWith(digit)),
      name,
    );
  return seconds <= 0 ? 0 : Math.max(0, total(later) - total(earlier)) / seconds;
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
    requests: [...row.values()].reduce((a, b) => a + b, 0),
    'by status': [...row].map(([status, count]) => `${status}: ${count}`).join(', '),
  }));
  return (
    <PlainTable
      label="Requests by route"
      rows={totals.toSorted((one, other) => other.requests - one.requests)}
    />
  );
}
