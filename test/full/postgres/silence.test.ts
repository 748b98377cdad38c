/** A PostgreSQL that falls silent: its processes stand still, so connections stay open and nothing is answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const databaseTimeoutMs = 1500;
const scanTimeoutMs = 2000;
const drainMs = 10_000;
/** What a busy machine adds to a bound. */
const graceMs = 2500;
/** The timeout of common probes. */
const probeMs = 1000;
/** A busy machine may be late for one probe or the other, but not for each. */
const probes = 5;

const path = '/api/v1/categories';
const counted = { headers: { Prefer: 'count=exact' } };

/** What is asked, and the time after which it must have an answer. */
const requests = (id: string) =>
  [
    ['GET', `${path}/${id}`, {}, databaseTimeoutMs],
    ['GET', `${path}/none`, {}, databaseTimeoutMs],
    ['GET', path, {}, databaseTimeoutMs],
    ['GET', '/api/v1/events', {}, databaseTimeoutMs],
    // A second for the server to end the statement by itself.
    ['GET', `${path}?name=kept`, counted, scanTimeoutMs + 1000],
    ['POST', path, { json: { name: 'doubtful' } }, databaseTimeoutMs],
    ['PATCH', `${path}/${id}`, { json: { name: 'changed' } }, databaseTimeoutMs],
    ['DELETE', `${path}/${id}`, {}, databaseTimeoutMs],
  ] as const;

test('answers 503 in time while PostgreSQL is silent, everything again after that, and ends in time', async (t) => {
  const cluster = await ownCluster();
  const program = await startServer({
    env: {
      COMITY_DATABASE_URL: cluster.url,
      COMITY_DATABASE_TIMEOUT_MS: String(databaseTimeoutMs),
      COMITY_SCAN_TIMEOUT_MS: String(scanTimeoutMs),
      COMITY_DRAIN_MS: String(drainMs),
    },
  });
  t.after(async () => {
    await program.stop();
    await cluster.dispose();
  });
  const probe = async (name: string): Promise<{ readonly status: number; readonly ms: number }> => {
    const startedAt = performance.now();
    const { status } = await program.send('GET', `/health/${name}`);
    return { status, ms: performance.now() - startedAt };
  };
  const demandSilence = async (id: string): Promise<void> => {
    const startedAt = performance.now();
    const asked = requests(id).map(async ([method, target, options, boundMs]) => {
      const answer = await program.send(method, target, options);
      const tookMs = performance.now() - startedAt;
      assert.equal(answer.status, 503, `${method} ${target}`);
      assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
      assert.ok(tookMs < boundMs + graceMs, `${method} ${target} took ${Math.round(tookMs)} ms`);
    });
    for (const [name, expected] of [
      ['live', 200],
      ['ready', 503],
    ] as const) {
      const answers = await Promise.all(Array.from({ length: probes }, () => probe(name)));
      for (const { status } of answers) assert.equal(status, expected, name);
      assert.ok(Math.min(...answers.map(({ ms }) => ms)) < probeMs, JSON.stringify(answers));
    }
    await Promise.all(asked);
  };
  const created = await program.send('POST', path, { json: { name: 'kept' } });
  const { id } = created.json() as { id: string };
  for (const [method, target, options] of requests('absent')) {
    const { status } = await program.send(method, target, options);
    assert.ok(status < 500, `${method} ${target}: ${status}`);
  }
  await cluster.freeze();
  // The second time every connection has been given up, and a new one is not made.
  for (let round = 0; round < 2; round += 1) await demandSilence(id);
  await cluster.thaw();
  await until(async () => (await probe('ready')).status === 200, 'the program is ready again');
  for (const [method, target, options] of requests(id)) {
    const { status } = await program.send(method, target, options);
    assert.ok(status < 500, `${method} ${target}: ${status}`);
  }
  await cluster.freeze();
  const stoppedAt = performance.now();
  await program.stop();
  const tookMs = performance.now() - stoppedAt;
  assert.ok(tookMs < drainMs + graceMs, `it ended after ${Math.round(tookMs)} ms`);
});
