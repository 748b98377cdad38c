/**
 * The suite against Comity, on each store: every clause that applies holds, and those that do not are these. COMITY_SOAK_ROUNDS repeats it,
 * to find a verdict that depends on chance.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { apiClauses } from '../../conduct/all-clauses.ts';
import { judgeApi, type Report } from '../../conduct/judge.ts';
import { findTargets } from '../../conduct/target.ts';
import { describeOnEachStore } from '../harness/engine-names.ts';
import { adminKey } from '../harness/exchange.ts';
import { listen } from '../harness/listening.ts';
import { roundsOf } from '../harness/rounds.ts';
import { serversOn } from '../harness/servers-on.ts';
import { brokenOf } from './verdicts.ts';

const config = fileURLToPath(new URL('fixtures/notes.config.ts', import.meta.url));
const origin = 'https://app.example';
const env = {
  COMITY_CORS_ORIGINS: origin,
  COMITY_EGRESS_ALLOW: '127.0.0.0/8',
  COMITY_TUNNEL_PORTS: '1024-65535',
  COMITY_RATE_LIMIT_WRITES: '0',
  // Every round calls the tunnel with a wrong credential.
  COMITY_LOGIN_ATTEMPTS: '0',
};

/** What a member of a collection has no use for: a document of JSON is sent as a whole. */
const withoutSubject = [
  ...['range-first', 'range-open', 'range-suffix', 'range-accepted', 'range-unsatisfiable', 'range-several'],
  ...['if-range-other', 'if-range-current', 'authorization-varies', 'rate-limit-form'],
];

describeOnEachStore('the suite of conduct, at Comity', (engine) => {
  const start = serversOn(engine, config);

  it('finds that every clause holds', async (context) => {
    const server = await start(env);
    // A list that is long enough to be compressed.
    for (let count = 0; count < 12; count += 1)
      await server.send('POST', 'notes', { json: { title: `note ${count} ${'x'.repeat(80)}` } });
    const destination = await listen(createServer(), context);
    const headers = { Authorization: `Bearer ${adminKey}` };
    const found = await findTargets(`http://127.0.0.1:${server.port}`, { headers });
    const tunnel = {
      destination: `127.0.0.1:${destination.port}`,
      headers: { 'Proxy-Authorization': `Basic ${Buffer.from(`${adminKey}:`).toString('base64')}` },
    };
    const targets = found.map((each) => ({ ...each, origin, tunnel, websocket: '/api/v1/realtime' }));
    for (let round = 0; round < roundsOf(1, 1); round += 1)
      assertAllHold(await judgeApi(targets, apiClauses, { mayWrite: true, progress: () => undefined }));
  });
});

function assertAllHold(report: Report): void {
  assert.ok(report.subject.endsWith('/api/v1/notes'));
  assert.deepEqual(report.left, []);
  assert.deepEqual(brokenOf(report), []);
  assert.deepEqual(
    report.clauses
      .filter(({ verdict }) => verdict === 'not-applicable')
      .map(({ id }) => id)
      .toSorted(),
    withoutSubject.toSorted(),
  );
}
