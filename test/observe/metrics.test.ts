/** Metrics: names, labels and sums as a scraper reads them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addActivities, createMetrics } from '../../src/observe/metrics.ts';
import { fanOut, type Observation } from '../../src/observe/observation.ts';

const route = '/api/v1/products/{id}';

function answered(status: number, durationMs: number, method = 'GET'): Observation {
  return {
    kind: 'answered',
    exchange: { id: 'a-1', peer: '' },
    method,
    route,
    status,
    code: undefined,
    durationMs,
  };
}

/** Value of each series, by its name and labels as written. */
async function scrape(metrics: { render(): Promise<string> }): Promise<Map<string, number>> {
  const series = new Map<string, number>();
  for (const line of (await metrics.render()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const space = line.lastIndexOf(' ');
    assert.equal(series.has(line.slice(0, space)), false, `${line} came twice`);
    series.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return series;
}

test('counts answers by method, route and status', async () => {
  const metrics = createMetrics({ process: false });
  for (const fact of [answered(200, 1), answered(200, 1), answered(404, 1), answered(200, 1, 'HEAD')]) {
    metrics.observe(fact);
  }
  for (let scrapes = 0; scrapes < 2; scrapes += 1) {
    const series = await scrape(metrics);
    assert.equal(series.get(`comity_requests_total{method="GET",route="${route}",status="200"}`), 2);
    assert.equal(series.get(`comity_requests_total{method="GET",route="${route}",status="404"}`), 1);
    assert.equal(series.get(`comity_requests_total{method="HEAD",route="${route}",status="200"}`), 1);
  }
});

test('adds up durations over the statuses of a route, in cumulative buckets whose bounds are included', async () => {
  const metrics = createMetrics({ process: false });
  for (const fact of [answered(200, 1), answered(200, 1.1), answered(404, 20_000)]) metrics.observe(fact);
  const series = await scrape(metrics);
  const bucket = (le: string) =>
    series.get(`comity_request_duration_seconds_bucket{le="${le}",method="GET",route="${route}"}`);
  assert.deepEqual(
    [bucket('0.0005'), bucket('0.001'), bucket('0.0025'), bucket('10'), bucket('+Inf')],
    [0, 1, 2, 2, 3],
  );
  assert.equal(series.get(`comity_request_duration_seconds_count{method="GET",route="${route}"}`), 3);
  const sum = series.get(`comity_request_duration_seconds_sum{method="GET",route="${route}"}`) ?? 0;
  assert.ok(Math.abs(sum - 20.0021) < 1e-9);
});

test('counts commits and what each held', async () => {
  const metrics = createMetrics({ process: false });
  metrics.observe({ kind: 'units-committed', units: 3, durationMs: 2 });
  metrics.observe({ kind: 'units-committed', units: 600, durationMs: 8 });
  const series = await scrape(metrics);
  assert.equal(series.get('comity_commits_total'), 2);
  assert.equal(series.get('comity_commit_units_sum'), 603);
  assert.equal(series.get('comity_commit_units_bucket{le="4"}'), 1);
  assert.equal(series.get('comity_commit_duration_seconds_sum'), 0.01);
});

test('counts faults by kind and client errors by code', async () => {
  const metrics = createMetrics({ process: false });
  metrics.observe({ kind: 'failed', id: 'a', error: new Error('x') });
  metrics.observe({ kind: 'client-error', code: 'message_invalid', status: 400, peer: '' });
  const series = await scrape(metrics);
  assert.equal(series.get('comity_faults_total{kind="failed"}'), 1);
  assert.equal(series.get('comity_client_errors_total{code="message_invalid"}'), 1);
});

test('counts logins, mails and facts that are missing in the audit trail, from nought', async () => {
  const metrics = createMetrics({ process: false });
  const names = [
    'comity_logins_total{outcome="succeeded"}',
    'comity_logins_total{outcome="failed"}',
    'comity_logins_total{outcome="limited"}',
    'comity_mails_total{outcome="sent"}',
    'comity_mails_total{outcome="given-up"}',
    'comity_audit_dropped_total',
  ];
  const values = async () => {
    const series = await scrape(metrics);
    return names.map((name) => series.get(name));
  };
  assert.deepEqual(await values(), [0, 0, 0, 0, 0, 0]);
  metrics.observe({ kind: 'login-judged', outcome: 'succeeded' });
  metrics.observe({ kind: 'login-judged', outcome: 'failed' });
  metrics.observe({ kind: 'login-judged', outcome: 'failed' });
  metrics.observe({ kind: 'login-judged', outcome: 'limited' });
  metrics.observe({ kind: 'mail-sent', mail: 'mail_1', attempts: 2 });
  metrics.observe({ kind: 'mail-given-up', mail: 'mail_1', reason: 'full', attempts: 0, error: undefined });
  metrics.observe({ kind: 'audit-dropped', facts: 7 });
  assert.deepEqual(await values(), [1, 2, 1, 1, 1, 7]);
});

test('counts what somebody should look at in accounts, without a label that others choose', async () => {
  const metrics = createMetrics({ process: false });
  const error = new Error('x');
  metrics.observe({ kind: 'session-reused', session: 'ses_01' });
  metrics.observe({ kind: 'hashing-refused', waiting: 128 });
  metrics.observe({ kind: 'mail-delayed', mail: 'mail_1', attempts: 1, error });
  metrics.observe({ kind: 'issuer-failed', issuer: 'https://one.example', error });
  metrics.observe({ kind: 'issuer-failed', issuer: 'https://two.example', error });
  metrics.observe({ kind: 'provider-failed', provider: 'google', error });
  const series = await scrape(metrics);
  const faults = [...series].filter(([name]) => name.startsWith('comity_faults_total')).sort();
  assert.deepEqual(faults, [
    ['comity_faults_total{kind="hashing-refused"}', 1],
    ['comity_faults_total{kind="issuer-failed"}', 2],
    ['comity_faults_total{kind="mail-delayed"}', 1],
    ['comity_faults_total{kind="provider-failed"}', 1],
    ['comity_faults_total{kind="session-reused"}', 1],
  ]);
});

test('reads gauges when somebody asks', async () => {
  const metrics = createMetrics({ process: false });
  let open = 1;
  metrics.gauge('comity_connections', 'Open connections.', () => open);
  assert.equal((await scrape(metrics)).get('comity_connections'), 1);
  open = 5;
  assert.equal((await scrape(metrics)).get('comity_connections'), 5);
});

test('adds the metrics of the process, the delay of the event loop among them', async () => {
  const series = await scrape(createMetrics({ process: true }));
  assert.ok((series.get('process_resident_memory_bytes') ?? 0) > 0);
  assert.ok(series.has('nodejs_eventloop_lag_p99_seconds'));
});

test('keeps two programs in one process apart', async () => {
  const first = createMetrics({ process: true });
  const second = createMetrics({ process: true });
  first.observe(answered(200, 1));
  assert.equal(
    (await scrape(second)).has(`comity_requests_total{method="GET",route="${route}",status="200"}`),
    false,
  );
});

test('writes text in the format of Prometheus, and a quoted label safely', async () => {
  const metrics = createMetrics({ process: false });
  metrics.observe({ ...answered(200, 1), route: '/a"b\\c' } as Observation);
  const text = await metrics.render();
  assert.match(metrics.contentType, /^text\/plain; version=0\.0\.4/);
  assert.ok(text.includes('# TYPE comity_request_duration_seconds histogram\n'));
  assert.ok(text.includes('_count{method="GET",route="/a\\"b\\\\c"} 1\n'));
  assert.ok(text.endsWith('\n'));
});

for (const sinks of [0, 1, 2, 3]) {
  test(`hands each fact to each of ${sinks} sinks, in order`, () => {
    const seen: number[] = [];
    const observe = fanOut(...Array.from({ length: sinks }, (_, sink) => () => void seen.push(sink)));
    observe(answered(200, 1));
    observe(answered(200, 1));
    const once = Array.from({ length: sinks }, (_, sink) => sink);
    assert.deepEqual(seen, [...once, ...once]);
  });
}

test('counts methods that no standard of HTTP knows as one, however many a client makes up', async () => {
  const metrics = createMetrics({ process: false });
  for (let at = 0; at < 1000; at += 1) metrics.observe(answered(501, 1, `MADE-UP-${at}`));
  const text = await metrics.render();
  assert.ok(!text.includes('MADE-UP'));
  const series = await scrape(metrics);
  const counted = [...series].filter(
    ([name]) => name.startsWith('comity_requests_total') && name.includes('501'),
  );
  assert.deepEqual(
    counted.map(([name, count]) => [name.includes('method="other"'), count]),
    [[true, 1000]],
  );
});

const minuteMs = 60_000;
/** A minute that begins a quarter of an hour. */
const began = Math.floor(1_800_000_000_000 / (15 * minuteMs)) * 15 * minuteMs;

function watchedAt(start: number) {
  let now = start;
  const metrics = createMetrics({ process: false, clock: () => now });
  const pass = (minutes: number) => {
    now += minutes * minuteMs;
  };
  return { metrics, pass };
}

test('counts requests, errors, writes and deliveries by the minute and by the quarter of an hour', async () => {
  const { metrics, pass } = watchedAt(began);
  for (const status of [200, 404, 500, 503]) metrics.observe(answered(status, 1));
  pass(14);
  metrics.observe({ kind: 'units-committed', units: 3, durationMs: 1 });
  pass(1);
  for (const outcome of ['delivered', 'failed'] as const)
    metrics.observe({
      ...{ kind: 'delivery-attempted', endpoint: 'ep', delivery: 'dlv', outcome },
      ...{ status: undefined, failure: undefined, durationMs: 1 },
    });
  const { hour, day } = await metrics.activity();
  assert.deepEqual([hour.from, hour.stepSeconds, hour.requests.length], [began - 44 * minuteMs, 60, 60]);
  assert.deepEqual([hour.requests[44], hour.clientErrors[44], hour.serverErrors[44]], [4, 1, 2]);
  assert.deepEqual([hour.writes[58], hour.delivered[59], hour.undelivered[59]], [3, 1, 1]);
  assert.deepEqual([day.from, day.stepSeconds, day.requests.length], [began - 94 * 15 * minuteMs, 900, 96]);
  assert.deepEqual([day.requests[94], day.writes[94], day.delivered[94], day.delivered[95]], [4, 3, 0, 1]);
});

test('forgets what is older than a day, and counts in the latest minute while the clock goes back', async () => {
  const { metrics, pass } = watchedAt(began);
  const total = async () => (await metrics.activity()).day.requests.reduce((sum, each) => sum + each, 0);
  metrics.observe(answered(200, 1));
  pass(96 * 15 - 1);
  assert.equal(await total(), 1);
  pass(1);
  assert.equal(await total(), 0);
  metrics.observe(answered(200, 1));
  pass(-30);
  metrics.observe(answered(200, 1));
  const { hour } = await metrics.activity();
  assert.equal(hour.requests[59], 2);
  pass(5000);
  assert.equal(await total(), 0);
});

test('adds up what the workers did, also of one that was asked a minute before', async () => {
  const [early, late] = [watchedAt(began), watchedAt(began)];
  early.metrics.observe(answered(200, 1));
  late.metrics.observe(answered(500, 1));
  late.pass(1);
  late.metrics.observe(answered(200, 1));
  const { hour } = addActivities(await early.metrics.activity(), await late.metrics.activity());
  assert.equal(hour.from, began - 58 * minuteMs);
  assert.deepEqual(hour.requests.slice(-2), [2, 1]);
  assert.deepEqual(hour.serverErrors.slice(-2), [1, 0]);
});
