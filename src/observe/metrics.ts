/**
 * Metrics in the text format of Prometheus, from the same observations as the log, in a registry of their own. Requests
 * are counted in cells (request-cells.ts) and handed to prom-client on a scrape: its labelled counter and histogram
 * hash their labels on every call, which costs more than a request may.
 *
 * Label values come from closed sets: known methods, route patterns, statuses.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { countAccounts, countConnections, countReceived, countWebhooks } from './count-webhooks.ts';

import type { Observation, Observe } from './observation.ts';
import { RequestCells, renderDurations } from './request-cells.ts';

export type Metrics = {
  readonly observe: Observe;
  /** Registers a value that is read on each scrape. */
  gauge(name: string, help: string, read: () => number): void;
  /** As `gauge`, with one value per label value. */
  gaugeBy(
    name: string,
    help: string,
    label: string,
    read: () => Iterable<readonly [value: string, number]>,
  ): void;
  /** Receives delays of the event loop, in seconds. */
  readonly loopDelay: (seconds: number) => void;
  readonly contentType: string;
  render(): Promise<string>;
};

const commitSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const loopDelayBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const unitsBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

const faultsCounter = {
  name: 'comity_faults_total',
  help: 'Observations that an operator should look at, by kind.',
  labelNames: ['kind'],
} as const;
const clientErrorsCounter = {
  name: 'comity_client_errors_total',
  help: 'Messages that were not HTTP requests, by code.',
  labelNames: ['code'],
} as const;

export type MetricsOptions = {
  /** Adds metrics of the process; sampling the event loop costs about 0.1 % of a processor. */
  readonly process: boolean;
  /** Number of the worker, a label of every sample; absent in a process that serves alone. */
  readonly worker?: number;
};

export function createMetrics(options: MetricsOptions = { process: true }): Metrics {
  const registry = new Registry();
  const labels: { readonly worker?: string } =
    options.worker === undefined ? {} : { worker: String(options.worker) };
  registry.setDefaultLabels(labels);
  if (options.process) collectDefaultMetrics({ register: registry });
  const cells = new RequestCells();
  registerRequests(registry, cells);
  return {
    observe: countFacts(registry, cells),
    gauge: (name, help, read) => registerGauge(registry, name, help, read),
    gaugeBy: (name, help, label, read) => registerGaugeBy(registry, name, help, label, read),
    loopDelay: loopDelays(registry),
    contentType: registry.contentType,
    render: async () => `${await registry.metrics()}\n${renderDurations(cells, labels)}`,
  };
}

function countFacts(registry: Registry, cells: RequestCells): Observe {
  const countCommit = countCommits(registry);
  const faults = new Counter({ ...faultsCounter, registers: [registry] });
  const clientErrors = new Counter({ ...clientErrorsCounter, registers: [registry] });
  const accounts = countAccounts(registry, faults);
  const webhooks = countWebhooks(registry, faults);
  const received = countReceived(registry, faults);
  const connections = countConnections(registry, faults);
  return (observation: Observation): void => {
    if (isUncounted(observation)) return;
    switch (observation.kind) {
      case 'answered':
        cells.add(observation.method, observation.route, observation.status, observation.durationMs);
        return;
      case 'units-committed':
        countCommit(observation.units, observation.durationMs);
        return;
      case 'client-error':
        clientErrors.inc({ code: observation.code });
        return;
      case 'failed':
      case 'loop-held':
      case 'store-failed':
      case 'hook-failed':
      case 'nested-hook-failed':
      case 'function-escaped':
      case 'operation-failed':
      case 'connection-refused':
      case 'accept-failed':
      case 'uncaught':
      case 'stream-cut':
      case 'processes-differ':
      case 'worker-ended':
        faults.inc({ kind: observation.kind });
        return;
      case 'delivery-attempted':
      case 'endpoint-left-alone':
      case 'endpoint-answers-again':
      case 'endpoint-failing':
      case 'endpoint-disabled':
      case 'egress-refused':
      case 'lanes-held':
      case 'sending-failed':
        webhooks(observation);
        return;
      case 'webhook-received':
      case 'received-handed-on':
      case 'function-failed':
      case 'sender-paused':
      case 'handler-thread-ended':
      case 'receiving-failed':
        received(observation);
        return;
      case 'certificate-loaded':
      case 'certificate-failed':
      case 'http2-cut':
      case 'memory-refused':
      case 'websocket-closed':
      case 'tunnel-refused':
      case 'tunnel-reported':
      case 'tunnel-opened':
      case 'tunnel-closed':
      case 'connection-failed':
        connections(observation);
        return;
      default:
        accounts(observation);
    }
  };
}

const uncountedKinds = [
  'listening',
  'draining',
  'stopped',
  'store-opened',
  'store-migrated',
  'backup-made',
  'backup-failed',
  'documents-migrated',
  'documents-unfit',
  'documents-extended',
  'rows-purged',
  'store-following',
  'clocks-differ',
  'job-rescheduled',
  'work-held',
  'work-released',
] as const;

type Uncounted = Extract<Observation, { readonly kind: (typeof uncountedKinds)[number] }>;

function isUncounted(observation: Observation): observation is Uncounted {
  return uncountedKinds.some((kind) => kind === observation.kind);
}

function registerRequests(registry: Registry, cells: RequestCells): void {
  const requests = new Counter({
    name: 'comity_requests_total',
    help: 'Requests answered, by method, route and status.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { method, route, status, count } of cells) this.inc({ method, route, status }, count);
    },
  });
  void requests;
}

function loopDelays(registry: Registry): (seconds: number) => void {
  const delays = new Histogram({
    name: 'comity_event_loop_delay_seconds',
    help: 'Time that an arriving request waits for the event loop, sampled every 20 ms.',
    buckets: loopDelayBuckets,
    registers: [registry],
  });
  return (seconds) => delays.observe(seconds);
}

function countCommits(registry: Registry): (units: number, durationMs: number) => void {
  const registers = [registry];
  const commits = new Counter({ name: 'comity_commits_total', help: 'Transactions committed.', registers });
  const commitSeconds = new Histogram({
    name: 'comity_commit_duration_seconds',
    help: 'Time of a transaction, durable at its end.',
    buckets: commitSecondsBuckets,
    registers,
  });
  const units = new Histogram({
    name: 'comity_commit_units',
    help: 'Writes that one transaction committed together.',
    buckets: unitsBuckets,
    registers,
  });
  return (held, durationMs) => {
    commits.inc();
    units.observe(held);
    commitSeconds.observe(durationMs / 1000);
  };
}

function registerGaugeBy(
  registry: Registry,
  name: string,
  help: string,
  label: string,
  read: () => Iterable<readonly [value: string, number]>,
): void {
  const gauge = new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      for (const [value, number] of read()) this.set({ [label]: value }, number);
    },
  });
  void gauge;
}

function registerGauge(registry: Registry, name: string, help: string, read: () => number): void {
  const gauge = new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
  void gauge;
}
