/**
 * Metrics in the text format of Prometheus, from the same observations as the log, in a registry of their own. Requests
 * are counted in cells (below) and handed to prom-client on a scrape: its labelled counter and histogram
 * hash their labels on every call, which costs more than a request may.
 *
 * Label values come from closed sets: known methods, route patterns, statuses.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { knownMethods } from '../http/message.ts';
import { countFacts } from './fact-counters.ts';
import type { Observation, Observe } from './observation.ts';

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
  /** What was done in the last day. */
  activity(): Promise<Activity>;
};

const loopDelayBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export type MetricsOptions = {
  /** Adds metrics of the process; sampling the event loop costs about 0.1 % of a processor. */
  readonly process: boolean;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
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
  const count = countFacts(registry);
  const minutes = new ActivityRing(options.clock ?? Date.now);
  return {
    observe: (observation) => {
      minutes.note(observation);
      if (observation.kind !== 'answered') count(observation);
      else cells.add(observation.method, observation.route, observation.status, observation.durationMs);
    },
    gauge: (name, help, read) => registerGauge(registry, name, help, read),
    gaugeBy: (name, help, label, read) => registerGaugeBy(registry, name, help, label, read),
    loopDelay: loopDelays(registry),
    contentType: registry.contentType,
    activity: async () => minutes.read(),
    render: async () => `${await registry.metrics()}\n${renderDurations(cells, labels)}`,
  };
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

// Counts of responses, one cell per method, route and status. Adding takes two look-ups by a constant string, one by a
// small number, and additions: 60 ns, where a labelled counter and histogram of prom-client take 1.6 us.
//
// Routes and statuses are closed sets. Over HTTP/2 a method may be any word, so unknown methods share one cell.

const otherMethod = 'other';

/** Upper bounds in seconds, from a read out of memory to a client on a phone. */
const durationBuckets: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

class RequestCell {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  count = 0;
  seconds = 0;
  /** Requests per bucket, not cumulative; the last bucket is for durations over every bound. */
  readonly buckets = new Float64Array(durationBuckets.length + 1);

  constructor(method: string, route: string, status: number) {
    this.method = method;
    this.route = route;
    this.status = status;
  }

  add(seconds: number): void {
    this.count += 1;
    this.seconds += seconds;
    let bucket = 0;
    while (bucket < durationBuckets.length && seconds > (durationBuckets[bucket] ?? 0)) bucket += 1;
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
  }
}

class RequestCells {
  readonly #routes = new Map<string, Map<string, Map<number, RequestCell>>>();

  add(method: string, route: string, status: number, durationMs: number): void {
    const cell = this.#routes.get(route)?.get(method)?.get(status) ?? this.#open(method, route, status);
    cell.add(durationMs / 1000);
  }

  *[Symbol.iterator](): Generator<RequestCell> {
    for (const methods of this.#routes.values()) {
      for (const statuses of methods.values()) yield* statuses.values();
    }
  }

  #open(method: string, route: string, status: number): RequestCell {
    const name = knownMethods.has(method) ? method : otherMethod;
    return this.#routes.get(route)?.get(name)?.get(status) ?? this.#make(name, route, status);
  }

  #make(method: string, route: string, status: number): RequestCell {
    const methods = this.#routes.get(route) ?? new Map<string, Map<number, RequestCell>>();
    this.#routes.set(route, methods);
    const statuses = methods.get(method) ?? new Map<number, RequestCell>();
    methods.set(method, statuses);
    const cell = new RequestCell(method, route, status);
    statuses.set(status, cell);
    return cell;
  }
}

const name = 'comity_request_duration_seconds';
const head =
  `# HELP ${name} Time from a received header section to its response, by method and route.\n` +
  `# TYPE ${name} histogram\n`;

type Sums = { seconds: number; count: number; readonly buckets: Float64Array };

/**
 * Renders the cells in Prometheus's text format. No label `status`: it multiplies the series; the counter has it.
 * @param worker a label of every sample
 */
function renderDurations(cells: RequestCells, { worker }: { readonly worker?: string }): string {
  let text = head;
  const last = worker === undefined ? '' : `,worker="${worker}"`;
  for (const [request, sums] of addUp(cells)) {
    const labels = `${request}${last}`;
    let upTo = 0;
    for (const [at, bound] of durationBuckets.entries()) {
      upTo += sums.buckets[at] ?? 0;
      text += `${name}_bucket{le="${bound}",${labels}} ${upTo}\n`;
    }
    text += `${name}_bucket{le="+Inf",${labels}} ${sums.count}\n`;
    text += `${name}_sum{${labels}} ${sums.seconds}\n${name}_count{${labels}} ${sums.count}\n`;
  }
  return text;
}

function addUp(cells: RequestCells): Map<string, Sums> {
  const all = new Map<string, Sums>();
  for (const cell of cells) {
    const labels = `method="${escapeLabel(cell.method)}",route="${escapeLabel(cell.route)}"`;
    const sums = all.get(labels) ?? { seconds: 0, count: 0, buckets: new Float64Array(cell.buckets.length) };
    all.set(labels, sums);
    sums.seconds += cell.seconds;
    sums.count += cell.count;
    for (const [at, count] of cell.buckets.entries()) sums.buckets[at] = (sums.buckets[at] ?? 0) + count;
  }
  return all;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

// What was done in each minute of the last day, for people who look without a Prometheus: a ring of fixed counters, to which a request adds
// with one look at the clock, 100 ns.

/** Requests and their errors, committed units, and attempts to deliver a webhook by their outcome. */
export const activityNames = [
  'requests',
  'clientErrors',
  'serverErrors',
  'writes',
  'delivered',
  'undelivered',
] as const;

export type ActivityName = (typeof activityNames)[number];

/** Counts of periods that follow each other, the oldest first; the last one is under way. */
export type ActivitySeries = Readonly<Record<ActivityName, readonly number[]>> & {
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly stepSeconds: number;
};

export type Activity = { readonly hour: ActivitySeries; readonly day: ActivitySeries };

const minuteMs = 60_000;
const minutesKept = 1440;
const minutesOfHour = 60;
const minutesOfStep = 15;

class ActivityRing {
  readonly #clock: () => number;
  /** The counters of a minute are beside each other: 34,560 octets for all. */
  readonly #counts = new Uint32Array(minutesKept * activityNames.length);
  /** Minutes since the epoch. */
  #latest: number;

  constructor(clock: () => number) {
    this.#clock = clock;
    this.#latest = Math.floor(clock() / minuteMs);
  }

  note(observation: Observation): void {
    if (observation.kind === 'answered') {
      this.#add('requests', 1);
      if (observation.status >= 400)
        this.#add(observation.status >= 500 ? 'serverErrors' : 'clientErrors', 1);
    } else if (observation.kind === 'units-committed') this.#add('writes', observation.units);
    else if (observation.kind === 'delivery-attempted')
      this.#add(observation.outcome === 'delivered' ? 'delivered' : 'undelivered', 1);
  }

  read(): Activity {
    this.#advance();
    const steps = minutesKept / minutesOfStep;
    const firstStep = Math.floor(this.#latest / minutesOfStep) - steps + 1;
    return {
      hour: this.#series(this.#latest - minutesOfHour + 1, minutesOfHour, 1),
      day: this.#series(firstStep * minutesOfStep, steps, minutesOfStep),
    };
  }

  #series(first: number, steps: number, minutes: number): ActivitySeries {
    const counted = perName((_, counter) => {
      const counts = Array.from({ length: steps }, () => 0);
      for (let minute = first; minute <= this.#latest; minute += 1) {
        const step = Math.floor((minute - first) / minutes);
        counts[step] = (counts[step] ?? 0) + (this.#counts[placeOf(minute) + counter] ?? 0);
      }
      return counts;
    });
    return { ...counted, from: first * minuteMs, stepSeconds: minutes * 60 };
  }

  #add(name: ActivityName, count: number): void {
    this.#advance();
    const place = placeOf(this.#latest) + activityNames.indexOf(name);
    this.#counts[place] = (this.#counts[place] ?? 0) + count;
  }

  /** Empties the minutes since the latest one. A clock that goes back counts in the latest minute. */
  #advance(): void {
    const minute = Math.floor(this.#clock() / minuteMs);
    if (minute <= this.#latest) return;
    const first = Math.max(this.#latest + 1, minute - minutesKept + 1);
    for (let each = first; each <= minute; each += 1)
      this.#counts.fill(0, placeOf(each), placeOf(each) + activityNames.length);
    this.#latest = minute;
  }
}

function perName(
  countsOf: (name: ActivityName, counter: number) => readonly number[],
): Readonly<Record<ActivityName, readonly number[]>> {
  const counted = activityNames.map((name, counter) => [name, countsOf(name, counter)] as const);
  return Object.fromEntries(counted) as Record<ActivityName, readonly number[]>;
}

function placeOf(minute: number): number {
  return (minute % minutesKept) * activityNames.length;
}

/** The activity of several workers as one. A worker that was asked in the minute before has nothing in the newest one. */
export function addActivities(first: Activity, ...others: readonly Activity[]): Activity {
  const activities = [first, ...others];
  const newest = activities.reduce((one, other) => (other.hour.from > one.hour.from ? other : one));
  const added = (of: 'hour' | 'day'): ActivitySeries => {
    const { from, stepSeconds } = newest[of];
    const sums = perName((name) =>
      newest[of][name].map((_, step) =>
        activities.reduce((sum, { [of]: each }) => {
          const shift = (from - each.from) / (stepSeconds * 1000);
          return sum + (each[name][step + shift] ?? 0);
        }, 0),
      ),
    );
    return { ...sums, from, stepSeconds };
  };
  return { hour: added('hour'), day: added('day') };
}
